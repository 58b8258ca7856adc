"""How the kinds of the smaller groups print."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.human import human_duration
from kubemini.server.kinds.tables.common import AGE, NAME, NONE, UNSET, age, column, get, name, selector, simple, wide
from kubemini.server.strategy import Table

LEASE = simple(column("Holder"), cells=lambda obj: [get(obj, "spec", "holderIdentity")])
RUNTIME_CLASS = simple(column("Handler"), cells=lambda obj: [obj.get("handler", "")])


# ------------------------------------------------------------------------------------------------------ scheduling


def _priority_class(obj: Tree, now: float) -> list[Any]:
    return [name(obj), obj.get("value", 0), bool(obj.get("globalDefault")), age(obj, now), obj.get("preemptionPolicy", "")]


PRIORITY_CLASS = Table(
    (NAME, column("Value", "integer"), column("Global-Default", "boolean"), AGE, column("PreemptionPolicy")),
    _priority_class,
)


# ------------------------------------------------------------------------------------------------------ storage


def _storage_class(obj: Tree, now: float) -> list[Any]:
    annotations = obj["metadata"].get("annotations") or {}
    default = any(
        annotations.get(key) == "true" for key in ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
    )
    return [
        f"{name(obj)} (default)" if default else name(obj),
        obj.get("provisioner", ""),
        obj.get("reclaimPolicy") or "Delete",
        obj.get("volumeBindingMode") or "Immediate",
        bool(obj.get("allowVolumeExpansion")),
        age(obj, now),
    ]


STORAGE_CLASS = Table(
    (NAME, column("Provisioner"), column("ReclaimPolicy"), column("VolumeBindingMode"), column("AllowVolumeExpansion"), AGE),
    _storage_class,
)
CSI_NODE = simple(column("Drivers", "integer"), cells=lambda obj: [len(get(obj, "spec", "drivers", default=[]))])
CSI_DRIVER = simple(
    column("AttachRequired", "boolean"),
    column("PodInfoOnMount", "boolean"),
    column("StorageCapacity", "boolean"),
    column("TokenRequests"),
    column("RequiresRepublish", "boolean"),
    column("Modes"),
    cells=lambda obj: [
        get(obj, "spec", "attachRequired", default=True),
        get(obj, "spec", "podInfoOnMount", default=False),
        get(obj, "spec", "storageCapacity", default=False),
        ",".join(each.get("audience", "") for each in get(obj, "spec", "tokenRequests", default=[])) or UNSET,
        get(obj, "spec", "requiresRepublish", default=False),
        ",".join(get(obj, "spec", "volumeLifecycleModes", default=[])) or NONE,
    ],
)
VOLUME_ATTACHMENT = simple(
    column("Attacher"),
    column("PV"),
    column("Node"),
    column("Attached", "boolean"),
    cells=lambda obj: [
        get(obj, "spec", "attacher"),
        get(obj, "spec", "source", "persistentVolumeName"),
        get(obj, "spec", "nodeName"),
        get(obj, "status", "attached", default=False),
    ],
)
CSI_STORAGE_CAPACITY = simple(
    column("StorageClassName"), column("Capacity"), cells=lambda obj: [obj.get("storageClassName", ""), obj.get("capacity") or UNSET]
)
VOLUME_ATTRIBUTES_CLASS = simple(column("DriverName"), cells=lambda obj: [obj.get("driverName", "")])


# ------------------------------------------------------------------------------------------------------ networking


def _hosts(obj: Tree) -> str:
    hosts = list(dict.fromkeys(each["host"] for each in get(obj, "spec", "rules", default=[]) if each.get("host")))
    if not hosts:
        return "*"
    return f"{','.join(hosts[:3])} + {len(hosts) - 3} more..." if len(hosts) > 3 else ",".join(hosts)


def _ingress(obj: Tree) -> list[Any]:
    balancer = [each.get("ip") or each.get("hostname", "") for each in get(obj, "status", "loadBalancer", "ingress", default=[])]
    ports = "80, 443" if get(obj, "spec", "tls", default=[]) else "80"
    return [get(obj, "spec", "ingressClassName") or NONE, _hosts(obj), ",".join(each for each in balancer if each), ports]


INGRESS = simple(column("Class"), column("Hosts"), column("Address"), column("Ports"), cells=_ingress)


def _ingress_class(obj: Tree) -> list[Any]:
    parameters = get(obj, "spec", "parameters", default=None)
    shown = NONE
    if parameters is not None:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [get(obj, "spec", "controller"), shown]


INGRESS_CLASS = simple(column("Controller"), column("Parameters"), cells=_ingress_class)
NETWORK_POLICY = simple(column("Pod-Selector"), cells=lambda obj: [selector(get(obj, "spec", "podSelector", default=None))])
SERVICE_CIDR = simple(column("CIDRs"), cells=lambda obj: [",".join(get(obj, "spec", "cidrs", default=[]))])


def _ip_address(obj: Tree) -> list[Any]:
    parent = get(obj, "spec", "parentRef", default={})
    named = f"{parent.get('namespace')}/{parent.get('name', '')}" if parent.get("namespace") else parent.get("name", "")
    resource = f"{parent.get('resource', '')}.{parent['group']}" if parent.get("group") else parent.get("resource", "")
    return [f"{resource}/{named}"]


IP_ADDRESS = simple(column("ParentRef"), cells=_ip_address)


# ------------------------------------------------------------------------------------------------------ access


def _binding(obj: Tree, now: float) -> list[Any]:
    reference = obj.get("roleRef") or {}
    subjects = obj.get("subjects") or ()
    users = [each.get("name", "") for each in subjects if each.get("kind") == "User"]
    groups = [each.get("name", "") for each in subjects if each.get("kind") == "Group"]
    accounts = [f"{each.get('namespace', '')}/{each.get('name', '')}" for each in subjects if each.get("kind") == "ServiceAccount"]
    role = f"{reference.get('kind', '')}/{reference.get('name', '')}"
    return [name(obj), role, age(obj, now), ", ".join(users), ", ".join(groups), ", ".join(accounts)]


ROLE_BINDING = Table((NAME, column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")), _binding)


def _csr(obj: Tree, now: float) -> list[Any]:
    spec, conditions = obj.get("spec") or {}, get(obj, "status", "conditions", default=[])
    words = [each.get("type", "") for each in conditions if each.get("type") in ("Denied", "Approved", "Failed")]
    state = ",".join(sorted(words, key=("Denied", "Approved", "Failed").index)) or "Pending"
    if get(obj, "status", "certificate"):
        state += ",Issued"
    duration = human_duration(spec["expirationSeconds"]) if spec.get("expirationSeconds") else NONE
    return [name(obj), age(obj, now), spec.get("signerName") or NONE, spec.get("username", ""), duration, state]


CERTIFICATE_SIGNING_REQUEST = Table(
    (NAME, AGE, column("SignerName"), column("Requestor"), column("RequestedDuration"), column("Condition")),
    _csr,
)


# ------------------------------------------------------------------------------------------------------ extension of the API


WEBHOOK_CONFIGURATION = simple(column("Webhooks", "integer"), cells=lambda obj: [len(obj.get("webhooks") or ())])


def _policy(obj: Tree) -> list[Any]:
    kind = get(obj, "spec", "paramKind", default=None)
    shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind is not None else UNSET
    return [len(get(obj, "spec", "validations", default=get(obj, "spec", "mutations", default=[]))), shown]


VALIDATING_ADMISSION_POLICY = simple(column("Validations", "integer"), column("ParamKind"), cells=_policy)
MUTATING_ADMISSION_POLICY = simple(column("Mutations", "integer"), column("ParamKind"), cells=_policy)


def _policy_binding(obj: Tree) -> list[Any]:
    reference = get(obj, "spec", "paramRef", default=None)
    if reference is None:
        shown = UNSET
    elif reference.get("selector") is not None and not reference.get("name"):
        shown = selector(reference["selector"])
    else:
        shown = f"{reference['namespace']}/{reference.get('name', '')}" if reference.get("namespace") else f"*/{reference.get('name', '')}"
    return [get(obj, "spec", "policyName"), shown]


ADMISSION_POLICY_BINDING = simple(column("PolicyName"), column("ParamRef"), cells=_policy_binding)


def _flow_schema(obj: Tree, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    dangling = next((each.get("status", "?") for each in get(obj, "status", "conditions", default=[]) if each.get("type") == "Dangling"), "?")
    return [
        name(obj),
        get(spec, "priorityLevelConfiguration", "name"),
        spec.get("matchingPrecedence", 0),
        get(spec, "distinguisherMethod", "type") or NONE,
        age(obj, now),
        dangling,
    ]


FLOW_SCHEMA = Table(
    (NAME, column("PriorityLevel"), column("MatchingPrecedence", "integer"), column("DistinguisherMethod"), AGE, column("MissingPL")),
    _flow_schema,
)


def _priority_level(obj: Tree) -> list[Any]:
    spec = obj.get("spec") or {}
    limited = spec.get("limited") or spec.get("exempt") or {}
    queuing = get(limited, "limitResponse", "queuing", default={})
    return [
        spec.get("type", ""),
        limited.get("nominalConcurrencyShares", NONE),
        queuing.get("queues", NONE),
        queuing.get("handSize", NONE),
        queuing.get("queueLengthLimit", NONE),
    ]


PRIORITY_LEVEL_CONFIGURATION = simple(
    column("Type"),
    column("NominalConcurrencyShares"),
    column("Queues"),
    column("HandSize"),
    column("QueueLengthLimit"),
    cells=_priority_level,
)


def _api_service(obj: Tree) -> list[Any]:
    service = get(obj, "spec", "service", default=None)
    condition: Tree = next((each for each in get(obj, "status", "conditions", default=[]) if each.get("type") == "Available"), {})
    available = condition.get("status", "Unknown")
    if available == "False" and condition.get("reason"):
        available = f"{available} ({condition['reason']})"
    return ["Local" if service is None else f"{service.get('namespace', '')}/{service.get('name', '')}", available]


API_SERVICE = simple(column("Service"), column("Available"), cells=_api_service)


# ------------------------------------------------------------------------------------------------------ dynamic resources


def _resource_claim(obj: Tree) -> list[Any]:
    status = obj.get("status") or {}
    states = ["deleted"] if "deletionTimestamp" in obj["metadata"] else []
    if status.get("allocation") is None:
        states += [] if states else ["pending"]
    else:
        states.append("allocated")
        states += ["reserved"] if status.get("reservedFor") else []
    return [",".join(states)]


def _nothing(_obj: Tree) -> list[Any]:
    return []


DEVICE_CLASS = simple(cells=_nothing)
RESOURCE_CLAIM_TEMPLATE = simple(cells=_nothing)
RESOURCE_CLAIM = simple(column("State"), cells=_resource_claim)


def _resource_slice(obj: Tree) -> list[Any]:
    spec = obj.get("spec") or {}
    node = spec.get("nodeName") or (
        "<all nodes>" if spec.get("allNodes") else "<per device>" if spec.get("perDeviceNodeSelection") else "<node selector>"
    )
    return [node, spec.get("driver", ""), get(spec, "pool", "name")]


RESOURCE_SLICE = simple(column("Node"), column("Driver"), column("Pool"), cells=_resource_slice)
