"""The DisaggregatedSet loop: scalers, then each slice on its own, then the status. Mirrors ``pkg/controllers/disaggregatedset``."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import DISAGGREGATED_SET_ROLE_SCALERS, DISAGGREGATED_SETS, LEADER_WORKER_SETS, SERVICES, Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.disaggregated_set import blueprint, rolling
from kubemini.controllers.disaggregated_set.naming import in_slice, label, legacy_name, scaler_name, slice_of
from kubemini.controllers.disaggregated_set.planner import next_step
from kubemini.controllers.disaggregated_set.status import next_status, scaler_status
from kubemini.controllers.disaggregated_set.view import DsView, Revision, Scalers, by_revision, initial_of, replicas_of
from kubemini.machinery.errors import AlreadyExists, ApiStatus, InternalError, NotFound
from kubemini.runtime.consistency import LAPSE, OwnWrites, StatusWrites
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_uid, key_of

ROLLING_RETRY = 1.0
"""Seconds between looks at an update that has just begun or waits for groups to become ready."""


def _of_set(obj: Tree) -> tuple[str, ...]:
    name = label(obj, names.DS_NAME)
    return (f"{obj['metadata']['namespace']}/{name}",) if name else ()


class DisaggregatedSetController(Controller):
    """Keys are DisaggregatedSets."""

    name = "disaggregated-set"
    measured_as = "disaggregatedset"
    component = "disaggregatedset"

    def setup(self, ctx: Context) -> None:
        """Follow DisaggregatedSets, their LeaderWorkerSets and scalers."""
        self._ctx = ctx
        self._sets = ctx.informer(DISAGGREGATED_SETS)
        self._groups = ctx.informer(LEADER_WORKER_SETS)
        self._groups.add_index("controller", controller_uid)
        self._scalers = ctx.informer(DISAGGREGATED_SET_ROLE_SCALERS)
        self._scalers.add_index("controller", controller_uid)
        self._services = ctx.informer(SERVICES)
        self._services.add_index("disaggregated-set", _of_set)
        self._writes = {each.resource.storage: OwnWrites(ctx.env, each, self.queue.add) for each in (self._groups, self._scalers, self._services)}
        self._status_writes = StatusWrites()
        self._sets.on_change(self._on_set)
        self._groups.on_change(self.enqueue_owner(DISAGGREGATED_SETS))
        self._scalers.on_change(self.enqueue_owner(DISAGGREGATED_SETS))

    def _on_set(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None:
            self.queue.add(key_of(new))
        elif old is not None:
            key = key_of(old)
            self._status_writes.forget(key)
            for writes in self._writes.values():
                writes.forget(key)

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a DisaggregatedSet. Slices do not hold each other up: the first problem is raised at the end."""
        tree = self._sets.get_key(key)
        if tree is None or "deletionTimestamp" in tree["metadata"]:
            return None
        owner = DsView(tree)
        shown = all(writes.shown(key) for writes in self._writes.values())
        if not shown or self._status_writes.behind(key, owner.meta):
            return LAPSE
        await self._remove_slices(owner)
        scalers = await self._reconcile_scalers(owner)
        if owner.slices > 1:
            await self._renew_legacy(owner)
        problem: ApiStatus | None = None
        again: float | None = None
        for slice_ in range(owner.slices):
            try:
                wait = await self._reconcile_slice(owner, slice_, scalers)
                again = again if again is not None else wait
            except ApiStatus as refused:
                problem = problem or refused
        await self._write_status(owner, scalers)
        if problem is not None:
            raise problem
        return again

    def _owned(self, owner: DsView) -> list[Tree]:
        return [each for each in self._groups.by_index("controller", owner.uid) if label(each, names.DS_NAME) == owner.name]

    def _in_slice(self, owner: DsView, slice_: int) -> list[Tree]:
        return [each for each in self._owned(owner) if in_slice(each, slice_)]

    def _services_of(self, owner: DsView) -> list[Tree]:
        return list(self._services.by_index("disaggregated-set", owner.key))

    # ------------------------------------------------------------------ writes

    async def _delete(self, owner: DsView, resource: Resource, obj: Tree) -> None:
        meta = obj["metadata"]
        try:
            await self._ctx.client.delete(resource, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
        except NotFound:
            return
        self._writes[resource.storage].removed(owner.key, obj)

    async def _create_group(self, owner: DsView, role: str, slice_: int, replicas: int) -> None:
        wanted = blueprint.role_set(owner.tree, owner.roles[role], slice_, owner.revision, replicas)
        try:
            made = await self._ctx.client.create(LEADER_WORKER_SETS, wanted)
        except AlreadyExists:
            name = wanted["metadata"]["name"]
            found = await self._ctx.client.get(LEADER_WORKER_SETS, name, owner.namespace)
            if controller_uid(found) != (owner.uid,):
                raise InternalError(
                    f"LeaderWorkerSet {name} exists but is not controlled by DisaggregatedSet {owner.name}; refusing to adopt it"
                ) from None
            return
        self._writes[LEADER_WORKER_SETS.storage].written(owner.key, made)

    async def _patch_group(self, owner: DsView, lws: Tree, patch: Tree) -> None:
        meta = lws["metadata"]
        changed = await self._ctx.client.patch(LEADER_WORKER_SETS, meta["name"], patch, namespace=meta["namespace"])
        self._writes[LEADER_WORKER_SETS.storage].written(owner.key, changed)

    async def _scale(self, owner: DsView, lws: Tree, replicas: int) -> None:
        if replicas_of(lws) != replicas:
            await self._patch_group(owner, lws, {"spec": {"replicas": replicas}})

    def _say(self, owner: DsView, reason: str, message: str, action: str, type_: str = "Normal") -> None:
        self._ctx.recorder.acted(owner.tree, type_, reason, message, action=action)

    # ------------------------------------------------------------------ slices that go

    async def _remove_slices(self, owner: DsView) -> None:
        """Delete what belongs to slices that are no longer wanted."""
        for each in self._owned(owner):
            slice_ = slice_of(each)
            if slice_ is not None and slice_ >= owner.slices:
                await self._delete(owner, LEADER_WORKER_SETS, each)
                self._say(owner, "LWSDeleted", f"Deleted LWS {each['metadata']['name']} for removed slice {slice_}", "Delete")
        for each in self._services_of(owner):
            slice_ = slice_of(each)
            if slice_ is not None and slice_ >= owner.slices:
                await self._delete(owner, SERVICES, each)

    async def _renew_legacy(self, owner: DsView) -> None:
        """Make way for a slice 0 that knows its slice: the Service of one from before there were slices would take in the pods of all."""
        for role in owner.roles:
            name = legacy_name(owner.name, owner.revision, role)
            found = self._groups.get(name, owner.namespace)
            if found is None or controller_uid(found) != (owner.uid,) or label(found, names.DS_SLICE):
                continue
            service = self._services.get(f"{name}-prv", owner.namespace)
            if service is not None:
                await self._delete(owner, SERVICES, service)
            await self._delete(owner, LEADER_WORKER_SETS, found)
            self._say(owner, "LWSDeleted", f"Deleted legacy slice-0 LWS {name} to recreate it in slice-aware form", "Migrate")

    # ------------------------------------------------------------------ scalers

    async def _reconcile_scalers(self, owner: DsView) -> Scalers:
        """Make the scalers of roles that are scaled from outside, delete the others. Return them by role."""
        found: dict[str, Tree] = {}
        for each in self._scalers.by_index("controller", owner.uid):
            role, name = label(each, names.DS_ROLE), each["metadata"]["name"]
            if owner.external(role):
                found[role] = each
                continue
            await self._delete(owner, DISAGGREGATED_SET_ROLE_SCALERS, each)
            self._say(owner, "ScalerDeleted", f"Deleted scaler {name} (role {role} is no longer External)", "Delete")
        for role in owner.roles:
            if owner.external(role) and role not in found:
                made = await self._create_scaler(owner, role)
                if made is not None:
                    found[role] = made
        return found

    async def _create_scaler(self, owner: DsView, role: str) -> Tree | None:
        """Create a scaler that keeps a role's groups as they are; a role without any starts with one, from which autoscalers can go on."""
        sets = [each for each in self._owned(owner) if label(each, names.DS_ROLE) == role]
        seed = sum(map(replicas_of, sets)) if sets else 1
        name = scaler_name(owner.name, role)
        try:
            made = await self._ctx.client.create(DISAGGREGATED_SET_ROLE_SCALERS, blueprint.scaler(owner.tree, role, seed))
        except AlreadyExists:
            present = await self._ctx.client.get(DISAGGREGATED_SET_ROLE_SCALERS, name, owner.namespace)
            if controller_uid(present) == (owner.uid,):
                return present
            self._say(
                owner, "ScalerConflict", f"Scaler {name} exists but is not controlled by this DisaggregatedSet; not adopting", "Conflict", "Warning"
            )
            return None
        self._writes[DISAGGREGATED_SET_ROLE_SCALERS.storage].written(owner.key, made)
        self._say(owner, "ScalerCreated", f"Created scaler {name} for role {role}", "Create")
        return made

    # ------------------------------------------------------------------ one slice

    async def _reconcile_slice(self, owner: DsView, slice_: int, scalers: Scalers) -> float | None:
        await self._remove_drained(owner, slice_)
        revisions = by_revision(self._in_slice(owner, slice_))
        new = revisions.pop(owner.revision, None)
        # What was deleted just now still is in the cache
        old = [each for each in revisions.values() if any(map(replicas_of, each.roles.values()))]
        again: float | None = None
        if any(replicas_of(each.roles[role]) for each in old for role in owner.roles if role in each.roles):
            again = await self._roll(owner, slice_, old, new, scalers)
        else:
            await self._settle(owner, slice_, new, scalers)
        await self._serve(owner, slice_)
        return again

    async def _remove_drained(self, owner: DsView, slice_: int) -> None:
        """Delete old revisions of which every role is down to nothing."""
        for revision in by_revision(self._in_slice(owner, slice_)).values():
            if revision.name == owner.revision or any(map(replicas_of, revision.roles.values())):
                continue
            for each in revision.roles.values():
                await self._delete(owner, LEADER_WORKER_SETS, each)
                self._say(owner, "LWSDeleted", f"Deleted drained LWS {each['metadata']['name']}", "Delete")

    async def _settle(self, owner: DsView, slice_: int, new: Revision | None, scalers: Scalers) -> None:
        """Without an update: make what is missing, scale the rest."""
        for role in owner.roles:
            present = new.roles.get(role) if new is not None else None
            wanted = owner.target(role, scalers, replicas_of(present) if present is not None else 0)
            if present is None:
                await self._create_group(owner, role, slice_, wanted)
            else:
                await self._scale(owner, present, wanted)

    async def _roll(self, owner: DsView, slice_: int, old: Sequence[Revision], new: Revision | None, scalers: Scalers) -> float | None:
        """Take one step of a rolling update."""
        if new is None:
            self._say(owner, "RollingUpdateStarted", f"Started rolling update to revision {owner.revision}", "Update")
            for revision in old:
                for each in revision.roles.values():
                    annotated = names.DS_INITIAL_REPLICAS in (each["metadata"].get("annotations") or {})
                    if not annotated or initial_of(each) != replicas_of(each):
                        await self._patch_group(owner, each, {"metadata": {"annotations": {names.DS_INITIAL_REPLICAS: str(replicas_of(each))}}})
            for role in owner.roles:
                await self._create_group(owner, role, slice_, 0)
            return ROLLING_RETRY
        if not new.stable(owner.roles):
            for role in owner.roles:
                # Cut short when the update began
                if role not in new.roles:
                    await self._create_group(owner, role, slice_, 0)
            return ROLLING_RETRY
        every = rolling.all_roles(owner, old)
        roles = rolling.state(owner, every, old, new, scalers)
        step = next_step(roles)
        if step is None:
            self._say(owner, "RollingUpdateCompleted", f"Completed rolling update to revision {owner.revision}", "Update")
            return None
        for one in rolling.ups(every, roles, step, new):
            await self._scale(owner, one.lws, one.after)
            self._say(owner, "ScalingUp", self._about("up", one), "Update")
        for one in rolling.downs(every, roles, step, old):
            await self._scale(owner, one.lws, one.after)
            self._say(owner, "ScalingDown", self._about("down", one), "Update")
        return None

    @staticmethod
    def _about(way: str, one: rolling.Scaling) -> str:
        return f"Scaling {way} {one.role} LWS {one.lws['metadata']['name']} from {one.before} to {one.after} replicas"

    async def _serve(self, owner: DsView, slice_: int) -> None:
        """Once every role of the new revision has a ready group: give each its Service, and take those of revisions that are not ready."""
        revisions = by_revision(self._in_slice(owner, slice_))
        new = revisions.get(owner.revision)
        if new is None or not new.ready(owner.roles):
            return
        for role in owner.roles:
            wanted = blueprint.service(owner.tree, new.roles[role])
            if self._services.get(wanted["metadata"]["name"], owner.namespace) is None:
                try:
                    self._writes[SERVICES.storage].written(owner.key, await self._ctx.client.create(SERVICES, wanted))
                except AlreadyExists:
                    continue
        kept = {owner.revision, *(name for name, each in revisions.items() if each.ready(owner.roles))}
        for each in self._services_of(owner):
            if in_slice(each, slice_) and label(each, names.DS_REVISION) not in kept:
                await self._delete(owner, SERVICES, each)

    # ------------------------------------------------------------------ status

    async def _write_status(self, owner: DsView, scalers: Scalers) -> None:
        owned, now = self._owned(owner), self._ctx.env.stamp()
        client = self._ctx.client
        for role, scaler in scalers.items():
            status = scaler_status(owner, role, scaler, owned, now)
            if status != (scaler.get("status") or {}):
                written = await client.update_status(DISAGGREGATED_SET_ROLE_SCALERS, {**scaler, "status": status})
                self._writes[DISAGGREGATED_SET_ROLE_SCALERS.storage].written(owner.key, written)
        status = next_status(owner, owned, scalers, now)
        if status != owner.status:
            written = await client.update_status(DISAGGREGATED_SETS, {**owner.tree, "status": status})
            self._status_writes.note(owner.key, written)
