"""JobSet: the kind as it is served; its models are in the module of the version."""

from kubemini.api.owned import AGE, OwnedKind, OwnedVersion, PrinterColumn

GROUP = "jobset.x-k8s.io"

KINDS = (
    OwnedKind(
        GROUP,
        "JobSet",
        "jobsets",
        (
            OwnedVersion(
                "v1alpha2",
                "kubemini.api.jobset.v1alpha2:JobSet",
                columns=(
                    PrinterColumn("TerminalState", ".status.terminalState", description="How the JobSet ended"),
                    PrinterColumn("Restarts", ".status.restarts", description="Restarts of the whole JobSet"),
                    PrinterColumn("Completed", '.status.conditions[?(@.type=="Completed")].status'),
                    PrinterColumn("Suspended", ".spec.suspend", description="Whether the Jobs are suspended"),
                    PrinterColumn(AGE.name, AGE.json_path, AGE.type, description="Time since creation"),
                ),
            ),
        ),
    ),
)
