"""When the change happened that led to a write of endpoints: the annotation ``endpoints.kubernetes.io/last-change-trigger-time``.

It is the earliest of the changes since the last look: a pod's turn of readiness, or the creation of the Service. Mirrors TriggerTimeTracker of k8s.io/endpointslice.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.runtime.keys import key_of


def _turned(pod: Tree) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return condition.get("lastTransitionTime") or ""
    return ""


class Triggers:
    """What was seen of each Service and its pods at the last look. Stamps are compared as text: they are all of one form."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, dict[str, str]]] = {}

    def since_last(self, service: Tree, pods: Sequence[Tree]) -> str:
        """Return the time of the earliest change since the last call, "" when nothing changed that has a time."""
        key = key_of(service)
        created: str = service["metadata"]["creationTimestamp"]
        known = self._seen.get(key)
        before = known[1] if known is not None else {}
        turned: dict[str, str] = {}
        changed: list[str] = []
        for pod in pods:
            stamp = _turned(pod)
            if stamp:
                name = pod["metadata"]["name"]
                turned[name] = stamp
                if stamp > before.get(name, ""):
                    changed.append(stamp)
        if known is not None and created > known[0]:
            changed.append(created)
        self._seen[key] = (created, turned)
        if known is None:
            return created
        return min(changed, default="")

    def forget(self, key: str) -> None:
        """The Service is gone."""
        self._seen.pop(key, None)
