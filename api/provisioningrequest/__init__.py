"""ProvisioningRequest: the kind as it is served; its models are in the modules of the versions, which differ in nothing else."""

from kubemini.api.owned import AGE, OwnedKind, OwnedVersion

GROUP = "autoscaling.x-k8s.io"
DEPRECATION = "autoscaling.k8s.io/v1beta1 API is deprecated"

KINDS = (
    OwnedKind(
        GROUP,
        "ProvisioningRequest",
        "provisioningrequests",
        (
            OwnedVersion("v1", "kubemini.api.provisioningrequest.v1:ProvisioningRequest", (AGE,)),
            OwnedVersion("v1beta1", "kubemini.api.provisioningrequest.v1beta1:ProvisioningRequest", (AGE,), deprecation=DEPRECATION),
        ),
        short_names=("provreq", "provreqs"),
    ),
)
