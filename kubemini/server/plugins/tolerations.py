"""DefaultTolerationSeconds: pods stay on a node that is not ready or unreachable for five minutes, unless they say otherwise."""

from __future__ import annotations

from functools import lru_cache

from kubemini.api.trees import Tree
from kubemini.machinery.memo import IdentityMemo, by_identity
from kubemini.server.admission import Admission, AdmissionRequest

SECONDS = 300
_KEYS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def _toleration(key: str) -> Tree:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS}


_BOTH = [_toleration(key) for key in _KEYS]
"""What pods without tolerations of their own get: one list for all of them."""


class DefaultTolerationSeconds(Admission):
    """Adds the two tolerations."""

    name = "DefaultTolerationSeconds"
    resources = ("pods",)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the pod with the tolerations that it lacks."""
        pod = request.obj or {}
        spec = pod["spec"]
        old = spec.get("tolerations")
        new = with_defaults(old) if old else _BOTH
        return None if new is old else {**pod, "spec": {**spec, "tolerations": new}}


@by_identity()
def with_defaults(tolerations: list[Tree]) -> list[Tree]:
    """Return tolerations with those that are missing; the same list where none is."""
    missing = [_toleration(key) for key in _KEYS if not any(_covers(each, key) for each in tolerations)]
    return [*tolerations, *missing] if missing else tolerations


def _covers(toleration: Tree, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in ("", "NoExecute")


class ExtendedResourceToleration(Admission):
    """Adds to a pod that asks for an extended resource the toleration of the taint named after it. Off unless a fleet's nodes carry such taints, as GKE's do."""

    name = "ExtendedResourceToleration"
    operations = ("CREATE",)
    resources = ("pods",)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the pod with the tolerations that it lacks."""
        pod = request.obj or {}
        spec = pod["spec"]
        containers: list[Tree] = spec.get("containers") or []  # a pod without any is refused later
        names = _extended([*containers, *spec["initContainers"]] if spec.get("initContainers") else containers)
        if not names:
            return None
        old = spec.get("tolerations") or []
        missing = [each for each in names if not any(toleration.get("key") == each and toleration.get("operator") == "Exists" for toleration in old)]
        if not missing:
            return None
        return {**pod, "spec": {**spec, "tolerations": _joined(old, tuple(missing))}}


@by_identity()
def _extended(containers: list[Tree]) -> tuple[str, ...]:
    found = {
        name: None
        for container in containers
        for name in ((container.get("resources") or {}).get("requests") or {})
        if "/" in name and "kubernetes.io/" not in name
    }
    return tuple(found)


@lru_cache(maxsize=256)
def _additions(names: tuple[str, ...]) -> tuple[Tree, ...]:
    return tuple({"key": name, "operator": "Exists"} for name in names)


_JOINED: IdentityMemo[dict[tuple[str, ...], list[Tree]]] = IdentityMemo(1024)


def _joined(old: list[Tree], names: tuple[str, ...]) -> list[Tree]:
    """Return one list for all pods that share `old`, so that what depends on it is computed once."""
    known = _JOINED.get(old)
    if known is None:
        known = _JOINED.put(old, {})
    found = known.get(names)
    if found is None:
        found = known[names] = [*old, *_additions(names)]
    return found
