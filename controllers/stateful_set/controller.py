"""The StatefulSet loop: one pass is one look at a set, its revisions and its pods, in upstream's order.

Revisions first, then the replicas from the lowest ordinal, then the pods out of range from the highest, then at most one step of a rolling update; the status is written
once, and the history is cut. An ordered set stops at the first pod that is not as it should be; a parallel one stops for errors of the API alone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

from kubemini.api.resources import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.revisions.history import History, historic
from kubemini.controllers.stateful_set import planning, pods
from kubemini.controllers.stateful_set.claiming import Claims
from kubemini.controllers.stateful_set.metrics import Metrics
from kubemini.controllers.stateful_set.planning import Slots, Step
from kubemini.controllers.stateful_set.status import StatusDraft
from kubemini.controllers.stateful_set.templates import Chosen, choose
from kubemini.controllers.stateful_set.view import SetView, selector_of
from kubemini.controllers.stateful_set.writes import Writes
from kubemini.machinery.errors import ApiStatus
from kubemini.runtime.consistency import LAPSE, OwnWrites, StatusWrites
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, key_of
from kubemini.runtime.selecting import SelectorIndex

BATCH, BATCH_PER_POD, BATCH_LIMIT = 1e-3, 20e-6, 1.0
"""Seconds that a pod event waits for others, and by pod of the set: a pass costs as much as there are pods, so its rate falls with their number."""
LARGEST_BATCH = 500
SOON = 0.001
"""Added to a wait for availability, so that the moment has come when the wait is over."""


class StatefulSetController(Controller):
    """Keys are StatefulSets."""

    name = "stateful-set"
    measured_as = "statefulset"
    component = "statefulset-controller"

    def setup(self, ctx: Context) -> None:
        """Follow sets, their pods, claims and revisions."""
        self._ctx = ctx
        self._sets = ctx.informer(STATEFUL_SETS)
        self._pods = ctx.informer(PODS)
        self._selectors = SelectorIndex()
        self._pod_writes = OwnWrites(ctx.env, self._pods, self.queue.add)
        self._revision_writes = OwnWrites(ctx.env, ctx.informer(CONTROLLER_REVISIONS), self.queue.add)
        self._claim_writes = OwnWrites(ctx.env, ctx.informer(PERSISTENT_VOLUME_CLAIMS), self.queue.add)
        self._status_writes = StatusWrites()
        self._metrics = Metrics()
        self.families = self._metrics.all()
        self._history = History(ctx)
        self._claims = Claims(ctx, self._written)
        self._writes = Writes(ctx, self._written, self._removed, self._claimed)
        self._sets.on_change(self._on_set)
        self._pods.on_change(self._on_pod, controller="StatefulSet")

    def _written(self, owner: SetView, pod: Tree) -> None:
        self._pod_writes.written(owner.key, pod)

    def _removed(self, owner: SetView, pod: Tree) -> None:
        self._pod_writes.removed(owner.key, pod)

    def _claimed(self, owner: SetView, claim: Tree) -> None:
        self._claim_writes.written(owner.key, claim)

    # ------------------------------------------------------------------ events

    def _on_set(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            if old is not None:
                self._selectors.drop(key_of(old))
                self._forget(key_of(old))
            return
        if old is None or old["spec"] is not new["spec"]:
            selector = new["spec"].get("selector")
            if selector:
                self._selectors.put(key_of(new), new["metadata"]["namespace"], selector_of(selector))
        self.queue.add(key_of(new))

    def _forget(self, key: str) -> None:
        self._status_writes.forget(key)
        self._pod_writes.forget(key)
        self._revision_writes.forget(key)
        self._claim_writes.forget(key)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        owner = controller_of(pod)
        before = controller_of(old) if old is not None and new is not None else None
        if before is not None and before is not owner and (owner is None or owner["uid"] != before["uid"]):
            self._changed(before, pod)
        if owner is not None:
            if old is None or new is None or owner["kind"] != "StatefulSet" or not pods.alike(old, new):
                self._changed(owner, pod)
        elif new is not None and (old is None or before is not None or old["metadata"].get("labels") != new["metadata"].get("labels")):
            for key in self._selectors.matching(new["metadata"]["namespace"], new["metadata"].get("labels")):
                self.queue.add(key)

    def _changed(self, owner: Tree, pod: Tree) -> None:
        if owner["kind"] != "StatefulSet":
            return
        key = f"{pod['metadata']['namespace']}/{owner['name']}"
        number = self._pods.count_index("controller", owner["uid"])
        self.queue.add_after(key, min(BATCH + number * BATCH_PER_POD, BATCH_LIMIT))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a set."""
        tree = self._sets.get_key(key)
        if tree is None:
            return None
        owner = SetView(tree)
        behind = self._behind(owner)
        if behind is not None:
            self._metrics.stale.count(behind)
            return LAPSE
        if owner.selector.nothing or owner.selector.empty:
            return None
        ordered = await self._revisions(owner)
        found = await self._claims.claim(owner)
        chosen = await self._choose(owner, ordered)
        draft = StatusDraft(owner.meta.get("generation", 0), chosen.current_name, chosen.update_name, chosen.collisions)
        problem: ApiStatus | None = None
        slots = planning.split(owner, found)
        try:
            if owner.deleting:
                self._count(owner, slots, draft)
            else:
                await self._manage(owner, chosen, slots, draft)
        except ApiStatus as refused:
            # The status tells of what was done before, also where something failed
            problem = refused
        self._measure(owner, draft)
        await self._write_status(owner, draft)
        await self._cut_history(owner, ordered, chosen, found)
        if problem is not None:
            raise problem
        return self._again(owner, slots)

    def _behind(self, owner: SetView) -> Resource | None:
        key = owner.key
        if self._status_writes.behind(key, owner.meta):
            return STATEFUL_SETS
        for writes, resource in (
            (self._pod_writes, PODS),
            (self._revision_writes, CONTROLLER_REVISIONS),
            (self._claim_writes, PERSISTENT_VOLUME_CLAIMS),
        ):
            if not writes.shown(key):
                return resource
        return None

    async def _revisions(self, owner: SetView) -> list[Tree]:
        ordered = self._history.of(owner.tree, owner.selector)
        orphans = [each for each in ordered if controller_of(each) is None]
        if orphans and not owner.deleting and await self._claims.lives(owner):
            for each in orphans:
                self._revision_writes.written(owner.key, await self._history.adopt(owner.tree, each))
        return ordered

    async def _choose(self, owner: SetView, ordered: list[Tree]) -> Chosen:
        gates = self._ctx.gates
        chosen = await choose(owner, ordered, self._history, semantic=gates.enabled("StatefulSetSemanticRevisionComparison"))
        if not any(each is chosen.update for each in ordered):
            self._revision_writes.written(owner.key, chosen.update)
        return chosen

    def _count(self, owner: SetView, slots: Slots, draft: StatusDraft) -> None:
        draft.count(slots.all(), owner.min_ready, self._ctx.env.now())

    async def _manage(self, owner: SetView, chosen: Chosen, slots: Slots, draft: StatusDraft) -> None:
        """Bring the pods nearer to the wish, and count them."""
        now = self._ctx.env.now()
        first = planning.first_unavailable(slots, owner.min_ready, now)
        replicas, condemned = slots.replicas, slots.condemned

        async def tend(index: int) -> bool:
            return await self._tend(owner, chosen, replicas, index, now)

        async def prepare(index: int) -> bool:
            await self._writes.correct_owners(owner, condemned[index])
            return True

        async def remove(index: int) -> bool:
            step = planning.condemned_step(owner, condemned[index], first, now)
            if step is Step.DELETE:
                await self._writes.delete(owner, condemned[index])
            return step is Step.SKIP

        idle = {index: None for index, pod in enumerate(replicas) if planning.is_left_alone(owner, pod)}
        try:
            for work, number, skipped in (
                (tend, len(replicas), idle),
                (prepare, len(condemned) if owner.claims else 0, {}),
                (remove, len(condemned), {}),
            ):
                if not await _for_all(work, number, skipped, ordered=owner.ordered):
                    return
        finally:
            self._count(owner, slots, draft)
        if not owner.on_delete:
            await self._update(owner, chosen, replicas, draft, now)

    async def _tend(self, owner: SetView, chosen: Chosen, replicas: list[Tree | None], index: int, now: float) -> bool:
        """Look after one pod in range. Tell whether an ordered set may go on."""
        pod = replicas[index]
        step = planning.replica_step(owner, pod, now)
        if pod is None:
            ordinal = owner.start + index
            if not self._writes.is_stale(owner, ordinal):
                template, revision = chosen.template(owner, ordinal)
                replicas[index] = await self._writes.create(owner, pods.make(owner, ordinal, template, revision))
            return False
        if step is Step.DELETE:
            await self._writes.delete(owner, pod)
            return False
        if pods.phase(pod) == "Pending":
            await self._writes.ensure_claims(owner, pod)
        if step is Step.KEEP:
            await self._writes.keep(owner, pod)
        return step is Step.KEEP

    async def _update(self, owner: SetView, chosen: Chosen, replicas: Sequence[Tree | None], draft: StatusDraft, now: float) -> None:
        budgeted = self._ctx.gates.enabled("MaxUnavailableStatefulSet")
        for pod in planning.outdated(owner, replicas, chosen.update_name, now, budgeted=budgeted):
            await self._writes.delete(owner, pod)
            if pods.revision_of(pod) == chosen.current_name:
                draft.current -= 1

    # ------------------------------------------------------------------ what is left behind

    def _measure(self, owner: SetView, draft: StatusDraft) -> None:
        """Count where more pods are unavailable than may be."""
        if owner.max_unavailable is None or not self._ctx.gates.enabled("MaxUnavailableStatefulSet"):
            return
        if owner.replicas - draft.available > planning.max_unavailable(owner):
            self._metrics.violations.inc(owner.namespace, owner.name, "OrderedReady" if owner.ordered else "Parallel")

    async def _write_status(self, owner: SetView, draft: StatusDraft) -> None:
        draft.complete(owner)
        if not draft.differs(owner.status):
            return
        written = await self._ctx.client.update_status(STATEFUL_SETS, {**owner.tree, "status": draft.render()})
        self._status_writes.note(owner.key, written)

    async def _cut_history(self, owner: SetView, ordered: list[Tree], chosen: Chosen, found: Sequence[Tree]) -> None:
        if len(ordered) <= 1:
            return
        live = {chosen.current_name, chosen.update_name, *(pods.revision_of(pod) for pod in found)}
        dead = historic(ordered, live, owner.history_limit)
        if dead:
            await self._history.delete(dead)

    def _again(self, owner: SetView, slots: Slots) -> float | None:
        """Return when the next pod will have been ready for long enough."""
        if owner.min_ready == 0:
            return None
        now = self._ctx.env.now()
        since = (pods.ready_since(pod) for pod in slots.all() if pod is not None)
        waits = [left for each in since if each is not None and 0 < (left := each + owner.min_ready - now) < float("inf")]
        return min(waits) + SOON if waits else None


Work = Callable[[int], Coroutine[Any, Any, bool]]


async def _for_all(work: Work, number: int, idle: Mapping[int, None], *, ordered: bool) -> bool:
    """Do a piece of work for each index but those where there is nothing to do. Tell whether the pass goes on.

    Ordered: one after the other, until one says that it is not done. Otherwise in batches of 1, 2, 4 …: after one with an error, no further; the first error is raised.
    """
    if ordered:
        for index in range(number):
            if not await work(index):
                return False
        return True
    if len(idle) == number:
        return True
    for batch in _batches(number):
        problem: ApiStatus | None = None
        for index in batch:
            if index in idle:
                continue
            try:
                await work(index)
            except ApiStatus as refused:
                problem = problem or refused
        if problem is not None:
            raise problem
    return True


def _batches(number: int) -> Iterator[range]:
    done, size = 0, 1
    while done < number:
        yield range(done, min(number, done + size))
        done, size = done + size, min(size * 2, LARGEST_BATCH)
