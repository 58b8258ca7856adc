"""The LeaderWorkerSet loop: its revision, the leaders' StatefulSet, the shared Service, the status.

Mirrors ``pkg/controllers/leaderworkerset_controller.go``. What becomes of leader pods shows in the status of their StatefulSet. They come by another watch though, which may be
behind it: so a pass that a StatefulSet brought about is repeated when the pod itself has arrived.
"""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.api.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, SERVICES, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws import revisions
from kubemini.controllers.lws.cache import Caches, led, named
from kubemini.controllers.lws.groups import Group, by_index, groups, running_and_ready
from kubemini.controllers.lws.leader_set import leader_set
from kubemini.controllers.lws.rollout import Leaders, Rollout, plan
from kubemini.controllers.lws.services import headless
from kubemini.controllers.lws.status import count, next_status
from kubemini.controllers.lws.view import LwsView, is_shared
from kubemini.machinery.errors import AlreadyExists, ApiStatus, InternalError, NotFound
from kubemini.runtime.consistency import LAPSE, OwnWrites, StatusWrites
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

TERMINATING_RETRY = 5.0
"""Seconds between looks at a leaders' StatefulSet that is being deleted."""
BATCH_PER_GROUP, BATCH_LIMIT = 20e-6, 1.0
"""Seconds that a change waits for others, by group: a pass looks at every group, so its rate falls with their number."""
FEW = 50
REPEAT = 0.2
"""Seconds after a leader's change until the pass that makes sure of it."""


@dataclass(slots=True)
class _Applied:
    """The last apply, and what it left: while both stand, another apply would change nothing."""

    wanted: Tree
    uid: str
    generation: int
    labels: Tree | None
    annotations: Tree | None

    @classmethod
    def of(cls, wanted: Tree, stored: Tree) -> _Applied:
        meta = stored["metadata"]
        return cls(wanted, meta["uid"], meta.get("generation", 0), meta.get("labels"), meta.get("annotations"))

    def stands(self, wanted: Tree, stored: Tree) -> bool:
        meta = stored["metadata"]
        unchanged = (self.uid, self.generation, self.labels, self.annotations) == (
            meta["uid"],
            meta.get("generation", 0),
            meta.get("labels"),
            meta.get("annotations"),
        )
        return unchanged and self.wanted == wanted


