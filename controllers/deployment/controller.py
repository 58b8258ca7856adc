"""The Deployment loop. One reconcile finds the new and the old ReplicaSets, moves pods between them as far as the limits allow, and tells how the rollout goes."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubemini.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.deployment import progress, revisions
from kubemini.controllers.deployment.amounts import (
    count,
    is_rolling,
    is_saturated,
    max_unavailable,
    new_replicas,
    number_annotation,
    proportions,
    replicas,
    reported,
)
from kubemini.controllers.deployment.progress import Clock
from kubemini.controllers.replica_set.claiming import Claims
from kubemini.controllers.replica_set.pods import ended, phase
from kubemini.machinery.errors import AlreadyExists, ApiStatus, NotFound
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.consistency import LAPSE, OwnWrites
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, controller_uid, key_of
from kubemini.runtime.selecting import SelectorIndex

NO_LIMIT = 2**31 - 1
"""revisionHistoryLimit that means no limit."""


@dataclass(slots=True)
class _Rollout:
    """What one pass knows of a Deployment; ReplicaSets are replaced as they are written."""

    deployment: Tree
    clock: Clock
    sets: list[Tree]
    new: Tree | None = None
    old: list[Tree] = field(default_factory=list)
    conditions: list[Tree] = field(default_factory=list)
    annotations: Tree = field(default_factory=dict)
    status: Tree | None = None
    collisions: bool = False
    """Whether the collision count went up, so that the pass ends here."""

    @property
    def all(self) -> list[Tree]:
        """The old ReplicaSets and the new one."""
        return [*self.old, *([self.new] if self.new is not None else [])]

    @property
    def active_old(self) -> list[Tree]:
        """The old ReplicaSets that are told to have pods."""
        return [each for each in self.old if replicas(each) > 0]

    def replaced(self, written: Tree) -> None:
        """Take the next state of a ReplicaSet."""
        uid = written["metadata"]["uid"]
        if self.new is not None and self.new["metadata"]["uid"] == uid:
            self.new = written
        self.old = [written if each["metadata"]["uid"] == uid else each for each in self.old]
        self.sets = [written if each["metadata"]["uid"] == uid else each for each in self.sets]

    def say(self, status: str, reason: str, message: str) -> None:
        """Set condition Progressing."""
        self.conditions = progress.with_condition(
            self.conditions, progress.condition(progress.PROGRESSING, status, reason, message, self.clock.stamp)
        )


class DeploymentController(Controller):
    """Keys are Deployments."""

    name = "deployment"
    component = "deployment-controller"

    def setup(self, ctx: Context) -> None:
        """Follow Deployments, ReplicaSets and pods."""
        self._ctx = ctx
        self._deployments = ctx.informer(DEPLOYMENTS)
        self._sets = ctx.informer(REPLICA_SETS)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("controller", controller_uid, reads=("ownerReferences",))
        self._claims = Claims(ctx, DEPLOYMENTS, self._sets)
        self._writes = OwnWrites(ctx.env, self._sets, self.queue.add)
        self._selectors = SelectorIndex()
        self._tells_terminating = ctx.gates.enabled("DeploymentReplicaSetTerminatingReplicas")
        self._deployments.on_change(self._on_deployment)
        self._sets.on_change(self._on_set)
        self._pods.on_change(self._on_pod, reads=())

    # ------------------------------------------------------------------ events

    def _on_deployment(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        if new is None:
            self._selectors.drop(key)
            self._writes.forget(key)
        elif old is None or old["spec"].get("selector") is not new["spec"].get("selector"):
            self._selectors.put(key, new["metadata"]["namespace"], from_label_selector(new["spec"].get("selector")))
        self.queue.add(key)

    def _on_set(self, old: Tree | None, new: Tree | None) -> None:
        for each in (old, new):
            owner = controller_of(each) if each is not None else None
            if each is not None and owner is not None and owner["kind"] == "Deployment":
                self.queue.add(f"{each['metadata']['namespace']}/{owner['name']}")
        if new is not None and controller_of(new) is None:
            for key in self._selectors.matching(new["metadata"]["namespace"], new["metadata"].get("labels")):
                self.queue.add(key)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        """A Recreate rollout goes on when the last old pod is gone."""
        if new is not None or old is None:
            return
        owner = controller_of(old)
        if owner is None or owner["kind"] != "ReplicaSet":
            return
        above = self._sets.get(owner["name"], old["metadata"]["namespace"])
        top = controller_of(above) if above is not None else None
        if top is None or top["kind"] != "Deployment":
            return
        deployment = self._deployments.get(top["name"], old["metadata"]["namespace"])
        if deployment is not None and not is_rolling(deployment):
            self.queue.add(key_of(deployment))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a Deployment; its status is written once, at the end."""
        deployment = self._deployments.get_key(key)
        if deployment is None:
            return None
        if not deployment["spec"].get("selector"):
            text = "This deployment is selecting all pods. A non-empty selector is required."
            self._ctx.recorder.event(deployment, "Warning", "SelectingAll", text)
            return None
        env = self._ctx.env
        if not self._writes.shown(key):
            # On a cache without our last ReplicaSets, numbers would be given twice and limits be overstepped; their events bring us back
            return LAPSE
        sets = await self._claims.claim(deployment, from_label_selector(deployment["spec"]["selector"]))
        status = deployment.get("status") or {}
        pass_ = _Rollout(deployment, Clock(env.now(), env.stamp()), sets, conditions=list(status.get("conditions") or ()))
        pass_.annotations = deployment["metadata"].get("annotations") or {}
        failure: ApiStatus | None = None
        try:
            await self._roll(pass_)
        except ApiStatus as refused:
            failure = refused
        await self._save(pass_)
        if failure is not None:
            raise failure
        return progress.next_check(deployment, pass_.status, env.now()) if pass_.status is not None else None

    async def _roll(self, pass_: _Rollout) -> None:
        deployment = pass_.deployment
        if "deletionTimestamp" in deployment["metadata"]:
            await self._sort(pass_, create=False)
            self._tell(pass_, judge=False)
            return
        self._note_pause(pass_)
        paused = deployment["spec"].get("paused")
        back = revisions.rollback_to(deployment)
        if back is not None and not paused:
            await self._roll_back(pass_, back)
        elif paused or self._was_scaled(pass_):
            await self._sort(pass_, create=False)
            await self._scale(pass_)
            if paused and back is None:
                await self._clean_up(pass_)
            self._tell(pass_, judge=False)
        elif is_rolling(deployment):
            await self._roll_step_by_step(pass_)
        else:
            await self._recreate(pass_)

    def _note_pause(self, pass_: _Rollout) -> None:
        """Say that a rollout is paused or resumed, so that its deadline does not run out meanwhile."""
        current = progress.find(pass_.conditions, progress.PROGRESSING)
        reason = current.get("reason") if current is not None else None
        if not progress.has_deadline(pass_.deployment) or reason == progress.TIMED_OUT:
            return
        if pass_.deployment["spec"].get("paused"):
            if reason != progress.PAUSED:
                pass_.say("Unknown", progress.PAUSED, "Deployment is paused")
        elif reason == progress.PAUSED:
            pass_.say("Unknown", progress.RESUMED, "Deployment is resumed")

    @staticmethod
    def _was_scaled(pass_: _Rollout) -> bool:
        """Tell whether the Deployment's size changed since its ReplicaSets were written."""
        wanted = replicas(pass_.deployment)
        sizes = (number_annotation(each, names.DESIRED_REPLICAS) for each in pass_.sets if replicas(each) > 0)
        return any(size is not None and size != wanted for size in sizes)

    async def _roll_back(self, pass_: _Rollout, number: int) -> None:
        """Give the Deployment the template of a revision (0: the last but one), and take back the wish for it, whatever came of it."""
        await self._sort(pass_, create=True)
        deployment, recorder = pass_.deployment, self._ctx.recorder
        name, annotations, spec = deployment["metadata"]["name"], pass_.annotations, deployment["spec"]
        wanted = number or revisions.last_but_one(pass_.all)
        target = next((each for each in pass_.all if wanted and revisions.revision(each) == wanted), None)
        done = ""
        if target is None:
            text = "Unable to find the revision to rollback to." if wanted else "Unable to find last revision."
            recorder.event(deployment, "Warning", "DeploymentRollbackRevisionNotFound", text)
        elif revisions.same_template(target["spec"]["template"], spec["template"]):
            text = f'The rollback revision contains the same template as current deployment "{name}"'
            recorder.event(deployment, "Warning", "DeploymentRollbackTemplateUnchanged", text)
        else:
            spec = {**spec, "template": revisions.without_hash(target["spec"]["template"])}
            annotations = revisions.annotations_from(target, annotations)
            done = f'Rolled back deployment "{name}" to revision {wanted}'
        pass_.annotations = {key: value for key, value in annotations.items() if key != revisions.ROLLBACK_TO}
        changed = {**deployment, "metadata": {**deployment["metadata"], "annotations": pass_.annotations}, "spec": spec}
        pass_.deployment = await self._ctx.client.update(DEPLOYMENTS, changed)
        if done:
            recorder.event(deployment, "Normal", "DeploymentRollback", done)

    # ------------------------------------------------------------------ new and old

    async def _sort(self, pass_: _Rollout, *, create: bool) -> None:
        """Find the new ReplicaSet, or make it, and bring its annotations and revision up to date."""
        deployment = pass_.deployment
        found = revisions.find_new(deployment, pass_.sets)
        pass_.old = [each for each in pass_.sets if found is None or each["metadata"]["uid"] != found["metadata"]["uid"]]
        number = revisions.next_revision(pass_.old)
        if found is not None:
            annotations = found["metadata"].get("annotations") or {}
            wanted = revisions.annotated(deployment, annotations, number)
            min_ready = deployment["spec"].get("minReadySeconds", 0)
            if wanted is not annotations or found["spec"].get("minReadySeconds", 0) != min_ready:
                changed = {**found, "metadata": {**found["metadata"], "annotations": wanted}, "spec": {**found["spec"], "minReadySeconds": min_ready}}
                found = await self._update(pass_, changed)
            pass_.new = found
            pass_.replaced(found)
            self._number(pass_, found["metadata"]["annotations"].get(names.DEPLOYMENT_REVISION, ""))
            if progress.has_deadline(deployment) and progress.find(pass_.conditions, progress.PROGRESSING) is None:
                pass_.say("True", "FoundNewReplicaSet", f'Found new replica set "{found["metadata"]["name"]}"')
        elif create:
            await self._make(pass_, number)

    def _number(self, pass_: _Rollout, number: str) -> None:
        if pass_.annotations.get(names.DEPLOYMENT_REVISION) != number:
            pass_.annotations = {**pass_.annotations, names.DEPLOYMENT_REVISION: number}

    async def _make(self, pass_: _Rollout, number: int) -> None:
        deployment, recorder = pass_.deployment, self._ctx.recorder
        size = new_replicas(deployment, pass_.old, 0)
        wanted = revisions.made(deployment, number, size)
        name = wanted["metadata"]["name"]
        watched = progress.has_deadline(deployment)
        try:
            created = await self._ctx.client.create(REPLICA_SETS, wanted)
        except AlreadyExists:
            created = await self._ctx.client.get(REPLICA_SETS, name, wanted["metadata"]["namespace"])
            mine = controller_uid(created) == (deployment["metadata"]["uid"],)
            if not mine or not revisions.same_template(created["spec"]["template"], deployment["spec"]["template"]):
                # Another template has this hash: the next pass tries another one
                pass_.collisions = True
                raise
        except ApiStatus as refused:
            if not refused.has_cause("NamespaceTerminating"):
                text = f'Failed to create new replica set "{name}": {refused.message}'
                if watched:
                    pass_.say("False", "ReplicaSetCreateError", text)
                recorder.event(deployment, "Warning", "ReplicaSetCreateError", text)
            raise
        else:
            if size > 0:
                recorder.event(deployment, "Normal", "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")
            if watched:
                pass_.say("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
        self._writes.written(key_of(deployment), created)
        pass_.new = created
        pass_.sets.append(created)
        self._number(pass_, str(number))

    # ------------------------------------------------------------------ sizes

    async def _resize(self, pass_: _Rollout, each: Tree, size: int) -> bool:
        """Give a ReplicaSet another size, and the annotations that go with it. Tell whether the size changed."""
        meta, before = each["metadata"], replicas(each)
        annotations = meta.get("annotations") or {}
        wanted = revisions.sized(pass_.deployment, annotations)
        if before == size and wanted is annotations:
            return False
        changed = {**each, "metadata": {**meta, "annotations": wanted}, "spec": {**each["spec"], "replicas": size}}
        pass_.replaced(await self._update(pass_, changed))
        if before == size:
            return False
        way = "up" if size > before else "down"
        self._ctx.recorder.event(pass_.deployment, "Normal", "ScalingReplicaSet", f"Scaled {way} replica set {meta['name']} from {before} to {size}")
        return True

    async def _update(self, pass_: _Rollout, changed: Tree) -> Tree:
        written = await self._ctx.client.update(REPLICA_SETS, changed)
        self._writes.written(key_of(pass_.deployment), written)
        return written

    async def _scale(self, pass_: _Rollout) -> None:
        """Bring the size of a changed or paused Deployment to its ReplicaSets."""
        deployment = pass_.deployment
        active = [each for each in pass_.all if replicas(each) > 0]
        if len(active) <= 1:
            only = active[0] if active else pass_.new if pass_.new is not None else next(iter(reversed(revisions.by_creation(pass_.old))), None)
            if only is not None and replicas(only) != replicas(deployment):
                await self._resize(pass_, only, replicas(deployment))
            return
        if is_saturated(deployment, pass_.new):
            for each in pass_.active_old:
                await self._resize(pass_, each, 0)
        elif is_rolling(deployment):
            for each, size in proportions(deployment, active):
                await self._resize(pass_, each, size)

    async def _roll_step_by_step(self, pass_: _Rollout) -> None:
        await self._sort(pass_, create=True)
        changed = await self._grow_new(pass_) or await self._shrink_old(pass_)
        if not changed and progress.is_complete(pass_.deployment, pass_.deployment.get("status") or {}):
            await self._clean_up(pass_)
        self._tell(pass_, judge=True)

    async def _grow_new(self, pass_: _Rollout) -> bool:
        new, wanted = pass_.new, replicas(pass_.deployment)
        if new is None or replicas(new) == wanted:
            return False
        size = wanted if replicas(new) > wanted else new_replicas(pass_.deployment, pass_.all, replicas(new))
        return replicas(new) != size and await self._resize(pass_, new, size)

    async def _shrink_old(self, pass_: _Rollout) -> bool:
        """Take pods from old ReplicaSets: first those that are not available anyway, then others as long as enough are."""
        deployment, new = pass_.deployment, pass_.new
        if not pass_.active_old or new is None:
            return False
        needed = replicas(deployment) - max_unavailable(deployment)
        missing = replicas(new) - reported([new], "availableReplicas")
        most = count(pass_.all) - needed - missing
        if most <= 0:
            return False
        taken = 0
        for each in revisions.by_creation(pass_.active_old):
            unhealthy = replicas(each) - reported([each], "availableReplicas")
            if taken < most and unhealthy > 0:
                less = min(most - taken, unhealthy)
                await self._resize(pass_, each, replicas(each) - less)
                taken += less
        spare = reported(pass_.all, "availableReplicas") - needed
        shrunk = 0
        for each in revisions.by_creation(pass_.active_old):
            if shrunk < spare:
                less = min(replicas(each), spare - shrunk)
                await self._resize(pass_, each, replicas(each) - less)
                shrunk += less
        return taken + shrunk > 0

    async def _recreate(self, pass_: _Rollout) -> None:
        await self._sort(pass_, create=False)
        shrunk = False
        for each in pass_.active_old:
            shrunk = await self._resize(pass_, each, 0) or shrunk
        if not shrunk and not self._old_pods_run(pass_):
            if pass_.new is None:
                await self._sort(pass_, create=True)
            if pass_.new is not None and replicas(pass_.new) != replicas(pass_.deployment):
                await self._resize(pass_, pass_.new, replicas(pass_.deployment))
            if progress.is_complete(pass_.deployment, pass_.deployment.get("status") or {}):
                await self._clean_up(pass_)
        self._tell(pass_, judge=True)

    def _old_pods_run(self, pass_: _Rollout) -> bool:
        if reported(pass_.old, "replicas") > 0:
            return True
        pods = (pod for each in pass_.old for pod in self._pods.by_index("controller", each["metadata"]["uid"]))
        return any(not ended(pod) and phase(pod) != "Unknown" for pod in pods)

    async def _clean_up(self, pass_: _Rollout) -> None:
        """Delete old ReplicaSets above the history limit, lowest revision first."""
        limit = pass_.deployment["spec"].get("revisionHistoryLimit")
        if limit is None or limit == NO_LIMIT:
            return
        alive = [each for each in pass_.old if "deletionTimestamp" not in each["metadata"]]
        for each in sorted(revisions.by_creation(alive), key=revisions.revision)[: max(len(alive) - limit, 0)]:
            status, meta = each.get("status") or {}, each["metadata"]
            if status.get("replicas", 0) or replicas(each) or meta.get("generation", 0) > status.get("observedGeneration", 0):
                continue
            try:
                await self._ctx.client.delete(REPLICA_SETS, meta["name"], namespace=meta["namespace"], uid=meta["uid"], propagation="Background")
            except NotFound:
                continue
            self._writes.removed(key_of(pass_.deployment), each)

    # ------------------------------------------------------------------ the status

    def _tell(self, pass_: _Rollout, *, judge: bool) -> None:
        deployment = pass_.deployment
        before = {**(deployment.get("status") or {}), "conditions": pass_.conditions}
        status = progress.calculated(deployment, pass_.all, pass_.new, pass_.conditions, pass_.clock, terminating=self._tells_terminating)
        if judge:
            conditions = progress.judged(deployment, status, before, pass_.new, pass_.clock)
            status["conditions"] = progress.with_failures(conditions, pass_.all, pass_.new)
        pass_.status = status

    async def _save(self, pass_: _Rollout) -> None:
        deployment = pass_.deployment
        meta, before = deployment["metadata"], deployment.get("status") or {}
        status = pass_.status
        if status is None:
            # The pass broke off: what was said of it is kept
            status = {**before, "conditions": pass_.conditions} if pass_.conditions else before
        if pass_.collisions:
            status = {**status, "collisionCount": before.get("collisionCount", 0) + 1}
        if pass_.annotations != (meta.get("annotations") or {}):
            meta = {**meta, "annotations": pass_.annotations}
        elif status == before:
            return
        await self._ctx.client.update_status(DEPLOYMENTS, {**deployment, "metadata": meta, "status": status})
