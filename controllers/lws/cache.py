"""What both loops look up: leaders, groups' StatefulSets and revisions of a LeaderWorkerSet, from the shared caches."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, PODS, SERVICES, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.runtime.controller import Context
from kubemini.runtime.keys import controller_of


def named(obj: Tree) -> tuple[str, ...]:
    """Return the key of the LeaderWorkerSet that an object is labelled with, as index values: one or none."""
    meta = obj["metadata"]
    labels = meta.get("labels")
    name = labels.get(names.NAME) if labels else None
    return (f"{meta['namespace']}/{name}",) if name else ()


def led(pod: Tree) -> tuple[str, ...]:
    """Return the key of the LeaderWorkerSet whose leader a pod is."""
    labels = pod["metadata"].get("labels")
    return named(pod) if labels and labels.get(names.WORKER_INDEX) == "0" else ()


def grouped(pod: Tree) -> tuple[str, ...]:
    """Return the key of the group that a pod is labelled with."""
    labels = pod["metadata"].get("labels")
    if not labels or names.NAME not in labels or names.GROUP_INDEX not in labels:
        return ()
    return (f"{pod['metadata']['namespace']}/{labels[names.NAME]}/{labels[names.GROUP_INDEX]}",)


def recording(revision: Tree) -> tuple[str, ...]:
    """Return the key of the LeaderWorkerSet that a revision is of. Those of its groups' StatefulSets carry the label too."""
    reference = controller_of(revision)
    return named(revision) if reference is None or reference["kind"] == "LeaderWorkerSet" else ()


class Caches:
    """The informers of one process with the indexes of this package."""

    def __init__(self, ctx: Context) -> None:
        self.sets = ctx.informer(LEADER_WORKER_SETS)
        self.pods = ctx.informer(PODS)
        self.pods.add_index("lws-leader", led, reads=("labels",), marks=(names.NAME,))
        self.pods.add_index("lws-group", grouped, reads=("labels",), marks=(names.NAME,))
        self.stateful = ctx.informer(STATEFUL_SETS)
        self.stateful.add_index("lws", named)
        self.services = ctx.informer(SERVICES)
        self.revisions = ctx.informer(CONTROLLER_REVISIONS)
        self.revisions.add_index("lws-history", recording)

    def leaders(self, key: str) -> Sequence[Tree]:
        """Return the leader pods of a LeaderWorkerSet."""
        return self.pods.by_index("lws-leader", key)

    def workers(self, key: str) -> dict[str, Tree]:
        """Return the StatefulSets labelled with a LeaderWorkerSet, by name."""
        return {each["metadata"]["name"]: each for each in self.stateful.by_index("lws", key)}

    def history(self, owner: Tree) -> list[Tree]:
        """Return the revisions of a LeaderWorkerSet that nobody else controls."""
        meta = owner["metadata"]
        found = []
        for each in self.revisions.by_index("lws-history", f"{meta['namespace']}/{meta['name']}"):
            reference = controller_of(each)
            if reference is None or reference["uid"] == meta["uid"]:
                found.append(each)
        return found
