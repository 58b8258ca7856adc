"""LeaderWorkerSet: the kind as it is served; its models are in the module of the version."""

from kubemini.api.owned import AGE, OwnedKind, OwnedVersion, PrinterColumn, ScalePaths

GROUP = "leaderworkerset.x-k8s.io"

KINDS = (
    OwnedKind(
        GROUP,
        "LeaderWorkerSet",
        "leaderworkersets",
        (
            OwnedVersion(
                "v1",
                "kubemini.api.leaderworkerset.v1:LeaderWorkerSet",
                columns=(
                    PrinterColumn("Ready", ".status.readyReplicas", "integer", "Groups that are ready"),
                    PrinterColumn("Desired", ".spec.replicas", "integer", "Groups that are wanted"),
                    PrinterColumn("Up-to-date", ".status.updatedReplicas", "integer", "Groups of the newest revision"),
                    AGE,
                ),
                scale=ScalePaths(selector=".status.hpaPodSelector"),
            ),
        ),
        short_names=("lws",),
    ),
)
