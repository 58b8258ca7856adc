"""The variables by which the TPU processes of a group find each other. Mirrors ``pkg/utils/accelerators/tpu.go``."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.machinery import quantity

RESOURCE = "google.com/tpu"
DEFAULT_PORT = 8476


def pod_requests(spec: Tree) -> bool:
    """Tell whether any container of a pod asks for TPUs."""
    return any(_requests(each) for each in _containers(spec))


def _containers(spec: Tree) -> list[Tree]:
    return [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]


def _requests(container: Tree) -> bool:
    resources = container.get("resources")
    if not resources:
        return False
    for part in ("limits", "requests"):
        amount = (resources.get(part) or {}).get(RESOURCE)
        if amount is not None and quantity.units(amount):
            return True
    return False


def _port(container: Tree) -> str | None:
    for each in container.get("env") or ():
        if each["name"] == names.TPU_PROCESS_PORT_ENV:
            return str(each.get("value", ""))
    return None


def with_variables(pod: Tree, size: int) -> Tree:
    """Return a pod of a group of `size` with the variables in its TPU containers; as it is where the first of these has some already."""
    spec = pod["spec"]
    asking = [each for each in _containers(spec) if _requests(each)]
    if not asking or any(each["name"] in (names.TPU_WORKER_HOSTNAMES_ENV, names.TPU_WORKER_ID_ENV) for each in asking[0].get("env") or ()):
        return pod
    in_sub_group = names.SUB_GROUP_SIZE in (pod["metadata"].get("annotations") or {})
    added = _of_sub_group(pod, asking[0]) if in_sub_group else _of_group(pod, asking, size)
    changed = {id(container): {**container, "env": [*(container.get("env") or ()), *extra]} for container, extra in added}
    spec = dict(spec)
    for part in ("containers", "initContainers"):
        if spec.get(part):
            spec[part] = [changed.get(id(each), each) for each in spec[part]]
    return {**pod, "spec": spec}


Added = list[tuple[Tree, list[Tree]]]


def _variables(container: Tree, hosts: Sequence[str], addresses: Sequence[str], worker: int, leader: str, port: str) -> tuple[Tree, list[Tree]]:
    values = [
        (names.TPU_WORKER_HOSTNAMES_ENV, ",".join(hosts)),
        (names.TPU_WORKER_ID_ENV, str(worker)),
        (names.TPU_NAME_ENV, leader),
        (names.TPU_PROCESS_ADDRESSES_ENV, ",".join(addresses)),
    ]
    if _port(container) is None:
        values.append((names.TPU_PROCESS_PORT_ENV, port))
    return container, [{"name": name, "value": value} for name, value in values]


def _place(pod: Tree) -> tuple[str, int, bool]:
    """Return (leader's name, index in the group, whether the leader asks for TPUs too)."""
    meta = pod["metadata"]
    if meta["labels"].get(names.WORKER_INDEX) == "0":
        return meta["name"], 0, True
    leader, _, ordinal = meta["name"].rpartition("-")
    return leader, int(ordinal), (meta.get("annotations") or {}).get(names.LEADER_REQUESTS_TPUS) == "true"


def _of_group(pod: Tree, asking: Sequence[Tree], size: int) -> Added:
    leader, index, led = _place(pod)
    subdomain = pod["spec"].get("subdomain", "")
    ports = [_port(each) or str(DEFAULT_PORT + position) for position, each in enumerate(asking)]
    pods = [f"{leader}.{subdomain}"] if led else []
    pods += [f"{leader}-{each}.{subdomain}" for each in range(1, size)]
    # Every pod is taken to have as many TPU containers as this one
    hosts = [host for host in pods for _ in ports]
    addresses = [f"{host}:{port}" for host in pods for port in ports]
    first = (index if led else index - 1) * len(asking)
    return [_variables(each, hosts, addresses, first + position, leader, ports[position]) for position, each in enumerate(asking)]


def _of_sub_group(pod: Tree, container: Tree) -> Added:
    meta = pod["metadata"]
    size = int(meta["annotations"][names.SUB_GROUP_SIZE])
    sub_group = int(meta["labels"][names.SUB_GROUP_INDEX])
    leader, index, led = _place(pod)
    worker = index % size
    if not led:
        worker, sub_group = (index - 1) % size, (index - 1) // size
    start, end = size * sub_group + 1, size * (sub_group + 1)
    subdomain = pod["spec"].get("subdomain", "")
    hosts: list[str] = []
    if led:
        # The leader takes the first place, so that everyone moves up by one
        end -= 1
        if index == 0 or sub_group == 0:
            hosts.append(f"{leader}.{subdomain}")
        else:
            start -= 1
    hosts += [f"{leader}-{each}.{subdomain}" for each in range(start, end + 1)]
    port = _port(container)
    text = str(DEFAULT_PORT) if port is None else port
    return [_variables(container, hosts, [f"{host}:{text}" for host in hosts], worker, leader, text)]
