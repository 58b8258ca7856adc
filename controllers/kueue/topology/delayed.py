"""Places that were put off until the nodes are there: the scheduler's second pass once a Workload's checks are all ready.

Mirrors the second pass of Kueue's scheduler. Keys are Workloads. A miss doubles the time to the next try and never gives the quota back.
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.topology.places import TopologyPlaces, Unplaceable
from kubemini.controllers.kueue.workloads import assignments, on_hold
from kubemini.controllers.kueue.writing import write_status
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

FIRST_SECONDS, LIMIT_SECONDS = 1.0, 30.0
"""The first try comes so long after the last check became ready; a miss doubles the time to the next."""


class DelayedPlacement(Controller):
    """See the module."""

    name = "kueue-topology-delayed"
    component = "kueue-admission"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub

    def setup(self, ctx: Context) -> None:
        """Follow Workloads."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._due: dict[str, tuple[float, int]] = {}
        """Workload → when its next try is due, and how many have missed."""
        self.hub.workloads.on_change(self._on_workload)

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and (new.get("status") or {}).get("admissionChecks") and due(new):
            self.queue.add(key_of(new))
        elif self._due and (tree := new or old) is not None:
            self._due.pop(key_of(tree), None)

    async def reconcile(self, key: str) -> float | None:
        """Place what waits for its place, when that is due. Return seconds to the next try."""
        workload = self.hub.workloads.get_key(key)
        places = self.hub.places
        if workload is None or not due(workload) or not isinstance(places, TopologyPlaces):
            self._due.pop(key, None)
            return None
        now = self._ctx.env.now()
        at, misses = self._due.setdefault(key, (now + FIRST_SECONDS, 0))
        if at > now:
            return at - now
        try:
            admission = places.place_delayed(workload)
        except Unplaceable as problem:
            self._ctx.recorder.event(workload, "Warning", "SecondPassFailed", str(problem))
            pause = min(FIRST_SECONDS * 2.0 ** (misses + 1), LIMIT_SECONDS)
            self._due[key] = (now + pause, misses + 1)
            return pause

        def change(draft: Draft) -> bool:
            if draft.get("admission") != workload["status"]["admission"] or not due(draft.obj):
                return False
            draft.set("admission", admission)
            return True

        await write_status(self._ctx, workload, change)
        return None


def due(workload: Tree) -> bool:
    """Tell whether a Workload waits for nothing but its places."""
    if not conditions.reserved(workload) or conditions.admitted(workload) or conditions.finished(workload) or conditions.evicted(workload):
        return False
    checks = workload["status"].get("admissionChecks") or ()
    return (
        bool(checks)
        and not on_hold(workload)
        and all(each["state"] == reservation.READY for each in checks)
        and any(
            each.get("delayedTopologyRequest") == reservation.PENDING and each.get("topologyAssignment") is None for each in assignments(workload)
        )
    )
