"""Texts of ``Warning`` headers about pods: legal, but hardly meant. Mirrors ``pkg/api/pod/warnings.go`` (1.36)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import names, quantity
from kubemini.machinery.memo import by_identity
from kubemini.machinery.pod_requests import is_sidecar
from kubemini.server.kinds.core.claims import claim_spec_warnings
from kubemini.server.kinds.core.network_warnings import address_warnings
from kubemini.server.kinds.core.overlaps import overlapping_paths

OLD_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": 'deprecated since v1.17; use "topology.kubernetes.io/region" instead',
    "failure-domain.beta.kubernetes.io/zone": 'deprecated since v1.17; use "topology.kubernetes.io/zone" instead',
    "beta.kubernetes.io/instance-type": 'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead',
}
_ANNOTATIONS = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
    "security.alpha.kubernetes.io/unsafe-sysctls": 'non-functional in v1.11+; use the "sysctls" field instead',
}
_POD_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_NO_SECCOMP = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_APP_ARMOR = 'deprecated since v1.30; use the "appArmorProfile" field instead'
_NULL_SELECTOR = "a null labelSelector results in matching no pod"
_REQUIRED, _PREFERRED = "requiredDuringSchedulingIgnoredDuringExecution", "preferredDuringSchedulingIgnoredDuringExecution"
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
_SPELT = {"storageos": "storageOS"}
_BYTES = ("memory", "ephemeral-storage")
_places = re.compile(r"^(?=spec|metadata)|(?<= with )(?=spec\.)|(?<= use )(?=spec\.)").sub


def pod_warnings(pod: Tree, *, template: bool = False, path: str = "spec") -> list[str]:
    """Return the warnings about a pod or a pod template (`template`, whose spec is at `path`)."""
    metadata: Tree = pod.get("metadata") or {}
    found = _warnings(pod.get("spec") or {}, metadata.get("annotations") or {}, template=template)
    if template:
        return [_places(path.removesuffix("spec"), each) for each in found] if found else found
    name = metadata.get("name", "")
    if name and ("." in name or len(name) > 63) and (problem := names.dns1123_label(name)) is not None:
        listed = " ".join(names.faults(problem))
        text = f"metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{listed}]"
        return [text, *found]
    return found


def _warnings(spec: Tree, annotations: Tree, *, template: bool) -> list[str]:
    found: list[str] = []
    chosen = spec.get("nodeSelector")
    if chosen:
        found += [f"spec.nodeSelector[{key}]: {text}" for key, text in OLD_NODE_LABELS.items() if key in chosen]
    affinity = spec.get("affinity")
    if affinity:
        found += _node_affinity(affinity)
    if part := spec.get("topologySpreadConstraints"):
        found += _spread(part)
    if annotations:
        found += [f"metadata.annotations[{key}]: {text}" for key, text in _ANNOTATIONS.items() if key in annotations]
    for key, work in _PARTS:
        if part := spec.get(key):
            found += work(part)
    if overhead := spec.get("overhead"):
        for name in _BYTES:
            found += _fraction(overhead, name, "spec.overhead")
    inits, containers = spec.get("initContainers"), spec.get("containers") or []
    if annotations and any(key.startswith((_SECCOMP, _APP_ARMOR, _POD_SECCOMP)) for key in annotations):
        found += _with_annotations(spec, annotations, template=template)
    else:
        if inits:
            found += [each.replace("spec.containers", "spec.initContainers", 1) for each in _containers(inits)]
        found += _containers(containers)
    found += _ports(inits, containers) if inits else _ports_of(containers)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        found.append("spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1")
    if affinity:
        found += _pod_affinity(affinity)
    if "dnsConfig" in spec or "hostAliases" in spec:
        found += _addresses(spec)
    return found


def _fraction(amounts: Tree, name: str, path: str) -> list[str]:
    if name in amounts and quantity.milli(amounts[name]) % 1000:
        return [f'{path}[{name}]: fractional byte value "{amounts[name]}" is invalid, must be an integer']
    return []


@by_identity()
def _node_affinity(tree: Tree) -> list[str]:
    affinity: Any = tree.get("nodeAffinity") or {}
    here = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    found: list[str] = []
    for index, term in enumerate((affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()):
        found += _term(term, f"{here}[{index}]", values=False)
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        found += _term(term.get("preference") or {}, f"spec.affinity.nodeAffinity.{_PREFERRED}[{index}].preference", values=True)
    return found


def _term(term: Tree, path: str, *, values: bool) -> Iterator[str]:
    for index, each in enumerate(term.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        if each.get("key") in OLD_NODE_LABELS:
            yield f"{here}.key: {each['key']} is {OLD_NODE_LABELS[each['key']]}"
        for at, value in enumerate(each.get("values") or ()) if values else ():
            for fault in names.faults(names.label_value(value) or ""):
                yield f"{here}.values[{at}]: {value} is invalid, {fault}"


@by_identity()
def _pod_affinity(tree: Tree) -> list[str]:
    found: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        part: Any = tree.get(kind) or {}
        for index, term in enumerate(part.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                found.append(f"spec.affinity.{kind}.{_REQUIRED}[{index}].labelSelector: {_NULL_SELECTOR}")
        for index, term in enumerate(part.get(_PREFERRED) or ()):
            if (term.get("podAffinityTerm") or {}).get("labelSelector") is None:
                found.append(f"spec.affinity.{kind}.{_PREFERRED}[{index}].podAffinityTerm.labelSelector: {_NULL_SELECTOR}")
    return found


@by_identity()
def _spread(entries: list[Tree]) -> list[str]:
    found: list[str] = []
    for index, each in enumerate(entries):
        here = f"spec.topologySpreadConstraints[{index}]"
        if each.get("topologyKey") in OLD_NODE_LABELS:
            found.append(f"{here}.topologyKey: {each['topologyKey']} is {OLD_NODE_LABELS[each['topologyKey']]}")
        if each.get("labelSelector") is None:
            found.append(f"{here}.labelSelector: {_NULL_SELECTOR}")
    return found


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
        if name in seen:
            found.append(f'spec.imagePullSecrets[{index}].name: duplicate name "{name}"')
        seen.add(name)
    found += [f'spec.imagePullSecrets[{index}].name: invalid empty name ""' for index, each in enumerate(entries) if not each.get("name")]
    return found


@by_identity()
def _volumes(entries: list[Tree]) -> list[str]:
    found: list[str] = []
    for index, volume in enumerate(entries):
        here = f"spec.volumes[{index}]"
        for key, text in GONE_VOLUMES.items():
            if volume.get(key) is not None:
                found.append(f"{here}.{_SPELT.get(key, key)}: {text}")
        limit = (volume.get("emptyDir") or {}).get("sizeLimit")
        if limit is not None and quantity.milli(limit) % 1000:
            found.append(f'{here}.emptyDir.sizeLimit: fractional byte value "{limit}" is invalid, must be an integer')
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
        if claim is not None:
            found += claim_spec_warnings(claim.get("spec") or {}, f"{here}.ephemeral.volumeClaimTemplate.spec")
    for volume in entries:
        found += overlapping_paths(volume)
    return found


# ----------------------------------------------------------------------------------------------- containers


@by_identity()
def _containers(entries: list[Tree]) -> list[str]:
    return [each for index, container in enumerate(entries) for each in _container(container, f"spec.containers[{index}]")]


def _container(container: Tree, path: str) -> list[str]:
    resources: Tree = container.get("resources") or {}
    found: list[str] = []
    if resources:
        for name in _BYTES:
            for kind in ("limits", "requests"):
                found += _fraction(resources.get(kind) or {}, name, f"{path}.resources.{kind}")
    found += _hidden_variables(container.get("env") or (), path)
    return found


def _with_annotations(spec: Tree, annotations: Tree, *, template: bool) -> Iterator[str]:
    """Yield the warnings about containers where annotations speak of their security."""
    security: Tree = spec.get("securityContext") or {}
    if security.get("seccompProfile") is None and _POD_SECCOMP in annotations:
        yield f"metadata.annotations[{_POD_SECCOMP}]: {_NO_SECCOMP}"
    for field in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(field) or ()):
            own: Tree = container.get("securityContext") or {}
            name = container.get("name", "")
            if own.get("seccompProfile") is None and _SECCOMP + name in annotations:
                yield f"metadata.annotations[{_SECCOMP}{name}]: {_NO_SECCOMP}"
            if template and not (own.get("appArmorProfile") or security.get("appArmorProfile")) and _APP_ARMOR + name in annotations:
                yield f"metadata.annotations[{_APP_ARMOR}{name}]: {_NO_APP_ARMOR}"
            yield from _container(container, f"spec.{field}[{index}]")


def _hidden_variables(variables: Any, path: str) -> Iterator[str]:
    """Name variables that hide an earlier one without using it."""
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        used = f"$({name})"
        if name in seen and (variable.get("valueFrom") is not None or value == used or used not in value):
            yield f'{path}.env[{index}]: hides previous definition of "{name}", which may be dropped when using apply'
        seen.add(name)


# ----------------------------------------------------------------------------------------------- ports


def _ports(inits: list[Tree], containers: list[Tree]) -> list[str]:
    first = [(f"spec.initContainers[{index}]", each) for index, each in enumerate(inits)]
    then = [(f"spec.containers[{index}]", each) for index, each in enumerate(containers)]
    lasting = [each for each in first if is_sidecar(each[1])]
    return [*_doubled([*first, *then]), *_namesakes([*lasting, *then])]


@by_identity()
def _ports_of(entries: list[Tree]) -> list[str]:
    if not any(each.get("ports") for each in entries):
        return []
    containers = [(f"spec.containers[{index}]", each) for index, each in enumerate(entries)]
    return [*_doubled(containers), *_namesakes(containers)]


def _doubled(containers: list[tuple[str, Tree]]) -> Iterator[str]:
    """Name ports that are declared twice, in one way or in two."""
    seen: dict[tuple[int, str], list[tuple[str, str, int]]] = {}
    for path, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            here, number, protocol = f"{path}.ports[{index}]", port.get("containerPort", 0), port.get("protocol", "TCP")
            address, host = port.get("hostIP", ""), port.get("hostPort", 0)
            if address and not host:
                shown = f"{{Name:{port.get('name', '')} HostPort:0 ContainerPort:{number} Protocol:{protocol} HostIP:{address}}}"
                yield f"{here}: hostIP set without hostPort: {shown}"
            others = seen.setdefault((number, protocol), [])
            for place, its_address, its_host in others:
                if (address, host) == (its_address, its_host):
                    yield f"{here}: duplicate port definition with {place}"
                elif not host or not its_host:
                    yield f"{here}: overlapping port definition with {place}"
                elif host == its_host and bool(address) != bool(its_address):
                    yield f"{here}: dangerously ambiguous port definition with {place}"
            others.append((here, address, host))


def _namesakes(containers: list[tuple[str, Tree]]) -> Iterator[str]:
    """Name ports that are called like one before."""
    seen: dict[str, str] = {}
    for path, container in containers:
        for index, port in enumerate(container.get("ports") or ()):
            name, here = port.get("name", ""), f"{path}.ports[{index}]"
            other = seen.setdefault(name, here) if name else here
            if other != here:
                yield f'{here}: duplicate port name "{name}" with {other}, services and probes that select ports by name will use {other}'


def _addresses(spec: Tree) -> list[str]:
    found: list[str] = []
    for index, address in enumerate((spec.get("dnsConfig") or {}).get("nameservers") or ()):
        found += address_warnings(address, f"spec.dnsConfig.nameservers[{index}]")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        found += address_warnings(alias.get("ip", ""), f"spec.hostAliases[{index}].ip")
    return found


_PARTS = (
    ("volumes", _volumes),
    ("hostAliases", _host_aliases),
    ("imagePullSecrets", _pull_secrets),
)
