"""DefaultTolerationSeconds: pods stay on a node that is not ready or unreachable for five minutes, unless they say otherwise."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.memo import by_identity
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
