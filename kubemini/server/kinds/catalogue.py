"""What is served of the built-in kinds beside workloads: names, scopes, short names, subresources, strategies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.accounts import ServiceAccountStrategy
from kubemini.server.kinds.core.config import ConfigMapStrategy, SecretStrategy
from kubemini.server.kinds.core.endpoints import EndpointSliceStrategy, EndpointsStrategy
from kubemini.server.kinds.core.events import EventStrategy, NewEventStrategy, to_new_form, to_stored_form
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.core.namespace import NamespaceStrategy
from kubemini.server.kinds.core.node import NodeStrategy
from kubemini.server.kinds.core.pod import PodStrategy
from kubemini.server.kinds.core.quota import LimitRangeStrategy, ResourceQuotaStrategy
from kubemini.server.kinds.core.service import ServiceStrategy
from kubemini.server.kinds.core.storage import PersistentVolumeClaimStrategy, PersistentVolumeStrategy
from kubemini.server.kinds.groups import (
    access,
    addresses,
    devices,
    extension,
    ingresses,
    metrics,
    networking,
    pod_groups,
    policies,
    reviews,
    scheduling,
)
from kubemini.server.kinds.groups.ingresses import IngressStrategy
from kubemini.server.kinds.groups.plain import PlainStrategy, twice
from kubemini.server.kinds.groups.signing import SigningRequestStrategy
from kubemini.server.registry import ALL_VERBS, Kind, KindVersion, Subresource, Virtual
from kubemini.server.strategy import Codec, Strategy, WriteContext

CodecOf = Callable[[str, str, str], Codec]
"""Returns the codec of a built-in kind, named by group, version and kind."""

_OBJECT = ("get", "patch", "update")
_CREATE = ("create",)
_EXTENSION = ("api-extensions",)
_PROXY = ("create", "delete", "get", "patch", "update")
ENDPOINTS_DEPRECATED = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"
COMPONENTS_DEPRECATED = "v1 ComponentStatus is deprecated in v1.19+"


def catalogue(codec: CodecOf) -> list[Kind]:
    """Return the kinds, each with a fresh strategy, in the order in which discovery lists them."""
    kind = partial(_kind, codec)
    return [*_core(kind), _new_events(codec), *_small_groups(kind), *_access(kind), *_extension(kind), *_devices(kind)]


def gated_kinds(codec: CodecOf) -> dict[str, list[Kind]]:
    """Return the alpha kinds by the feature gate that serves them."""
    kind = partial(_kind, codec, "scheduling.k8s.io", version="v1alpha2")
    return {
        "GenericWorkload": [
            kind("Workload", PlainStrategy(check=pod_groups.workload, update=pod_groups.workload_change)),
            kind("PodGroup", PlainStrategy(check=pod_groups.pod_group, update=pod_groups.pod_group_change, status={})),
        ]
    }


def _kind(
    codec: CodecOf,
    group: str,
    kind: str,
    strategy: Strategy,
    plural: str = "",
    *,
    version: str = "v1",
    cluster: bool = False,
    short: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    more: Sequence[Subresource] = (),
    verbs: tuple[str, ...] = ALL_VERBS,
    handler: Virtual | None = None,
    posts_to: str = "",
    deprecation: str = "",
) -> Kind:
    """Return a kind that is served in one version. `more` are its subresources beside status."""
    subresources = list(more)
    if strategy.has_status:
        subresources.append(Subresource("status", kind, _OBJECT))
    return Kind(
        group,
        kind,
        plural or f"{kind.lower()}s",
        (KindVersion(version, codec(group, version, kind), deprecation=deprecation),),
        strategy,
        namespaced=not cluster,
        short_names=short,
        categories=categories,
        subresources=tuple(sorted(subresources, key=lambda each: each.name)),
        verbs=verbs,
        handler=handler,
        posts_to=posts_to,
    )


# ------------------------------------------------------------------------------------------------------ core

_POD_SUBRESOURCES = (
    Subresource("attach", "PodAttachOptions", ("create", "get")),
    Subresource("binding", "Binding", _CREATE),
    Subresource("ephemeralcontainers", "Pod", _OBJECT),
    Subresource("eviction", "Eviction", _CREATE, "policy", "v1"),
    Subresource("exec", "PodExecOptions", ("create", "get")),
    Subresource("log", "Pod", ("get",)),
    Subresource("portforward", "PodPortForwardOptions", ("create", "get")),
    Subresource("proxy", "PodProxyOptions", _PROXY),
    Subresource("resize", "Pod", _OBJECT),
)


_COMPONENTS = {"controller-manager": "ok", "etcd-0": "ok", "scheduler": "ok"}


class _Components(Virtual):
    """The parts of the control plane, all of them in this process and well."""

    def get(self, namespace: str, name: str, ctx: WriteContext) -> Tree | None:
        """Return one component."""
        message = _COMPONENTS.get(name)
        return None if message is None else self._component(name, message)

    def list(self, namespace: str, ctx: WriteContext) -> Sequence[Tree]:
        """Return all components."""
        return [self._component(name, message) for name, message in _COMPONENTS.items()]

    def _component(self, name: str, message: str) -> Tree:
        conditions = [{"type": "Healthy", "status": "True", "message": message}]
        return {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}, "conditions": conditions}


def _core(kind: Callable[..., Kind]) -> list[Kind]:
    core = partial(kind, "")
    token = Subresource("token", "TokenRequest", _CREATE, "authentication.k8s.io", "v1")
    return [
        core("Binding", PlainStrategy(), verbs=_CREATE, posts_to="pods/binding"),
        core(
            "ComponentStatus",
            PlainStrategy(table=tables.COMPONENT_STATUS),
            "componentstatuses",
            cluster=True,
            short=("cs",),
            verbs=("get", "list"),
            handler=_Components(),
            deprecation=COMPONENTS_DEPRECATED,
        ),
        core("ConfigMap", ConfigMapStrategy(), short=("cm",)),
        core("Endpoints", EndpointsStrategy(), "endpoints", short=("ep",), deprecation=ENDPOINTS_DEPRECATED),
        core("Event", EventStrategy(), short=("ev",)),
        core("LimitRange", LimitRangeStrategy(), short=("limits",)),
        core(
            "Namespace",
            NamespaceStrategy(),
            cluster=True,
            short=("ns",),
            more=(Subresource("finalize", "Namespace", ("update",)),),
            verbs=("create", "delete", "get", "list", "patch", "update", "watch"),
        ),
        core("Node", NodeStrategy(), cluster=True, short=("no",), more=(Subresource("proxy", "NodeProxyOptions", _PROXY),)),
        core("PersistentVolumeClaim", PersistentVolumeClaimStrategy(), short=("pvc",)),
        core("PersistentVolume", PersistentVolumeStrategy(), cluster=True, short=("pv",)),
        core("Pod", PodStrategy(), short=("po",), categories=("all",), more=_POD_SUBRESOURCES),
        core("ResourceQuota", ResourceQuotaStrategy(), short=("quota",)),
        core("Secret", SecretStrategy()),
        core("ServiceAccount", ServiceAccountStrategy(), short=("sa",), more=(token,)),
        core(
            "Service",
            ServiceStrategy(),
            short=("svc",),
            categories=("all",),
            more=(Subresource("proxy", "ServiceProxyOptions", _PROXY),),
        ),
    ]


def _new_events(codec: CodecOf) -> Kind:
    """Return events.k8s.io's view of events. What is stored has v1's form; "stored" is no served version, so that every access is converted."""
    group, kind = "events.k8s.io", "Event"
    version = KindVersion("v1", codec(group, "v1", kind), to_storage=to_stored_form, from_storage=to_new_form)
    return Kind(group, kind, "events", (version,), NewEventStrategy(), short_names=("ev",), storage="events", storage_version="stored")


# ------------------------------------------------------------------------------------------------------ small groups


def _small_groups(kind: Callable[..., Kind]) -> list[Kind]:
    storage, network = partial(kind, "storage.k8s.io"), partial(kind, "networking.k8s.io")
    classes = PlainStrategy(
        table=tables.STORAGE_CLASS,
        check=networking.storage_class,
        change=networking.storage_class_change,
        warn=networking.storage_class_warnings,
        returns_deleted=True,
    )
    attachments = PlainStrategy(table=tables.VOLUME_ATTACHMENT, change=networking.attachment_change, status={"attached": False}, returns_deleted=True)
    return [
        kind(
            "coordination.k8s.io",
            "Lease",
            PlainStrategy(table=tables.LEASE, check=scheduling.lease, unconditional=False, create_on_update=True),
        ),
        kind("discovery.k8s.io", "EndpointSlice", EndpointSliceStrategy()),
        kind(
            "scheduling.k8s.io",
            "PriorityClass",
            PlainStrategy(
                table=tables.PRIORITY_CLASS,
                check=scheduling.priority_class,
                change=scheduling.priority_class_change,
                generation=True,
                spec_keys=(),
            ),
            "priorityclasses",
            cluster=True,
            short=("pc",),
        ),
        kind(
            "node.k8s.io",
            "RuntimeClass",
            PlainStrategy(
                table=tables.RUNTIME_CLASS,
                check=scheduling.runtime_class,
                change=scheduling.runtime_class_change,
                warn=networking.runtime_class_warnings,
                unconditional=False,
            ),
            "runtimeclasses",
            cluster=True,
        ),
        network(
            "Ingress",
            IngressStrategy(),
            "ingresses",
            short=("ing",),
        ),
        network(
            "IngressClass",
            PlainStrategy(table=tables.INGRESS_CLASS, check=ingresses.ingress_class, update=ingresses.ingress_class_update, generation=True),
            "ingressclasses",
            cluster=True,
        ),
        network(
            "NetworkPolicy",
            PlainStrategy(
                table=tables.NETWORK_POLICY,
                check=networking.network_policy,
                update=twice(networking.network_policy),
                warn=networking.network_policy_warnings,
                generation=True,
            ),
            "networkpolicies",
            short=("netpol",),
        ),
        network(
            "ServiceCIDR",
            PlainStrategy(table=tables.SERVICE_CIDR, check=addresses.service_cidr, update=addresses.service_cidr_update, status={}),
            "servicecidrs",
            cluster=True,
        ),
        network(
            "IPAddress",
            PlainStrategy(table=tables.IP_ADDRESS, check=addresses.ip_address, update=addresses.ip_address_update, name_rule=addresses.address_name),
            "ipaddresses",
            cluster=True,
            short=("ip",),
        ),
        storage("StorageClass", classes, "storageclasses", cluster=True, short=("sc",)),
        storage("CSINode", PlainStrategy(table=tables.CSI_NODE, check=networking.csi_node, returns_deleted=True), cluster=True),
        storage(
            "CSIDriver",
            PlainStrategy(table=tables.CSI_DRIVER, check=networking.csi_driver, unconditional=False, generation=True, returns_deleted=True),
            cluster=True,
        ),
        storage("VolumeAttachment", attachments, cluster=True),
        storage("CSIStorageCapacity", PlainStrategy(table=tables.CSI_STORAGE_CAPACITY, warn=networking.capacity_warnings), "csistoragecapacities"),
        storage(
            "VolumeAttributesClass",
            PlainStrategy(table=tables.VOLUME_ATTRIBUTES_CLASS, change=networking.attributes_class_change, returns_deleted=True),
            "volumeattributesclasses",
            cluster=True,
            short=("vac",),
        ),
    ]


# ------------------------------------------------------------------------------------------------------ access


def _access(kind: Callable[..., Kind]) -> list[Kind]:
    rbac = partial(kind, access.RBAC)
    segment = names.path_segment

    def roles(check: Callable[[Tree], Errors]) -> PlainStrategy:
        return PlainStrategy(check=check, name_rule=segment, create_on_update=True)

    def bindings(check: Callable[[Tree], Errors]) -> PlainStrategy:
        return PlainStrategy(table=tables.ROLE_BINDING, check=check, change=access.binding_change, name_rule=segment, create_on_update=True)

    approval = Subresource("approval", "CertificateSigningRequest", _OBJECT)
    review = partial(kind, verbs=_CREATE)
    authorization = partial(review, "authorization.k8s.io")
    authentication = partial(review, "authentication.k8s.io", cluster=True)
    return [
        rbac("Role", roles(access.role)),
        rbac("RoleBinding", bindings(access.role_binding)),
        rbac("ClusterRole", roles(access.cluster_role), cluster=True),
        rbac("ClusterRoleBinding", bindings(access.cluster_role_binding), cluster=True),
        kind("certificates.k8s.io", "CertificateSigningRequest", SigningRequestStrategy(), cluster=True, short=("csr",), more=(approval,)),
        authentication("TokenReview", PlainStrategy(), handler=reviews.TokenReviews()),
        authentication("SelfSubjectReview", PlainStrategy(), handler=reviews.SelfSubject()),
        authorization("LocalSubjectAccessReview", PlainStrategy(), handler=reviews.LocalSubjectAccess()),
        authorization("SelfSubjectAccessReview", PlainStrategy(), cluster=True, handler=reviews.SelfSubjectAccess()),
        authorization("SelfSubjectRulesReview", PlainStrategy(), cluster=True, handler=reviews.SelfSubjectRules()),
        authorization("SubjectAccessReview", PlainStrategy(), cluster=True, handler=reviews.SubjectAccess()),
    ]


def token_review_kind(codec: CodecOf, verify: reviews.Verify) -> Kind:
    """Return the TokenReview kind of a cluster that knows tokens, to be put in the place of the general one."""
    handler = reviews.TokenReviews(verify)
    return _kind(codec, "authentication.k8s.io", "TokenReview", PlainStrategy(), verbs=_CREATE, cluster=True, handler=handler)


# ------------------------------------------------------------------------------------------------------ extension, devices, metrics


def _extension(kind: Callable[..., Kind]) -> list[Kind]:
    admission = partial(kind, "admissionregistration.k8s.io", cluster=True, categories=_EXTENSION)
    flow = partial(kind, "flowcontrol.apiserver.k8s.io", cluster=True)
    segment = names.path_segment

    def hooks() -> PlainStrategy:
        check = extension.webhook_configuration
        return PlainStrategy(table=tables.WEBHOOK_CONFIGURATION, check=check, generation=True, unconditional=False, spec_keys=("webhooks",))

    validating = PlainStrategy(
        table=tables.VALIDATING_ADMISSION_POLICY, check=policies.policy("validations"), generation=True, unconditional=False, status={}
    )
    mutating = PlainStrategy(table=tables.MUTATING_ADMISSION_POLICY, check=policies.policy("mutations"), generation=True, unconditional=False)

    def policy_bindings() -> PlainStrategy:
        check = policies.policy_binding
        return PlainStrategy(table=tables.ADMISSION_POLICY_BINDING, check=check, generation=True, unconditional=False)

    return [
        admission("MutatingWebhookConfiguration", hooks()),
        admission("ValidatingWebhookConfiguration", hooks()),
        admission("ValidatingAdmissionPolicy", validating, "validatingadmissionpolicies"),
        admission("ValidatingAdmissionPolicyBinding", policy_bindings()),
        admission("MutatingAdmissionPolicy", mutating, "mutatingadmissionpolicies"),
        admission("MutatingAdmissionPolicyBinding", policy_bindings()),
        kind(
            "apiregistration.k8s.io",
            "APIService",
            PlainStrategy(table=tables.API_SERVICE, check=extension.api_service, name_rule=segment, status={}, unconditional=False),
            cluster=True,
            categories=_EXTENSION,
        ),
        flow(
            "FlowSchema",
            PlainStrategy(table=tables.FLOW_SCHEMA, check=extension.flow_schema, name_rule=segment, status={}, generation=True, unconditional=False),
        ),
        flow(
            "PriorityLevelConfiguration",
            PlainStrategy(
                table=tables.PRIORITY_LEVEL_CONFIGURATION,
                check=extension.priority_level,
                name_rule=segment,
                status={},
                generation=True,
                unconditional=False,
            ),
        ),
    ]


def _devices(kind: Callable[..., Kind]) -> list[Kind]:
    resource = partial(kind, "resource.k8s.io")
    slices = devices.ResourceSliceStrategy(
        table=tables.RESOURCE_SLICE,
        check=devices.resource_slice,
        change=devices.resource_slice_change,
        generation=True,
        fields={"spec.nodeName": devices.slice_node, "spec.driver": devices.slice_driver},
    )
    return [
        resource("DeviceClass", PlainStrategy(table=tables.DEVICE_CLASS, check=devices.device_class, generation=True), "deviceclasses", cluster=True),
        resource("ResourceClaim", PlainStrategy(table=tables.RESOURCE_CLAIM, check=devices.resource_claim, change=devices.spec_stays, status={})),
        resource(
            "ResourceClaimTemplate",
            PlainStrategy(table=tables.RESOURCE_CLAIM_TEMPLATE, check=devices.resource_claim_template, change=devices.spec_stays),
        ),
        resource("ResourceSlice", slices, cluster=True),
    ]


def metrics_kinds() -> list[Kind]:
    """Return what a metrics server serves: an add-on on a real cluster, and so here."""
    group, version = "metrics.k8s.io", "v1beta1"

    def described(kind: str, plural: str, handler: Virtual, *, namespaced: bool) -> Kind:
        versions = (KindVersion(version, metrics.MetricsCodec(kind)),)
        strategy = PlainStrategy(table=metrics.METRICS_TABLE)
        return Kind(group, kind, plural, versions, strategy, namespaced=namespaced, singular="", verbs=("get", "list"), handler=handler)

    return [
        described("NodeMetrics", "nodes", metrics.NodeMetrics(), namespaced=False),
        described("PodMetrics", "pods", metrics.PodMetrics(), namespaced=True),
    ]
