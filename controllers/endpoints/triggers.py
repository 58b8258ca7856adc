"""When the change happened that led to a write of endpoints: the annotation ``endpoints.kubernetes.io/last-change-trigger-time``.

It is the earliest of the changes since the last look: a pod's turn of readiness, or the creation of the Service. Mirrors TriggerTimeTracker of k8s.io/endpointslice.
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.runtime.keys import key_of


class Triggers:
    """What changed of each Service's pods since its last look. Stamps are compared as text: they are all of one form."""

    def __init__(self) -> None:
        self._noted: dict[str, str] = {}
        self._created: dict[str, str] = {}
        """Service → its creation as it was at the last look."""

    def note(self, key: str, stamp: str) -> None:
        """A pod of a Service changed at a time."""
        before = self._noted.get(key)
        if before is None or stamp < before:
            self._noted[key] = stamp

    def since_last(self, service: Tree) -> str:
        """Return the time of the earliest change since the last call, "" when nothing changed that has a time. The first call returns the Service's creation."""
        key = key_of(service)
        created: str = service["metadata"]["creationTimestamp"]
        before = self._created.get(key)
        noted = self._noted.pop(key, "")
        self._created[key] = created
        if before is None:
            return created
        return min(filter(None, (noted, created if created > before else "")), default="")

    def forget(self, key: str) -> None:
        """The Service is gone."""
        self._noted.pop(key, None)
        self._created.pop(key, None)
