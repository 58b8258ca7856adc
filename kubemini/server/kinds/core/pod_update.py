"""What may change on a pod: on the pod itself, its status, its ephemeral containers and its resources.

Mirrors ``ValidatePodUpdate``, ``ValidatePodStatusUpdate``, ``ValidatePodEphemeralContainersUpdate`` and ``ValidatePodResize``.
"""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import duplicate, forbidden, invalid
from kubemini.machinery.pod_requests import is_sidecar, qos_class
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, ip, is_ipv4, same, wrong
from kubemini.server.kinds.core.internal_pod import EPHEMERAL_CONTAINER, NODE_SELECTOR_TERM, POD_SPEC
from kubemini.server.kinds.core.pod_spec_validation import MIRROR

_UPDATABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_COMPUTE = ("cpu", "memory")


def updated_spec(new: Tree, old: Tree) -> Errors:
    """Check the transition of the spec in an ordinary update."""
    if new is old:
        return
    for key in ("containers", "initContainers"):
        if len(new.get(key) or ()) != len(old.get(key) or ()):
            yield forbidden(f"spec.{key}", "pod updates may not add or remove containers")
            return
    after, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if after is not None:
        if not 0 <= after <= 2147483647:
            yield invalid("spec.activeDeadlineSeconds", after, names.between_text(0, 2147483647))
            return
        if before is not None and before < after:
            yield invalid("spec.activeDeadlineSeconds", after, "must be less than or equal to previous value")
            return
    elif before is not None:
        yield invalid("spec.activeDeadlineSeconds", None, "must not update from a positive integer to nil value")
    yield from _tolerations(new.get("tolerations") or [], old.get("tolerations") or [])
    yield from _gates(new.get("schedulingGates") or [], old.get("schedulingGates") or [])
    if same(new, old):
        return
    munged = _with_old_images(new, old)
    for key in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        munged[key] = old.get(key)
    if (old.get("terminationGracePeriodSeconds") or 0) < 0 and munged.get("terminationGracePeriodSeconds") == 1:
        munged["terminationGracePeriodSeconds"] = old["terminationGracePeriodSeconds"]
    if old.get("schedulingGates"):
        yield from _gated(munged, old)
    if not same(munged, old):
        yield forbidden("spec", _UPDATABLE + POD_SPEC.difference(old, munged))


def _with_old_images(new: Tree, old: Tree) -> Tree:
    munged = dict(new)
    for key in ("containers", "initContainers"):
        if new.get(key) is not old.get(key):
            pairs = zip(new.get(key) or (), old.get(key) or (), strict=True)
            munged[key] = [{**one, "image": other.get("image", "")} for one, other in pairs]
    return munged


def _tolerations(new: list[Tree], old: list[Tree]) -> Errors:
    if new is old:
        return
    known = [_without_seconds(each) for each in new]
    if any(_without_seconds(each) not in known for each in old):
        yield forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")


def _without_seconds(toleration: Tree) -> Tree:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds" and value}


def _gates(new: list[Tree], old: list[Tree]) -> Errors:
    known = {each.get("name") for each in old}
    for index, gate in enumerate(new):
        if gate.get("name") not in known:
            yield forbidden(
                f"spec.schedulingGates[{index}].name", f"only deletion is allowed, but found new scheduling gate '{gate.get('name', '')}'"
            )


def _gated(munged: Tree, old: Tree) -> Errors:
    """Check what a gated pod may change besides, and put the old values into `munged`."""
    before, after = old.get("nodeSelector") or {}, munged.get("nodeSelector") or {}
    if any(after.get(key) != value for key, value in before.items()):
        yield invalid("spec.nodeSelector", after, "only additions to spec.nodeSelector are allowed (no mutations or deletions)")
    munged["nodeSelector"] = before
    old_affinity, new_affinity = old.get("affinity") or {}, munged.get("affinity") or {}
    old_node, new_node = old_affinity.get("nodeAffinity"), new_affinity.get("nodeAffinity")
    if not same(old_node, new_node):
        yield from _node_affinity(new_node or {}, old_node or {})
    restored = {key: value for key, value in new_affinity.items() if key != "nodeAffinity"}
    if old_node is not None:
        restored["nodeAffinity"] = old_node
    munged["affinity"] = restored or old.get("affinity")


