"""DisaggregatedSet and its role scaler: the kinds as they are served; their models are in the module of the version."""

from kubemini.api.owned import AGE, OwnedKind, OwnedVersion, PrinterColumn, ScalePaths

GROUP = "disaggregatedset.x-k8s.io"

KINDS = (
    OwnedKind(GROUP, "DisaggregatedSet", "disaggregatedsets", (OwnedVersion("v1", "kubemini.api.disaggregatedset.v1:DisaggregatedSet"),)),
    OwnedKind(
        GROUP,
        "DisaggregatedSetRoleScaler",
        "disaggregatedsetrolescalers",
        (
            OwnedVersion(
                "v1",
                "kubemini.api.disaggregatedset.v1:DisaggregatedSetRoleScaler",
                columns=(
                    PrinterColumn("Desired", ".spec.replicas", "integer"),
                    PrinterColumn("Current", ".status.replicas", "integer"),
                    AGE,
                ),
                scale=ScalePaths(selector=".status.selector"),
            ),
        ),
        short_names=("dsrs",),
    ),
)
