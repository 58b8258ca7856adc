"""Texts of ``Warning`` headers about pods: legal, but hardly meant. Mirrors ``pkg/api/pod/warnings.go`` (1.36)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import names, quantity
from kubemini.machinery.memo import by_identity
from kubemini.machinery.pod_requests import is_sidecar

OLD_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
}
GONE_VOLUMES = {
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_BYTES = ("memory", "ephemeral-storage")


def pod_warnings(pod: Tree, *, template: bool = False, path: str = "spec") -> list[str]:
    """Return the warnings about a pod or a pod template (`template`, whose spec is at `path`)."""
    spec: Tree = pod.get("spec") or {}
    metadata: Tree = pod.get("metadata") or {}
    found = [each.replace("spec", path, 1) if path != "spec" and each.startswith("spec") else each for each in _spec(spec)]
    annotations: Tree = metadata.get("annotations") or {}
    for key, text in _ANNOTATIONS.items():
        if key in annotations:
            where = path.removesuffix("spec") + "metadata" if template else "metadata"
            found.append(f"{where}.annotations[{key}]: {text}")
    name = metadata.get("name", "")
    if not template and name and "." in name:
        problem = names.dns1123_label(name)
        listed = " ".join(names.faults(problem))
        found.append(
            f"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{listed}]"
        )
    return found


def _spec(spec: Tree) -> list[str]:
    found: list[str] = []
    chosen = spec.get("nodeSelector")
    if chosen:
        found += [f"spec.nodeSelector[{key}]: {text}" for key, text in OLD_NODE_LABELS.items() if key in chosen]
    for key, work in _PARTS:
        part = spec.get(key)
        if part:
            found += work(part)
    inits = spec.get("initContainers")
    if inits:
        found += [each.replace("spec.containers", "spec.initContainers", 1) for each in _containers(inits)]
        found += _ports(spec)
    else:
        found += _ports_of(spec.get("containers") or [])
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        found.append("spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1")
    return found


@by_identity()
def _affinity(tree: Tree) -> list[str]:
    required: Any = (tree.get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    found: list[str] = []
    for index, term in enumerate(required.get("nodeSelectorTerms") or ()):
        here = f"spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        for at, each in enumerate(term.get("matchExpressions") or ()):
            if each.get("key") in OLD_NODE_LABELS:
                found.append(f"{here}.matchExpressions[{at}].key: {each['key']} is {OLD_NODE_LABELS[each['key']]}")
    return found


@by_identity()
def _spread(entries: list[Tree]) -> list[str]:
    return [
        f"spec.topologySpreadConstraints[{index}].topologyKey: {each['topologyKey']} is {OLD_NODE_LABELS[each['topologyKey']]}"
        for index, each in enumerate(entries)
        if each.get("topologyKey") in OLD_NODE_LABELS
    ]


@by_identity()
def _host_aliases(entries: list[Tree]) -> list[str]:
    seen: set[str] = set()
    found: list[str] = []
    for index, each in enumerate(entries):
        address = each.get("ip", "")
        if address in seen:
            found.append(f'spec.hostAliases[{index}].ip: duplicate ip "{address}"')
        seen.add(address)
    return found


@by_identity()
def _pull_secrets(entries: list[Tree]) -> list[str]:
    seen: set[str] = set()
    found: list[str] = []
    for index, each in enumerate(entries):
        name = each.get("name", "")
        if not name:
            found.append(f'spec.imagePullSecrets[{index}].name: invalid empty name ""')
        elif name in seen:
            found.append(f'spec.imagePullSecrets[{index}].name: duplicate name "{name}"')
        seen.add(name)
    return found


@by_identity()
def _volumes(entries: list[Tree]) -> list[str]:
    found: list[str] = []
    for index, volume in enumerate(entries):
        for key, text in GONE_VOLUMES.items():
            if volume.get(key) is not None:
                found.append(f"spec.volumes[{index}].{key}: {text}")
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit is not None and quantity.milli(limit) % 1000:
            found.append(f'spec.volumes[{index}].emptyDir.sizeLimit: fractional byte value "{limit}" is invalid, must be an integer')
    return found


@by_identity()
def _containers(entries: list[Tree]) -> list[str]:
    found: list[str] = []
    for index, container in enumerate(entries):
        here = f"spec.containers[{index}]"
        for kind in ("limits", "requests"):
            amounts = (container.get("resources") or {}).get(kind) or {}
            for name in _BYTES:
                if name in amounts and quantity.milli(amounts[name]) % 1000:
                    found.append(f'{here}.resources.{kind}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer')
        found += _hidden_variables(container.get("env") or (), here)
    return found


def _hidden_variables(variables: Any, path: str) -> Iterator[str]:
    """Name variables that hide an earlier one without using it."""
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name = variable.get("name", "")
        if name in seen and f"$({name})" not in variable.get("value", ""):
            yield f'{path}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


def _ports(spec: Tree) -> list[str]:
    """Name ports that are declared twice, sidecars included."""
    inits = [(f"spec.initContainers[{index}]", each) for index, each in enumerate(spec["initContainers"]) if is_sidecar(each)]
    return _doubled([*inits, *((f"spec.containers[{index}]", each) for index, each in enumerate(spec.get("containers") or ()))])


@by_identity()
def _ports_of(entries: list[Tree]) -> list[str]:
    return _doubled([(f"spec.containers[{index}]", each) for index, each in enumerate(entries)])


def _doubled(containers: list[tuple[str, Tree]]) -> list[str]:
    found: list[str] = []
    seen: dict[tuple[int, str, str, int], str] = {}
    named: dict[str, str] = {}
    for path, container in containers:
        mine: dict[tuple[int, str, str, int], str] = {}
        for index, port in enumerate(container.get("ports") or ()):
            here = f"{path}.ports[{index}]"
            key = (port.get("containerPort", 0), port.get("protocol", "TCP"), port.get("hostIP", ""), port.get("hostPort", 0))
            if key in mine or key in seen:
                found.append(f"{here}: duplicate port definition with {mine.get(key) or seen[key]}")
            mine.setdefault(key, here)
            name = port.get("name", "")
            other = named.setdefault(name, here) if name else here
            if other != here:
                text = f'duplicate port name "{name}" with {other}, services and probes that select ports by name will use {other}'
                found.append(f"{here}: {text}")
        seen = {**mine, **seen}
    return found


_PARTS = (
    ("affinity", _affinity),
    ("topologySpreadConstraints", _spread),
    ("hostAliases", _host_aliases),
    ("imagePullSecrets", _pull_secrets),
    ("volumes", _volumes),
    ("containers", _containers),
)