def _node_affinity(new: Tree, old: Tree) -> Errors:
    path = f"spec.affinity.nodeAffinity.{_REQUIRED}.nodeSelectorTerms"
    before = (old.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    after = (new.get(_REQUIRED) or {}).get("nodeSelectorTerms") or []
    if old.get(_REQUIRED) is None:
        return
    if before and len(before) != len(after):
        yield invalid(path, NODE_SELECTOR_TERM.shown(after), "no additions/deletions to non-empty NodeSelectorTerms list are allowed")
        return
    for index, (one, other) in enumerate(zip(before, after, strict=False)):
        if not _only_added(one, other):
            yield invalid(f"{path}[{index}]", NODE_SELECTOR_TERM.shown(other), "only additions are allowed (no mutations or deletions)")


def _only_added(old: Tree, new: Tree) -> bool:
    keys = ("matchExpressions", "matchFields")
    if not any(old.get(key) for key in keys):
        return not any(new.get(key) for key in keys)
    return all(same((new.get(key) or [])[: len(old.get(key) or ())], old.get(key) or []) for key in keys)


# ------------------------------------------------------------------------------------------------------ status


def updated_status(new: Tree, old: Tree) -> Errors:
    """Check a write of the status; both are whole pods."""
    status, before, spec = new.get("status") or {}, old.get("status") or {}, old.get("spec") or {}
    conditions = status.get("conditions")
    if conditions is not None and conditions is not before.get("conditions"):
        for index, condition in enumerate(conditions):
            if names.qualified_name(condition.get("type", "")) is not None:
                yield from wrong(names.qualified_name, condition.get("type", ""), f"metadata.conditions[{index}].Type")
    nominated = status.get("nominatedNodeName")
    if nominated and nominated != before.get("nominatedNodeName"):
        yield from wrong(names.dns1123_subdomain, nominated, "status.nominatedNodeName")
    if status.get("qosClass") != before.get("qosClass"):
        yield invalid("status.qosClass", status.get("qosClass"), IMMUTABLE)
    policy = spec.get("restartPolicy", "Always")
    for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"):
        earlier = before.get(key)
        if earlier and earlier is not status.get(key):
            applied = "Never" if key.startswith("ephemeral") else policy
            yield from _states(status.get(key) or [], earlier, f"status.{key}", applied, spec, init=key.startswith("init"))
    claims = status.get("resourceClaimStatuses")
    if claims:
        yield from _claim_statuses(claims, spec, "status.resourceClaimStatuses")
    yield from _addresses(status, before)


def _states(new: list[Tree], old: list[Tree], path: str, policy: str, spec: Tree, *, init: bool) -> Errors:
    """Refuse terminated containers that come to life again, where their restart policy forbids it."""
    if policy == "Always":
        return
    now = {each.get("name"): each for each in new}
    for index, status in enumerate(old):
        terminated = (status.get("state") or {}).get("terminated")
        if terminated is None or (policy == "OnFailure" and terminated.get("exitCode", 0) != 0):
            continue
        if _restarts_by_itself(status.get("name"), spec, init=init):
            continue
        current = now.get(status.get("name"))
        if current is not None and (current.get("state") or {}).get("terminated") is None:
            yield forbidden(f"{path}[{index}].state", "may not be transitioned to non-terminated state")


def _restarts_by_itself(name: Any, spec: Tree, *, init: bool) -> bool:
    for container in spec.get("initContainers" if init else "containers") or ():
        if container.get("name") == name:
            return container.get("restartPolicy") is not None or bool(container.get("restartPolicyRules"))
    return False


def _claim_statuses(statuses: list[Tree], spec: Tree, path: str) -> Errors:
    known = {each.get("name") for each in spec.get("resourceClaims") or ()}
    seen: set[str] = set()
    for index, status in enumerate(statuses):
        name = status.get("name", "")
        if name not in known:
            yield invalid(f"{path}[{index}].name", name, "must match the name of an entry in `spec.resourceClaims`")
        if name in seen:
            yield duplicate(f"{path}[{index}].name", name)
        seen.add(name)
        if status.get("resourceClaimName") is not None:
            yield from wrong(names.dns1123_subdomain, status["resourceClaimName"], f"{path}[{index}].name")


def _addresses(status: Tree, before: Tree) -> Errors:
    for key in ("podIPs", "hostIPs"):
        addresses = status.get(key)
        if not addresses or addresses == before.get(key):
            continue
        if len(addresses) == 1 and is_ipv4(addresses[0].get("ip", "")) and (key == "podIPs" or status.get("hostIP") == addresses[0]["ip"]):
            continue
        if key == "hostIPs" and status.get("hostIP") != addresses[0].get("ip"):
            yield invalid("status.hostIPs[0].ip", addresses[0].get("ip"), "must be equal to `hostIP`")
        for index, each in enumerate(addresses):
            yield from ip(each.get("ip", ""), f"status.{key}[{index}]")
        families = [":" in each.get("ip", "") for each in addresses]
        if len(families) > 2 or len(set(families)) != len(families):
            yield invalid(f"status.{key}", addresses, "may specify no more than one IP for each IP family")


# ------------------------------------------------------------------------------------------------------ ephemeral containers, resize


def updated_ephemeral_containers(new: Tree, old: Tree) -> Errors:
    """Check the transition of ``/ephemeralcontainers``: only additions."""
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden("", "static pods do not support ephemeral containers")
        return
    now = {each.get("name"): each for each in new["spec"].get("ephemeralContainers") or ()}
    for container in old["spec"].get("ephemeralContainers") or ():
        name = container.get("name", "")
        current = now.get(name)
        if current is None:
            yield forbidden("spec.ephemeralContainers", f'existing ephemeral containers "{name}" may not be removed\n')
        elif not same(container, current):
            text = f'existing ephemeral containers "{name}" may not be changed\n{EPHEMERAL_CONTAINER.difference(container, current)}'
            yield forbidden("spec.ephemeralContainers", text)


def resized(new: Tree, old: Tree) -> Tree:
    """Return the old spec with the resources and resize policies of the new one's containers, by name."""
    fresh = dict(old)
    for key in ("containers", "initContainers"):
        if old.get(key):
            wanted = {each.get("name"): each for each in new.get(key) or ()}
            fresh[key] = [_resized_container(wanted.get(each.get("name")), each) for each in old[key]]
    return fresh


def _resized_container(new: Tree | None, old: Tree) -> Tree:
    if new is None:
        return old
    changed: Tree = {key: new[key] for key in ("resources", "resizePolicy") if key in new and new[key] != old.get(key)}
    return {**old, **changed} if changed else old


def updated_resources(new: Tree, old: Tree) -> Errors:
    """Check the transition of ``/resize``."""
    after, before = new["spec"], old["spec"]
    for spec in (before, after):
        if any((spec.get("resources") or {}).get(key) for key in ("requests", "limits")):
            yield forbidden("", "pods with pod-level resources cannot be resized")
            return
    if MIRROR in (old["metadata"].get("annotations") or {}):
        yield forbidden("", "static pods cannot be resized")
        return
    if (before.get("os") or {}).get("name") == "windows":
        yield forbidden("", "windows pods cannot be resized")
        return
    quality = (old.get("status") or {}).get("qosClass") or qos_class(before)
    if qos_class(after) != quality:
        yield invalid("spec", quality, "Pod QOS Class may not change as a result of resizing")
    for key in ("initContainers", "containers"):
        for index, (one, other) in enumerate(zip(after.get(key) or (), before.get(key) or (), strict=True)):
            here = f"spec.{key}[{index}].resources"
            if key == "initContainers" and not is_sidecar(other):
                if not same(one, other):
                    yield forbidden("spec", "resources for non-sidecar init containers are immutable")
                continue
            yield from _container_resize(one, other, here)


def _container_resize(new: Tree, old: Tree, path: str) -> Errors:
    after, before = new.get("resources") or {}, old.get("resources") or {}
    for key in ("requests", "limits"):
        now, then = after.get(key) or {}, before.get(key) or {}
        if any(name not in now for name in then):
            yield forbidden(f"{path}.{key}", f"resource {key} cannot be removed")
        if any(now.get(name) != then.get(name) for name in {**now, **then} if name not in _COMPUTE):
            yield forbidden("spec", "only cpu and memory resources are mutable")
