"""How the kinds of the core group print, beside pods."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.server.kinds.tables.common import AGE, NAME, NONE, UNKNOWN, age, column, get, name, pairs, simple, since, wide
from kubemini.server.strategy import Table

# ------------------------------------------------------------------------------------------------------ services, nodes


def _external_ip(service: Tree) -> str:
    spec = service.get("spec") or {}
    external = list(spec.get("externalIPs") or ())
    kind = spec.get("type", "ClusterIP")
    if kind == "LoadBalancer":
        balancer = [each.get("ip") or each.get("hostname", "") for each in get(service, "status", "loadBalancer", "ingress", default=[])]
        shown = [*balancer, *external]
        return ",".join(each for each in shown if each) or "<pending>"
    if kind == "ExternalName":
        return str(spec.get("externalName") or NONE)
    return ",".join(external) or NONE


def _ports(entries: Any) -> str:
    shown = []
    for each in entries or ():
        node = f":{each['nodePort']}" if each.get("nodePort") else ""
        shown.append(f"{each.get('port', 0)}{node}/{each.get('protocol', 'TCP')}")
    return ",".join(shown) or NONE


def _service(obj: Tree, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or ()
    cluster_ip = addresses[0] if addresses else spec.get("clusterIP") or NONE
    shown = [spec.get("type", ""), cluster_ip, _external_ip(obj), _ports(spec.get("ports"))]
    return [name(obj), *shown, age(obj, now), pairs(spec.get("selector"))]


SERVICE = Table((NAME, column("Type"), column("Cluster-IP"), column("External-IP"), column("Port(s)"), AGE, wide("Selector")), _service)


def _roles(node: Tree) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {key.removeprefix("node-role.kubernetes.io/") for key in labels if key.startswith("node-role.kubernetes.io/")}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role" and value}
    return ",".join(sorted(each for each in roles if each)) or NONE


def _address(node: Tree, kind: str) -> str:
    found = (each.get("address", "") for each in get(node, "status", "addresses", default=[]) if each.get("type") == kind)
    return next(found, NONE)


def _node(obj: Tree, now: float) -> list[Any]:
    ready = next((each for each in get(obj, "status", "conditions", default=[]) if each.get("type") == "Ready"), None)
    words = ["Unknown"] if ready is None else ["Ready" if ready.get("status") == "True" else "NotReady"]
    if get(obj, "spec", "unschedulable", default=False):
        words.append("SchedulingDisabled")
    info = get(obj, "status", "nodeInfo", default={})
    return [
        name(obj),
        ",".join(words),
        _roles(obj),
        age(obj, now),
        info.get("kubeletVersion", ""),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        info.get("kernelVersion") or UNKNOWN,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


NODE = Table(
    (
        NAME,
        column("Status"),
        column("Roles"),
        AGE,
        column("Version"),
        wide("Internal-IP"),
        wide("External-IP"),
        wide("OS-Image"),
        wide("Kernel-Version"),
        wide("Container-Runtime"),
    ),
    _node,
)

NAMESPACE = simple(column("Status"), cells=lambda obj: [get(obj, "status", "phase")])


# ------------------------------------------------------------------------------------------------------ configuration

CONFIG_MAP = simple(column("Data"), cells=lambda obj: [len(obj.get("data") or ()) + len(obj.get("binaryData") or ())])
SECRET = simple(column("Type"), column("Data", "integer"), cells=lambda obj: [obj.get("type", ""), len(obj.get("data") or ())])
SERVICE_ACCOUNT = simple(column("Secrets", "integer"), cells=lambda obj: [len(obj.get("secrets") or ())])


# ------------------------------------------------------------------------------------------------------ events, endpoints


def _source(event: Tree) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent", "")
    host = source.get("host") or event.get("reportingInstance", "")
    return f"{component}, {host}" if host else component


def _event(obj: Tree, now: float) -> list[Any]:
    first, last, series = obj.get("firstTimestamp"), obj.get("lastTimestamp"), obj.get("series")
    count = obj.get("count", 0)
    seen_first = since(first, now) if first else since(obj["eventTime"], now) if obj.get("eventTime") else UNKNOWN
    seen_last = since(last, now) if last else seen_first
    if series is not None:
        seen_last = since(series.get("lastObservedTime"), now)
        count = series.get("count", 0)
    elif not count:
        count = 1
    involved = obj.get("involvedObject") or {}
    kind, target = involved.get("kind", "").lower(), involved.get("name", "")
    return [
        seen_last,
        obj.get("type", ""),
        obj.get("reason", ""),
        f"{kind}/{target}" if target else kind,
        involved.get("fieldPath", ""),
        _source(obj),
        obj.get("message", "").strip(),
        seen_first,
        count,
        name(obj),
    ]


EVENT = Table(
    (
        column("Last Seen"),
        column("Type"),
        column("Reason"),
        column("Object"),
        wide("Subobject"),
        wide("Source"),
        column("Message"),
        wide("First Seen"),
        wide("Count", "integer"),
        wide("Name"),
    ),
    _event,
)

_SHOWN = 3


def _endpoints(obj: Tree) -> list[Any]:
    shown: list[str] = []
    total = 0
    for subset in obj.get("subsets") or ():
        addresses, ports = subset.get("addresses") or (), subset.get("ports") or ()
        if not ports:
            for address in addresses:
                total += 1
                shown.append(address.get("ip", ""))
        for port in ports:
            for address in addresses:
                total += 1
                ip = address.get("ip", "")
                shown.append(f"[{ip}]:{port.get('port', 0)}" if ":" in ip else f"{ip}:{port.get('port', 0)}")
    text = ",".join(shown[:_SHOWN])
    return [f"{text} + {total - _SHOWN} more..." if total > _SHOWN else text or NONE]


ENDPOINTS = simple(column("Endpoints"), cells=_endpoints)


def _listed(values: list[str], *, empty: str) -> str:
    text = ",".join(values[:_SHOWN])
    return f"{text} + {len(values) - _SHOWN} more..." if len(values) > _SHOWN else text or empty


def _endpoint_slice(obj: Tree) -> list[Any]:
    ports = [str(each["port"]) if each.get("port") is not None else "*" for each in obj.get("ports") or ()]
    addresses = [address for each in obj.get("endpoints") or () for address in each.get("addresses") or ()]
    return [obj.get("addressType", ""), _listed(ports, empty="<unset>"), _listed(addresses, empty="<unset>")]


ENDPOINT_SLICE = simple(column("AddressType"), column("Ports"), column("Endpoints"), cells=_endpoint_slice)


# ------------------------------------------------------------------------------------------------------ storage

_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _access_modes(modes: Any) -> str:
    distinct: list[str] = list(dict.fromkeys(modes or ()))
    return ",".join(_MODES.get(each, each) for each in distinct)


def _claim(obj: Tree, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    phase = "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", "")
    bound = bool(spec.get("volumeName"))
    capacity = get(status, "capacity", "storage") if bound else ""
    modes = _access_modes(status.get("accessModes")) if bound else ""
    storage_class = obj["metadata"].get("annotations", {}).get("volume.beta.kubernetes.io/storage-class") or spec.get("storageClassName", "")
    attributes = spec.get("volumeAttributesClassName") or "<unset>"
    return [
        name(obj),
        phase,
        spec.get("volumeName", ""),
        capacity,
        modes,
        storage_class,
        attributes,
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


PERSISTENT_VOLUME_CLAIM = Table(
    (
        NAME,
        column("Status"),
        column("Volume"),
        column("Capacity"),
        column("Access Modes"),
        column("StorageClass"),
        column("VolumeAttributesClass"),
        AGE,
        wide("VolumeMode"),
    ),
    _claim,
)


def _volume(obj: Tree, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    claim = f"{get(spec, 'claimRef', 'namespace')}/{get(spec, 'claimRef', 'name')}" if spec.get("claimRef") else ""
    return [
        name(obj),
        get(spec, "capacity", "storage"),
        _access_modes(spec.get("accessModes")),
        spec.get("persistentVolumeReclaimPolicy", ""),
        "Terminating" if "deletionTimestamp" in obj["metadata"] else status.get("phase", ""),
        claim,
        spec.get("storageClassName", ""),
        spec.get("volumeAttributesClassName") or "<unset>",
        status.get("reason", ""),
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


PERSISTENT_VOLUME = Table(
    (
        NAME,
        column("Capacity"),
        column("Access Modes"),
        column("Reclaim Policy"),
        column("Status"),
        column("Claim"),
        column("StorageClass"),
        column("VolumeAttributesClass"),
        column("Reason"),
        AGE,
        wide("VolumeMode"),
    ),
    _volume,
)


# ------------------------------------------------------------------------------------------------------ quota


def _quota(obj: Tree) -> list[Any]:
    hard, used = get(obj, "status", "hard", default={}), get(obj, "status", "used", default={})
    requests: list[str] = []
    limits: list[str] = []
    for resource in sorted(hard):
        text = f"{resource}: {used.get(resource, '0')}/{hard[resource]}"
        (limits if resource.startswith("limits.") else requests).append(text)
    return [", ".join(requests), ", ".join(limits)]


def _quota_row(obj: Tree, now: float) -> list[Any]:
    return [name(obj), *_quota(obj), age(obj, now)]


RESOURCE_QUOTA = Table((NAME, column("Request"), column("Limit"), AGE), _quota_row)


def _component(obj: Tree, _now: float) -> list[Any]:
    condition: Tree = next((each for each in obj.get("conditions") or () if each.get("type") == "Healthy"), {})
    state = {"True": "Healthy", "False": "Unhealthy"}.get(condition.get("status", ""), "Unknown")
    return [name(obj), state, condition.get("message", ""), condition.get("error", "")]


COMPONENT_STATUS = Table((NAME, column("Status"), column("Message"), column("Error")), _component)