class LeaderWorkerSetController(Controller):
    """Keys are LeaderWorkerSets."""

    name = "lws"
    measured_as = "leaderworkerset"
    component = "leaderworkerset"

    def setup(self, ctx: Context) -> None:
        """Follow LeaderWorkerSets, StatefulSets and Services."""
        self._ctx = ctx
        self._caches = Caches(ctx)
        self._stateful_writes = OwnWrites(ctx.env, self._caches.stateful, self.queue.add)
        self._revision_writes = OwnWrites(ctx.env, self._caches.revisions, self.queue.add)
        self._applied: dict[str, _Applied] = {}
        self._status_writes = StatusWrites()
        self._caches.sets.on_change(self._on_set)
        self._caches.stateful.on_change(self._on_stateful_set)
        self._caches.services.on_change(self.enqueue_owner(LEADER_WORKER_SETS))
        self._caches.pods.on_change(self._on_pod, marks=(names.NAME,))

    # ------------------------------------------------------------------ events

    def _on_set(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))
        elif old is not None:
            key = key_of(old)
            self._applied.pop(key, None)
            self._status_writes.forget(key)
            self._stateful_writes.forget(key)
            self._revision_writes.forget(key)

    def _on_stateful_set(self, old: Tree | None, new: Tree | None) -> None:
        keys = dict.fromkeys(key for each in (old, new) if each is not None for key in named(each))
        for key in keys:
            number = self._caches.stateful.count_index("lws", key)
            if number < FEW:
                self.queue.add(key)
            else:
                self.queue.add_after(key, min(number * BATCH_PER_GROUP, BATCH_LIMIT))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        changed = new if new is not None else old
        if changed is None or not (keys := led(changed)):
            return
        if old is None or new is None or running_and_ready(old) != running_and_ready(new):
            self.queue.add_after(keys[0], REPEAT)

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a LeaderWorkerSet."""
        tree = self._caches.sets.get_key(key)
        if tree is None or "deletionTimestamp" in tree["metadata"]:
            return None
        owner = LwsView(tree)
        if not self._caught_up(owner):
            return LAPSE
        leaders = self._caches.stateful.get(owner.name, owner.namespace)
        if leaders is not None and "deletionTimestamp" in leaders["metadata"]:
            return TERMINATING_RETRY
        revision, updated = await self._revision(owner, leaders)
        revision_key = revisions.key_of(revision)
        found = self._groups(owner, key, revision_key)
        rollout = plan(owner, _leaders_of(leaders), lambda number: by_index(found, number), updated=updated)
        self._tell_reclaimed(owner, rollout)
        applied = await self._apply(owner, leaders, leader_set(owner, rollout.partition, rollout.replicas, revision_key))
        self._tell_progress(owner, leaders, rollout, revision, updated=updated)
        await self._serve(owner)
        if applied is not leaders:
            found = self._groups(owner, key, revision_key)
        if await self._write_status(owner, applied, found):
            await self._truncate(owner, revision_key)
        return None

    def _caught_up(self, owner: LwsView) -> bool:
        key = owner.key
        if self._status_writes.behind(key, owner.meta):
            return False
        return self._stateful_writes.shown(key) and self._revision_writes.shown(key)

    def _groups(self, owner: LwsView, key: str, revision_key: str) -> list[Group]:
        return groups(self._caches.leaders(key), self._caches.workers(key), revision_key, alone=owner.size == 1)

    # ------------------------------------------------------------------ revisions

    async def _revision(self, owner: LwsView, leaders: Tree | None) -> tuple[Tree, bool]:
        """Return the revision to roll out, and whether it is new: other than that of the leaders' StatefulSet."""
        history = self._caches.history(owner.tree)
        key = revisions.key_of(leaders) if leaders is not None else ""
        revision = revisions.of_key(history, key)
        if revision is None:
            revision = await self._record(owner, history, key)
            about = (
                "Creating missing revision with key {} for existing LeaderWorkerSet"
                if key
                else "Creating revision with key {} for a newly created LeaderWorkerSet"
            )
            self._say(owner, names.CREATING_REVISION, about.format(revisions.key_of(revision)), "Create", related=revision)
            history = [*history, revision]
        if leaders is None or revisions.records(revision, owner.spec):
            return revision, False
        revision = await self._record(owner, history)
        about = f"Creating revision with key {revisions.key_of(revision)} for updated LWS"
        self._say(owner, names.CREATING_REVISION, about, "Create", related=revision)
        return revision, True

    async def _record(self, owner: LwsView, history: list[Tree], key: str = "") -> Tree:
        newest = revisions.highest(history)
        number = (newest.get("revision", 0) if newest is not None else 0) + 1
        made = await self._ctx.client.create(CONTROLLER_REVISIONS, revisions.new(owner, number, key))
        self._revision_writes.written(owner.key, made)
        return made

    async def _truncate(self, owner: LwsView, key: str) -> None:
        """Forget the revisions of other keys: nothing runs by them any more."""
        for each in self._caches.history(owner.tree):
            if revisions.key_of(each) != key:
                meta = each["metadata"]
                try:
                    await self._ctx.client.delete(CONTROLLER_REVISIONS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
                except NotFound:
                    continue

    # ------------------------------------------------------------------ the leaders' StatefulSet

    async def _apply(self, owner: LwsView, leaders: Tree | None, wanted: Tree) -> Tree:
        before = self._applied.get(owner.key)
        if leaders is not None and before is not None and before.stands(wanted, leaders):
            return leaders
        try:
            applied = await self._ctx.client.apply(STATEFUL_SETS, wanted, manager=names.FIELD_MANAGER, force=True)
        except ApiStatus as refused:
            reason, action = (names.FAILED_CREATE, "Create") if leaders is None else (names.FAILED_UPDATE, "Update")
            self._say(owner, reason, f"Failed to {action.lower()} leader statefulset {owner.name}: {refused.message}", action, "Warning")
            raise
        self._applied[owner.key] = _Applied.of(wanted, applied)
        self._stateful_writes.written(owner.key, applied)
        return applied

    def _tell_reclaimed(self, owner: LwsView, rollout: Rollout) -> None:
        gone = rollout.reclaimed
        if len(gone) == 1:
            self._say(owner, names.GROUPS_PROGRESSING, f"deleting surge replica {owner.name}-{gone[0]}", "Delete")
        elif gone:
            self._say(owner, names.GROUPS_PROGRESSING, f"deleting surge replicas from {owner.name}-{gone[0]} to {owner.name}-{gone[-1]}", "Delete")

    def _tell_progress(self, owner: LwsView, leaders: Tree | None, rollout: Rollout, revision: Tree, *, updated: bool) -> None:
        if leaders is None:
            self._say(owner, names.GROUPS_PROGRESSING, f"Created leader statefulset {owner.name}", "Create", related=revision)
            return
        before, now = _partition_of(leaders), rollout.partition
        if not updated and before != now:
            about = f"Updating replica {now}" if before - 1 == now else f"Updating replicas {now} to {before - 1} (inclusive)"
            self._say(owner, names.GROUPS_UPDATING, about, "Update", related=revision)

    # ------------------------------------------------------------------ service and status

    async def _serve(self, owner: LwsView) -> None:
        """Create the Service that all groups share. One of that name, whosever it is, is left as it is."""
        if not is_shared(owner.spec.get("networkConfig")) or self._caches.services.get(owner.name, owner.namespace) is not None:
            return
        try:
            await self._ctx.client.create(SERVICES, headless(owner.name, owner.name, {names.NAME: owner.name}, owner.tree))
        except AlreadyExists:
            return
        except ApiStatus as refused:
            self._say(owner, names.FAILED_CREATE, f"Failed to create headless service for error: {refused.message}", "Create", "Warning")
            raise

    async def _write_status(self, owner: LwsView, leaders: Tree, found: list[Group]) -> bool:
        """Write the status where it changed. Tell whether the update is done."""
        counts = count(owner, found)
        new = next_status(owner, leaders, counts, self._ctx.env.stamp())
        if new is not None:
            if new.said is not None:
                self._say(owner, *new.said, "Update")
            written = await self._ctx.client.update_status(LEADER_WORKER_SETS, {**owner.tree, "status": new.status})
            self._status_writes.note(owner.key, written)
        return counts.update_done(owner)

    def _say(self, owner: LwsView, reason: str, message: str, action: str, type_: str = "Normal", *, related: Tree | None = None) -> None:
        self._ctx.recorder.acted(owner.tree, type_, reason, message, action=action, related=related)


def _partition_of(leaders: Tree) -> int:
    found: int = ((leaders["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0
    return found


def _leaders_of(leaders: Tree | None) -> Leaders | None:
    if leaders is None:
        return None
    text = (leaders["metadata"].get("annotations") or {}).get(names.REPLICAS, "")
    try:
        then = int(text)
    except ValueError:
        raise InternalError(f'strconv.Atoi: parsing "{text}": invalid syntax') from None
    return Leaders(leaders["spec"].get("replicas", 1), _partition_of(leaders), then)
