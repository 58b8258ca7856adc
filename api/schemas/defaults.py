"""What decoding fills into built-in objects, as data: plain defaults, and defaults that follow from another field of the same object.

Keys are type names (``core/v1.PodSpec``) or a field of a type (``core/v1.Pod.spec``), for defaults that hold there alone. A default of ``{}``
is decoded in turn, so that it gets the defaults of its own type. Defaults that need more than their own object (an image's tag, the
sum of containers, the clock, an allocator) belong to the strategies of the kinds. Declarative defaults that OpenAPI publishes
(``protocol: TCP``) come with the fields.

Mirrors the ``SetDefaults_*`` functions and conversions of Kubernetes 1.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubemini.api.trees import Tree

PRESENT: Final = "\0present"
ABSENT: Final = "\0absent"


@dataclass(frozen=True, slots=True)
class Rule:
    """Fill `fields` where they are absent and each field of `when` is PRESENT, ABSENT or has the value. Rules go before `PLAIN`, in order, each seeing the last."""

    fields: Tree
    when: Mapping[str, Any] = field(default_factory=dict[str, Any])
    alone: tuple[str, ...] = ()
    """If given: only where the object has no other fields than these."""


_CONTAINER: Tree = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_HOOK: Tree = {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}, "timeoutSeconds": 10}
_MATCH: Tree = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}}

PLAIN: Final[Mapping[str, Tree]] = {
    # ------------------------------------------------------------------ core
    "core/v1.Pod.spec": {"enableServiceLinks": True},
    "core/v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
    },
    "core/v1.Container": _CONTAINER,
    "core/v1.EphemeralContainer": _CONTAINER,
    "core/v1.Probe": {"failureThreshold": 3, "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1},
    "core/v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core/v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core/v1.SecretVolumeSource": {"defaultMode": 420},
    "core/v1.ConfigMapVolumeSource": {"defaultMode": 420},
    "core/v1.DownwardAPIVolumeSource": {"defaultMode": 420},
    "core/v1.ProjectedVolumeSource": {"defaultMode": 420},
    "core/v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core/v1.HostPathVolumeSource": {"type": ""},
    "core/v1.PersistentVolumeSpec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"},
    "core/v1.PersistentVolumeStatus": {"phase": "Pending"},
    "core/v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core/v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core/v1.NamespaceStatus": {"phase": "Active"},
    "core/v1.Secret": {"type": "Opaque"},
    "core/v1.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "core/v1.EndpointPort": {"protocol": "TCP"},
    # ------------------------------------------------------------------ workloads
    "apps/v1.DeploymentSpec": {"progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10},
    "apps/v1.RollingUpdateDeployment": {"maxSurge": "25%", "maxUnavailable": "25%"},
    "apps/v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps/v1.RollingUpdateDaemonSet": {"maxSurge": 0, "maxUnavailable": 1},
    "apps/v1.ReplicaSetSpec": {"replicas": 1},
    "apps/v1.StatefulSetSpec": {
        "persistentVolumeClaimRetentionPolicy": {},
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
    },
    "apps/v1.StatefulSetSpec.volumeClaimTemplates": {"apiVersion": "v1", "kind": "PersistentVolumeClaim"},
    "apps/v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "apps/v1.RollingUpdateStatefulSetStrategy": {"partition": 0},
    # A Job is defaulted, the job template of a CronJob is not.
    "batch/v1.Job.spec": {"completionMode": "NonIndexed", "manualSelector": False, "suspend": False},
    "batch/v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "batch/v1.CronJobSpec": {"concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1, "successfulJobsHistoryLimit": 3, "suspend": False},
    # ------------------------------------------------------------------ autoscaling
    "autoscaling/v1.HorizontalPodAutoscalerSpec": {"minReplicas": 1},
    "autoscaling/v2.HorizontalPodAutoscalerSpec": {
        "metrics": [{"resource": {"name": "cpu", "target": {"averageUtilization": 80, "type": "Utilization"}}, "type": "Resource"}],
        "minReplicas": 1,
    },
    "autoscaling/v2.HorizontalPodAutoscalerBehavior": {"scaleDown": {}, "scaleUp": {}},
    "autoscaling/v2.HorizontalPodAutoscalerBehavior.scaleUp": {
        "policies": [{"periodSeconds": 15, "type": "Pods", "value": 4}, {"periodSeconds": 15, "type": "Percent", "value": 100}],
        "selectPolicy": "Max",
        "stabilizationWindowSeconds": 0,
    },
    "autoscaling/v2.HorizontalPodAutoscalerBehavior.scaleDown": {
        "policies": [{"periodSeconds": 15, "type": "Percent", "value": 100}],
        "selectPolicy": "Max",
    },
    # ------------------------------------------------------------------ network
    "networking/v1.IngressClassParametersReference": {"scope": "Cluster"},
    "networking/v1.NetworkPolicyPort": {"protocol": "TCP"},
    "discovery/v1.EndpointPort": {"name": "", "protocol": "TCP"},
    # ------------------------------------------------------------------ storage and devices
    "storage/v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "storage/v1.CSIDriverSpec": {
        "attachRequired": True,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "podInfoOnMount": False,
        "requiresRepublish": False,
        "seLinuxMount": False,
        "storageCapacity": False,
        "volumeLifecycleModes": ["Persistent"],
    },
    # ------------------------------------------------------------------ policy and extension
    "scheduling/v1.PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"},
    "scheduling/v1alpha2.PodGroupSpec": {"disruptionMode": "Pod"},
    "rbac/v1.RoleRef": {"apiGroup": "rbac.authorization.k8s.io"},
    "authentication/v1.TokenRequestSpec": {"expirationSeconds": 3600},
    "admissionregistration/v1.MutatingWebhook": {**_HOOK, "reinvocationPolicy": "Never"},
    "admissionregistration/v1.ValidatingWebhook": _HOOK,
    "admissionregistration/v1.RuleWithOperations": {"scope": "*"},
    "admissionregistration/v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration/v1beta1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration/v1alpha1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration/v1.ServiceReference": {"port": 443},
    "admissionregistration/v1.MatchResources": _MATCH,
    "admissionregistration/v1beta1.MatchResources": _MATCH,
    "admissionregistration/v1alpha1.MatchResources": _MATCH,
    "admissionregistration/v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration/v1beta1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration/v1.MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration/v1beta1.MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration/v1alpha1.MutatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "admissionregistration/v1alpha1.ParamRef": {"parameterNotFoundAction": "Deny"},
    "apiextensions/v1.CustomResourceDefinitionSpec": {"conversion": {"strategy": "None"}},
    "apiextensions/v1.ServiceReference": {"port": 443},
    "apiregistration/v1.ServiceReference": {"port": 443},
    "flowcontrol/v1.FlowSchemaSpec": {"matchingPrecedence": 1000},
    "flowcontrol/v1.ExemptPriorityLevelConfiguration": {"lendablePercent": 0, "nominalConcurrencyShares": 0},
    "flowcontrol/v1.LimitedPriorityLevelConfiguration": {"lendablePercent": 0, "nominalConcurrencyShares": 30},
    "flowcontrol/v1.QueuingConfiguration": {"handSize": 8, "queueLengthLimit": 50, "queues": 64},
}

_ROLLING = (Rule({"type": "RollingUpdate"}, {"type": ABSENT}), Rule({"rollingUpdate": {}}, {"type": "RollingUpdate"}))
_EXACT = (Rule({"allocationMode": "ExactCount"}, {"allocationMode": ABSENT}), Rule({"count": 1}, {"allocationMode": "ExactCount"}))

RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "core/v1.Volume": (Rule({"emptyDir": {}}, alone=("name",)),),
    "apps/v1.DeploymentStrategy": _ROLLING,
    "apps/v1.DaemonSetUpdateStrategy": _ROLLING,
    # A strategy that was named without parameters keeps them absent.
    "apps/v1.StatefulSetUpdateStrategy": (Rule({"rollingUpdate": {}, "type": "RollingUpdate"}, {"type": ABSENT}),),
    "batch/v1.Job.spec": (
        Rule({"backoffLimit": 2**31 - 1}, {"backoffLimitPerIndex": PRESENT}),
        Rule({"backoffLimit": 6}, {"backoffLimitPerIndex": ABSENT}),
        Rule({"podReplacementPolicy": "Failed"}, {"podFailurePolicy": PRESENT}),
        Rule({"podReplacementPolicy": "TerminatingOrFailed"}, {"podFailurePolicy": ABSENT}),
    ),
    "networking/v1.NetworkPolicySpec": (
        Rule({"policyTypes": ["Ingress", "Egress"]}, {"egress": PRESENT}),
        Rule({"policyTypes": ["Ingress"]}, {"egress": ABSENT}),
    ),
    "rbac/v1.Subject": (
        Rule({"apiGroup": "rbac.authorization.k8s.io"}, {"kind": "User"}),
        Rule({"apiGroup": "rbac.authorization.k8s.io"}, {"kind": "Group"}),
    ),
    "resource/v1.ExactDeviceRequest": _EXACT,
    "resource/v1.DeviceSubRequest": _EXACT,
    "resource/v1beta2.ExactDeviceRequest": _EXACT,
    "resource/v1beta2.DeviceSubRequest": _EXACT,
    "resource/v1beta1.DeviceSubRequest": _EXACT,
    "resource/v1beta1.DeviceRequest": (
        Rule({"allocationMode": "ExactCount"}, {"allocationMode": ABSENT, "deviceClassName": PRESENT}),
        Rule({"count": 1}, {"allocationMode": "ExactCount", "deviceClassName": PRESENT}),
    ),
}
