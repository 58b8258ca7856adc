"""What workload-aware preemption promises: groups preempt, and are preempted, as wholes. The numbers are those of the list in the documentation of invariants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kubemini.api.resources import NODES, POD_GROUPS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import Cache
from kubemini.controllers.scheduler.filters import fits, node_properties
from kubemini.controllers.scheduler.resources import requests_of
from kubemini.controllers.scheduler.victims import WHOLE, effective_priority, group_priority
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View, tree_of

ENDED = ("Succeeded", "Failed")
BY_GROUP = "higher priority podgroup"
"""How the message on a victim of a group ends. Those of single pods, which may drive out one member of a whole group, end otherwise."""


def pod_group_invariants(*, lossless: bool = True) -> list[Invariant]:
    """Return all of them, fresh: they keep state.

    Unless `lossless`, the eviction of one victim may be lost after those of others, and the scheduler may not know yet what it should.
    """
    return [WholeGroups(lossless=lossless)]


def driven_out_by_group(old: Tree | None, new: Tree | None) -> bool:
    """Tell whether a pod has just been chosen as a victim of a group."""
    if old is None or new is None or preempted(old):
        return False
    message: str = (_mark(new) or {}).get("message", "")
    return message.endswith(BY_GROUP)


def preempted(pod: Tree) -> bool:
    """Tell whether a pod was chosen as a victim."""
    return _mark(pod) is not None


def _mark(pod: Tree) -> Tree | None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == "DisruptionTarget" and each.get("reason") == "PreemptionByScheduler"), None)


def _there(pod: Tree) -> bool:
    """Tell whether a pod has a node and is there to stay."""
    ended = (pod.get("status") or {}).get("phase") in ENDED
    return bool(pod["spec"].get("nodeName")) and "deletionTimestamp" not in pod["metadata"] and not ended


class WholeGroups:
    """1, 2, 3: victims of a group are below it, it could start without them, and of a group that is disrupted as a whole all have to go."""

    name = "groups preempt as wholes"

    def __init__(self, *, lossless: bool) -> None:
        self._lossless = lossless
        self._owed: dict[str, str] = {}
        """Pods that have to go since another of their unit has, and their names."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at a pod that has just been chosen as a victim."""
        old, new = (tree_of(change.old), tree_of(change.new)) if table == PODS.plural else (None, None)
        return self._chosen(new, view) if new is not None and driven_out_by_group(old, new) else ()

    def _chosen(self, victim: Tree, view: View) -> Iterator[str]:
        groups = {(each["metadata"]["namespace"], each["metadata"]["name"]): each for each in view.list(POD_GROUPS)}

        def group_of(pod: Tree) -> Tree | None:
            named = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
            return groups.get((pod["metadata"]["namespace"], named)) if named else None

        own = group_of(victim)
        if own is not None and (own["spec"].get("disruptionMode")) == WHOLE:
            for pod in view.list(PODS):
                if group_of(pod) is own and _there(pod):
                    self._owed[pod["metadata"]["uid"]] = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        level = effective_priority(victim, own)
        above = [each for each in groups.values() if group_priority(each) > level]
        name = f"{victim['metadata']['namespace']}/{victim['metadata']['name']}"
        if not above:
            yield f"{name} was preempted by a group, but there is none of higher priority"
        elif self._lossless and not any(self._could_start(each, group_of, view) for each in above):
            yield f"{name} was preempted by a group, but none of higher priority could start without those below it"

    def _could_start(self, group: Tree, group_of: Callable[[Tree], Tree | None], view: View) -> bool:
        """Tell whether enough members of a group would each fit some node if nobody below it was there. So much at least is needed."""
        members = [pod for pod in view.list(PODS) if group_of(pod) is group and (pod.get("status") or {}).get("phase") != "Failed"]
        cache = Cache()
        for node in view.list(NODES):
            cache.set_node(node)
        for pod in view.list(PODS):
            if _there(pod) and effective_priority(pod, group_of(pod)) >= group_priority(group):
                cache.place(pod, pod["spec"]["nodeName"])
        waiting = [pod for pod in members if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]]
        able = [
            pod
            for pod in waiting
            if any(
                info.node is not None and node_properties(pod["spec"], info.node) is None and fits(requests_of(pod["spec"]), info) is None
                for info in cache.live()
            )
        ]
        gang = (group["spec"].get("schedulingPolicy") or {}).get("gang") or {}
        there = sum(1 for pod in members if pod["spec"].get("nodeName"))
        return len(able) >= max(int(gang.get("minCount", 1)) - there, 1)

    def at_rest(self, view: View) -> Iterable[str]:
        """At rest nothing of a unit is left that had to go."""
        if not self._lossless:
            return
        for pod in view.list(PODS):
            if pod["metadata"]["uid"] in self._owed and _there(pod):
                yield f"{self._owed[pod['metadata']['uid']]} is still there, though its group had to go as a whole"
