"""Whether a node takes a pod that never saw the scheduler. Mirrors the kubelet's admission (``pkg/kubelet/lifecycle/predicate.go``, 1.36)."""

from __future__ import annotations

from collections.abc import Iterable

from kubemini.api.trees import Tree
from kubemini.machinery import quantity
from kubemini.machinery.node_matching import matches_node, tolerates
from kubemini.machinery.pod_requests import Amounts, of_pod

ONE = 10**9
"""One whole unit: amounts are in billionths."""
TERMINAL = ("Succeeded", "Failed")
CLUSTER_DOMAIN = "cluster.local"
HOSTNAME, KERNEL_NAME = 63, 64
"""Characters of a hostname, and of the kernel's."""
_FIRST = {"pods": 0, "cpu": 1, "memory": 2, "ephemeral-storage": 3}


def bypassed(pod: Tree) -> bool:
    """Tell whether a pod got its node without a binding: then nothing says yet that it is scheduled."""
    for each in (pod.get("status") or {}).get("conditions") or ():  # noqa: SIM110  asked twice of every pod: a generator takes four times as long
        if each["type"] == "PodScheduled":
            return False
    return True


def rejection(pod: Tree, node: Tree, others: Iterable[Tree]) -> tuple[str, str] | None:
    """Return (reason, message) why a node does not take a pod beside the `others` that it runs, or None."""
    spec = pod["spec"]
    found = _short(pod, node, others)
    if found is not None:
        name, wanted, used, capacity = found
        return f"OutOf{name}", f"Node didn't have enough resource: {name}, requested: {wanted}, used: {used}, capacity: {capacity}"
    if not matches_node(spec, node):
        return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
    taken = {(port, protocol) for other in others for port, protocol in _host_ports(other)}
    if any(each in taken for each in _host_ports(pod)):
        return "NodePorts", "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
    tolerations = spec.get("tolerations") or ()
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] == "NoExecute" and not any(tolerates(each, taint) for each in tolerations):
            return "TaintToleration", f"Predicate TaintToleration failed: node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
    return None


def unnameable(pod: Tree) -> str:
    """Return why a pod that is called by its full name inside (setHostnameAsFQDN) cannot be: a kernel takes 64 characters. "" where it can."""
    spec = pod["spec"]
    if not spec.get("setHostnameAsFQDN"):
        return ""
    meta = pod["metadata"]
    name: str = spec.get("hostname") or meta["name"][:HOSTNAME].rstrip("-.")
    if spec.get("subdomain"):
        name += f".{spec['subdomain']}.{meta['namespace']}.svc.{CLUSTER_DOMAIN}"
    if len(name) <= KERNEL_NAME:
        return ""
    return (
        "Failed to create pod sandbox: failed to construct FQDN from pod hostname and cluster domain, "
        f"FQDN {name} is too long ({KERNEL_NAME} characters is the max, {len(name)} characters requested)"
    )


def _short(pod: Tree, node: Tree, others: Iterable[Tree]) -> tuple[str, int, int, int] | None:
    """Return the first resource that is short: (name, requested, used, capacity) in the units that the kubelet prints."""
    allocatable = {name: quantity.nano(value) for name, value in ((node.get("status") or {}).get("allocatable") or {}).items()}
    wanted: Amounts = {**of_pod(pod["spec"], "requests"), "pods": ONE}
    used: Amounts = {}
    for other in others:
        for name, value in {**of_pod(other["spec"], "requests"), "pods": ONE}.items():
            used[name] = used.get(name, 0) + value
    for name in sorted(wanted, key=lambda name: (_FIRST.get(name, 4), name)):
        if wanted[name] and wanted[name] > allocatable.get(name, 0) - used.get(name, 0):
            unit = ONE // 1000 if name == "cpu" else ONE
            return name, -(-wanted[name] // unit), -(-used.get(name, 0) // unit), allocatable.get(name, 0) // unit
    return None


def _host_ports(pod: Tree) -> list[tuple[int, str]]:
    return [
        (port["hostPort"], port.get("protocol", "TCP"))
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def taken_before(pod: Tree, node: Tree, others: Iterable[Tree]) -> list[Tree]:
    """Return the pods that a node runs before it looks at one: those that run, and of the older ones that it has not looked at yet those that it will take."""
    mine = _age(pod)
    taken: list[Tree] = []
    waiting: list[Tree] = []
    for other in others:
        phase = (other.get("status") or {}).get("phase")
        if other["metadata"]["uid"] == pod["metadata"]["uid"] or phase in TERMINAL:
            continue
        if phase == "Running" or not bypassed(other):
            taken.append(other)
        elif _age(other) < mine:
            waiting.append(other)
    for other in sorted(waiting, key=_age):
        if rejection(other, node, taken) is None:
            taken.append(other)
    return taken


def _age(pod: Tree) -> tuple[str, str]:
    return (pod["metadata"].get("creationTimestamp") or "", pod["metadata"]["uid"])
