"""The JobSet loop. One reconcile is one pass over a JobSet in upstream's order; what it changes in the status is written once, at the end.

A pass stands on cached Jobs, found by the owner's uid, and on the cached JobSet. Both may be behind: names of Jobs are fixed, so that a Job which was made and is not seen
yet cannot be made twice; deletions name the uid; a status is written against the revision that was read; and a JobSet older than our own last write, or than the attempt
that its Jobs carry, is not acted on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from kubemini.api.resources import JOB_SETS, JOBS, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Resource
from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset import elastic, failure_policy, in_place_restart, networking, startup_policy, success_policy, ttl, volumes
from kubemini.controllers.jobset.blueprint import Blueprint
from kubemini.controllers.jobset.children import Child, Children, RoleCounts, count, matters, sort_out
from kubemini.controllers.jobset.metrics import Metrics
from kubemini.controllers.jobset.resuming import resumed
from kubemini.controllers.jobset.status import StatusDraft
from kubemini.controllers.jobset.view import JobSetView, Role, job_name
from kubemini.machinery.errors import AlreadyExists, ApiStatus, Conflict, NotFound
from kubemini.machinery.gotext import formatted
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, controller_uid, key_of

BATCH_SECONDS, BATCH_PER_CHILD, BATCH_LIMIT = 0.02, 200e-6, 1.0
"""Events of Jobs are answered together: a pass follows the first one after this long, longer for a JobSet with many Jobs, so that the cost of an event does not grow."""
BREATH = 64
"""After so many writes in a row others get to run."""


T = TypeVar("T")


@dataclass(slots=True)
class _Memory:
    """What is known of one JobSet beside its objects; gone after a restart, and nothing depends on it."""

    uid: str
    written: int = 0
    """The resourceVersion of our last status write."""
    source: tuple[Tree, Tree | None] | None = None
    """The spec and annotations that the blueprints were made from."""
    blueprints: dict[str, Blueprint] = field(default_factory=dict)
    """By role."""
    children: dict[str, Child] = field(default_factory=dict)
    """The Jobs as the last pass saw them, by name."""


class _Abandoned(Exception):
    """The JobSet went away, or is going, in the middle of a pass."""


class JobSetController(Controller):
    """Keys are JobSets."""

    name = "jobset"
    component = "jobset"

    def __init__(self, kubernetes_version: str = DEFAULT_VERSION) -> None:
        super().__init__()
        self.metrics = Metrics()
        self.families = self.metrics.all()
        self._version = kubernetes_version
        self._writes = 0

    def setup(self, ctx: Context) -> None:
        """Follow JobSets and what they own; with in-place restart the pods too, whose agents report there."""
        self._ctx = ctx
        self._sets = ctx.informer(JOB_SETS)
        self._jobs = ctx.informer(JOBS)
        self._jobs.add_index("controller", controller_uid, reads=("ownerReferences",))
        self._services = ctx.informer(SERVICES)
        self._claims = ctx.informer(PERSISTENT_VOLUME_CLAIMS)
        self._memory: dict[str, _Memory] = {}
        self._elastic = ctx.gates.enabled("ElasticJobSet")
        self._in_place = ctx.gates.enabled("InPlaceRestart")
        self._restart_job = ctx.gates.enabled("RestartJob")
        self._sets.on_change(self._on_set)
        self._jobs.on_change(self._on_job)
        self._services.on_change(self.enqueue_owner(JOB_SETS))
        if self._in_place:
            self._pods = ctx.informer(PODS)
            self._pods.add_index("jobset", _set_of, reads=("labels",))
            self._pods.on_change(self._on_pod)

    # ------------------------------------------------------------------ events

    def _on_set(self, old: Tree | None, new: Tree | None) -> None:
        shown = new or old or {}
        meta = shown["metadata"]
        if old is None or new is None or old["metadata"].get("generation") != meta.get("generation") or "deletionTimestamp" in meta:
            self.queue.add(key_of(shown))
        else:
            self._soon(key_of(shown), self._jobs.count_index("controller", meta["uid"]))

    def _on_job(self, old: Tree | None, new: Tree | None) -> None:
        job = new or old or {}
        owner = controller_of(job)
        before = controller_of(old) if old is not None and new is not None else None
        if before is not None and (owner is None or owner["uid"] != before["uid"]):
            self._tell(before, job)
        if owner is not None and (old is None or new is None or matters(old, new)):
            self._tell(owner, job)

    def _tell(self, owner: Tree, job: Tree) -> None:
        if owner["kind"] == JOB_SETS.kind and owner["apiVersion"] == JOB_SETS.api_version:
            self._soon(f"{job['metadata']['namespace']}/{owner['name']}", self._jobs.count_index("controller", owner["uid"]))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        for key in _set_of(new or old or {}):
            self._soon(key, self._pods.count_index("jobset", key))

    def _soon(self, key: str, children: int) -> None:
        self.queue.add_after(key, min(BATCH_SECONDS + children * BATCH_PER_CHILD, BATCH_LIMIT))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a JobSet."""
        tree = self._sets.get_key(key)
        if tree is None:
            self._memory.pop(key, None)
            return None
        js = JobSetView(tree)
        memory = self._memory.get(key)
        if memory is None or memory.uid != js.uid:
            memory = self._memory[key] = _Memory(js.uid)
        if int(js.meta["resourceVersion"]) < memory.written or js.deleting:
            return None
        if js.foreign:
            return await self._expire(js)
        jobs = self._jobs.by_index("controller", js.uid)
        children = sort_out(js, jobs, memory.children, restart_job=self._restart_job)
        if children.newest > js.restarts:
            fresh = await self._fresh(js)
            if fresh is None:
                return None
            if fresh is not js:
                js = fresh
                children = sort_out(js, jobs, memory.children, restart_job=self._restart_job)
        memory.children = children.by_name
        draft = StatusDraft(js, self._ctx.env.stamp())
        counts = count(js, children, restart_job=self._restart_job)
        draft.count(counts)
        try:
            again = await self._advance(js, children, counts, draft, memory)
        except _Abandoned:
            return None
        await self._write(js, draft, memory)
        return again

    async def _fresh(self, js: JobSetView) -> JobSetView | None:
        """Return the JobSet as it is now, since its Jobs are ahead of what was read; the same view where nothing is newer, None where it has gone."""
        try:
            live = await self._ctx.client.get(JOB_SETS, js.name, js.namespace)
        except NotFound:
            return None
        view = JobSetView(live)
        if view.uid != js.uid or view.deleting:
            return None
        return js if view.meta["resourceVersion"] == js.meta["resourceVersion"] else view

    async def _advance(
        self, js: JobSetView, children: Children, counts: Mapping[str, RoleCounts], draft: StatusDraft, memory: _Memory
    ) -> float | None:
        """Take the steps of a pass in their order; an error in any of them leaves the status unwritten."""
        # 1. What has ended is cleaned up, and nothing else happens to it
        if js.end is not None:
            await self._delete(children.active)
            return await self._expire(js)
        # 2. Jobs of earlier attempts go
        await self._delete(children.previous)
        # 3. A restart is over once every Job is ready again
        if not js.suspended and sum(each.ready + each.succeeded for each in counts.values()) == js.replicas:
            draft.ready_again()
        # 4. Failure goes before success, and either ends the pass
        if children.failed:
            failure_policy.apply(failure_policy.decide(js, children.failed, restart_job=self._restart_job), draft)
            return None
        if children.successful and success_policy.met(js, children.successful):
            draft.complete()
            return None
        # 5. What the Jobs need to run
        await self._offer_service(js)
        await self._offer_claims(js)
        if self._elastic:
            await self._scale(js, children.active)
        # 6. Jobs that are missing, of the roles whose turn it is
        turn = startup_policy.turn(js, counts)
        await self._create(js, children, counts, turn.roles, memory)
        # 7. Suspended or running, as the JobSet says
        if js.suspended:
            await self._suspend(children.active)
            draft.suspend()
        else:
            await self._resume(children.active, (*turn.started, *turn.roles))
            if turn.waiting:
                draft.starting_in_order()
            else:
                if js.in_order:
                    draft.started_in_order()
                draft.resume()
        # 8. Attempts of pods that restart in place
        if self._in_place and js.strategy == "InPlaceRestart":
            self._compare_attempts(js, draft)
        return None

    async def _write(self, js: JobSetView, draft: StatusDraft, memory: _Memory) -> None:
        """Write the status where something changed, then say what happened."""
        if not draft.changed:
            return
        written = await self._ctx.client.update_status(JOB_SETS, {**js.tree, "status": draft.render()})
        memory.written = int(written["metadata"]["resourceVersion"])
        for event in draft.events:
            self._say(written, *event)
        if draft.ended:
            counter = self.metrics.completed if draft.ended == names.COMPLETED else self.metrics.failed
            counter.inc(js.name, js.namespace)

    def _say(self, js: Tree, type_: str, reason: str, message: str) -> None:
        """Say something about a JobSet. Upstream hands its text over as a format, so a percent sign in it (of an API's refusal) is garbled."""
        self._ctx.recorder.acted(js, type_, reason, formatted(message), action="Reconciling")

    # ------------------------------------------------------------------ the end

    async def _expire(self, js: JobSetView) -> float | None:
        """Delete a finished JobSet whose time is over; return the seconds that it has left otherwise."""
        left = ttl.left(js, self._ctx.env.now())
        if left is None or left > 0:
            return left
        revision = js.meta["resourceVersion"]
        with suppress(NotFound):
            await self._ctx.client.delete(JOB_SETS, js.name, namespace=js.namespace, propagation="Foreground", uid=js.uid, resource_version=revision)
        return None

    async def _delete(self, jobs: Iterable[Child]) -> None:
        """Delete Jobs with their pods, those very Jobs only."""

        async def delete(job: Child) -> None:
            try:
                await self._ctx.client.delete(JOBS, job.name, namespace=job.tree["metadata"]["namespace"], propagation="Foreground", uid=job.uid)
            except (NotFound, Conflict):
                # gone, with another one of its name in its place perhaps
                return

        await self._each(delete, [job for job in jobs if not job.deleting])

    # ------------------------------------------------------------------ what Jobs need

    async def _offer_service(self, js: JobSetView) -> None:
        """Make the headless Service unless there is one of its name, whoever owns it."""
        if not networking.dns_enabled(js.spec) or self._services.get(networking.subdomain(js.spec, js.name), js.namespace) is not None:
            return
        await self._offer(js, SERVICES, networking.service(js.tree), names.SERVICE_CREATION_FAILED)

    async def _offer_claims(self, js: JobSetView) -> None:
        """Make the claims that are missing; one that exists is never changed."""
        if not js.spec.get("volumeClaimPolicies"):
            return

        async def offer(policy: Tree) -> None:
            """A claim that is refused keeps the later ones of its policy waiting, not those of the others."""
            for claim in volumes.claims(js.tree, policy):
                if self._claims.get(claim["metadata"]["name"], js.namespace) is None:
                    await self._offer(js, PERSISTENT_VOLUME_CLAIMS, claim, names.PVC_CREATION_FAILED)

        await self._each(offer, js.spec["volumeClaimPolicies"])

    async def _offer(self, js: JobSetView, resource: Resource, obj: Tree, reason: str) -> None:
        try:
            await self._ctx.client.create(resource, obj)
        except AlreadyExists:
            return
        except ApiStatus as refused:
            self._say(js.tree, "Warning", reason, refused.message)
            raise

    # ------------------------------------------------------------------ Jobs

    async def _create(self, js: JobSetView, children: Children, counts: Mapping[str, RoleCounts], roles: Iterable[Role], memory: _Memory) -> None:
        """Make the Jobs of these roles that do not exist, role by role; one role's trouble keeps the later ones waiting."""
        if children.previous and js.strategy == "BlockingRecreate":
            return
        for role in roles:
            missing = [index for index in range(role.replicas) if job_name(js.name, role.name, index) not in children.by_name]
            if not missing:
                continue
            blueprint = self._blueprint(js, role, memory)
            restarts = counts[role.name].job_restarts
            problems: list[str] = []
            first: ApiStatus | None = None
            for index in missing:
                alone = (restarts[index] if index < len(restarts) else 0) if self._restart_job else None
                job = blueprint.make(index, attempt=js.restarts, suspended=js.suspended, job_attempt=alone)
                try:
                    await self._create_job(js, job)
                except ApiStatus as refused:
                    problems.append(f'job "{job["metadata"]["name"]}" creation failed with error: {refused.message}')
                    first = first or refused
                await self._breathe(js)
            if first is not None:
                self._say(js.tree, "Warning", names.JOB_CREATION_FAILED, "\n".join(problems))
                raise first

    async def _create_job(self, js: JobSetView, job: Tree) -> None:
        """Make a Job. One of its name that is ours is as good: the cache does not show it yet."""
        try:
            await self._ctx.client.create(JOBS, job)
        except AlreadyExists:
            try:
                live = await self._ctx.client.get(JOBS, job["metadata"]["name"], js.namespace)
            except NotFound:
                live = None
            if live is None or controller_uid(live) != (js.uid,):
                raise

    def _blueprint(self, js: JobSetView, role: Role, memory: _Memory) -> Blueprint:
        annotations = js.meta.get("annotations")
        if memory.source is None or memory.source[0] is not js.spec or memory.source[1] != annotations:
            memory.source, memory.blueprints = (js.spec, annotations), {}
        found = memory.blueprints.get(role.name)
        if found is None:
            found = memory.blueprints[role.name] = Blueprint.of(js, role, self._version)
        return found

    async def _scale(self, js: JobSetView, active: Iterable[Child]) -> None:
        """Bring the size of active Jobs in line with the JobSet."""
        roles = {role.name: role for role in js.roles}
        patches = [(job.name, patch) for job in active if (role := roles.get(job.role)) and (patch := elastic.patch(job, role))]
        await self._each(lambda each: self._ctx.client.patch(JOBS, each[0], each[1], namespace=js.namespace), patches)

    async def _suspend(self, active: Iterable[Child]) -> None:
        """Suspend the active Jobs that run."""

        async def suspend(job: Child) -> None:
            await self._ctx.client.update(JOBS, {**job.tree, "spec": {**job.tree["spec"], "suspend": True}})

        await self._each(suspend, [job for job in active if not job.suspended])

    async def _resume(self, active: Iterable[Child], roles: Iterable[Role]) -> None:
        """Let the suspended Jobs of these roles run, with what their template says by now."""
        turn = {role.name: role for role in roles}

        async def resume(job: Child) -> None:
            tree, status = job.tree, job.tree.get("status") or {}
            if status.get("startTime") is not None:
                # a Job that has started keeps its template: the time goes first
                cleared = {name: value for name, value in status.items() if name != "startTime"}
                tree = await self._ctx.client.update_status(JOBS, {**tree, "status": cleared})
            await self._ctx.client.update(JOBS, resumed(tree, turn[job.role]))

        await self._each(resume, [job for job in active if job.suspended and job.role in turn])

    def _compare_attempts(self, js: JobSetView, draft: StatusDraft) -> None:
        found = in_place_restart.judge(js, self._pods.by_index("jobset", f"{js.namespace}/{js.name}"))
        if found.failed:
            draft.fail(names.REACHED_MAX_RESTARTS, failure_policy.REACHED_MAX_MESSAGE)
        else:
            draft.attempts(current=found.current, previous=found.previous)

    # ------------------------------------------------------------------ writing

    async def _each(self, act: Callable[[T], Awaitable[object]], things: Iterable[T]) -> None:
        """Do something to each, all of them; then raise the first refusal if there was one."""
        first: ApiStatus | None = None
        for thing in things:
            try:
                await act(thing)
            except ApiStatus as refused:
                first = first or refused
            await self._breathe()
        if first is not None:
            raise first

    async def _breathe(self, js: JobSetView | None = None) -> None:
        """Let others run now and then. Raise `_Abandoned` where the JobSet that is worked on has gone, or is going, meanwhile."""
        self._writes += 1
        if self._writes % BREATH:
            return
        await self._ctx.env.sleep(0)
        if js is not None:
            now = self._sets.get(js.name, js.namespace)
            if now is None or now["metadata"]["uid"] != js.uid or "deletionTimestamp" in now["metadata"]:
                raise _Abandoned


def _set_of(pod: Tree) -> tuple[str, ...]:
    """Return the key of the JobSet that a pod's label names, as index values."""
    meta = pod["metadata"]
    name = (meta.get("labels") or {}).get(names.NAME)
    return () if name is None else (f"{meta['namespace']}/{name}",)
