"""Known defects of JobSet controllers, made again. Each replaces one function or method for the time of a search."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kubemini.api.resources import JOBS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset import (
    children,
    controller,
    depends_on,
    exclusive,
    failure_policy,
    networking,
    pod_webhook,
    resuming,
    startup_policy,
    success_policy,
    ttl,
)
from kubemini.controllers.jobset.blueprint import Blueprint
from kubemini.controllers.jobset.children import Child, Children, RoleCounts
from kubemini.controllers.jobset.controller import JobSetController
from kubemini.controllers.jobset.status import StatusDraft
from kubemini.controllers.jobset.view import JobSetView, Role
from kubemini.machinery.errors import ApiStatus
from kubemini.runtime.env import from_stamp
from kubemini.runtime.webhooks import Webhook, WebhookRequest
from tests.quality import jobsets
from tests.quality.searching import Mutant, Scenario, Swap

MUTANTS: list[Mutant] = []


def mutant(name: str, source: str, defect: str, replaced: str, scenario: Scenario[Any], *swaps: Swap) -> None:
    """Add one to the table."""
    MUTANTS.append(Mutant(name, source, defect, replaced, scenario, swaps))


# ----------------------------------------------------------------------------------------------- attempts


def _keep_previous(js: JobSetView, owned: Iterable[Tree], known: dict[str, Child], *, restart_job: bool) -> Children:
    found = children.sort_out(js, owned, known, restart_job=restart_job)
    found.active += [job for job in found.previous if not job.end]
    found.previous = [job for job in found.previous if job.end]
    return found


mutant(
    "attempts-mixed",
    "jobset#665",
    "after a restart running Jobs of the attempt before are kept",
    "children.sort_out takes unfinished Jobs of earlier attempts for current",
    jobsets.FAILING,
    Swap(controller, "sort_out", _keep_previous),
)


async def _create_at_once(self: JobSetController, js: JobSetView, found: Children, *rest: Any) -> None:
    found.previous, previous = [], found.previous
    try:
        await _CREATE(self, js, found, *rest)
    finally:
        found.previous = previous


_CREATE = JobSetController._create

mutant(
    "blocking-recreate-does-not-wait",
    "jobset#684",
    "Jobs of the new attempt are made while others of the old one still go",
    "JobSetController._create does not look at previous Jobs",
    jobsets.FAILING,
    Swap(JobSetController, "_create", _create_at_once),
)


def _failed_for_ever(js: JobSetView, owned: Iterable[Tree], known: dict[str, Child], *, restart_job: bool) -> Children:
    found = children.sort_out(js, owned, known, restart_job=restart_job)
    found.failed += [job for job in found.previous if job.end == "Failed"]
    return found


mutant(
    "one-failure-two-restarts",
    "jobset#1129",
    "a failed Job of an earlier attempt, not yet gone, costs another restart",
    "children.sort_out takes failed Jobs of earlier attempts for failed ones",
    jobsets.FAILING,
    Swap(controller, "sort_out", _failed_for_ever),
)


def _restart_uncounted(self: StatusDraft, reason: str, event: str, message: str, *, counted: bool) -> None:
    _RESTART(self, reason, event, message, counted=False)


_RESTART = StatusDraft.restart

mutant(
    "restarts-not-counted",
    "jobset#918",
    "restarts do not count towards maxRestarts",
    "StatusDraft.restart counts nothing",
    jobsets.FAILING,
    Swap(StatusDraft, "restart", _restart_uncounted),
)
mutant(
    "one-restart-too-many",
    "JobSet invariant 25",
    "a JobSet restarts once more than maxRestarts",
    "failure_policy.counted is one too low",
    jobsets.FAILING,
    Swap(failure_policy, "counted", lambda js, *, restart_job: int(js.status.get("restartsCountTowardsMax", 0)) - 1),
)
mutant(
    "one-restart-too-few",
    "JobSet invariant 27",
    "a JobSet fails one restart before maxRestarts",
    "failure_policy.counted is one too high",
    jobsets.FAILING,
    Swap(failure_policy, "counted", lambda js, *, restart_job: int(js.status.get("restartsCountTowardsMax", 0)) + 1),
)


def _make_first(self: Blueprint, index: int, *, attempt: int, suspended: bool, job_attempt: int | None = None) -> Tree:
    return _MAKE(self, index, attempt=0, suspended=suspended, job_attempt=job_attempt)


_MAKE = Blueprint.make

mutant(
    "attempt-label-stays",
    "jobset#1152",
    "Jobs of every attempt carry restart attempt 0",
    "Blueprint.make labels attempt 0",
    jobsets.FAILING,
    Swap(Blueprint, "make", _make_first),
)


def _make_unannotated(self: Blueprint, index: int, **more: Any) -> Tree:
    job = _MAKE(self, index, **more)
    template = job["spec"]["template"]
    labels = {name: value for name, value in template["metadata"]["labels"].items() if name != names.RESTART_ATTEMPT}
    return {**job, "spec": {**job["spec"], "template": {**template, "metadata": {**template["metadata"], "labels": labels}}}}


mutant(
    "attempt-label-missing",
    "jobset#1152",
    "pods do not carry the restart attempt",
    "Blueprint.make leaves the attempt off the pod template",
    jobsets.FAILING,
    Swap(Blueprint, "make", _make_unannotated),
)

# ----------------------------------------------------------------------------------------------- policies


def _last_rule(rules: Sequence[Tree], failed: Sequence[Child]) -> tuple[Tree | None, Child]:
    return _MATCH(list(reversed(rules)), failed)


_MATCH = failure_policy._match

mutant(
    "last-rule-wins",
    "jobset KEP-262",
    "of several rules that match the last one decides",
    "failure_policy._match goes through the rules backwards",
    jobsets.RULED_SETS,
    Swap(failure_policy, "_match", _last_rule),
)


def _ignore_targets(rule: Tree, job: Child) -> bool:
    return _APPLIES({name: value for name, value in rule.items() if name != "targetReplicatedJobs"}, job)


_APPLIES = failure_policy._applies

mutant(
    "targets-of-a-rule-ignored",
    "jobset KEP-262",
    "a rule decides about Jobs of roles that it does not name",
    "failure_policy._applies does not look at targetReplicatedJobs",
    jobsets.RULED_SETS,
    Swap(failure_policy, "_applies", _ignore_targets),
)
mutant(
    "free-restart-counts",
    "jobset#918",
    "RestartJobSetAndIgnoreMaxRestarts counts towards maxRestarts",
    "the action is RestartJobSet's",
    jobsets.RULED_SETS,
    Swap(failure_policy, "_ACTIONS", {**failure_policy._ACTIONS, "RestartJobSetAndIgnoreMaxRestarts": failure_policy._ACTIONS["RestartJobSet"]}),
)


def _swapped(js: JobSetView, successful: Sequence[Child]) -> bool:
    policy = js.spec.get("successPolicy") or {}
    other = {**policy, "operator": "All" if policy.get("operator") == "Any" else "Any"}
    return success_policy.met(JobSetView({**js.tree, "spec": {**js.spec, "successPolicy": other}}), successful)


class _SuccessPolicy:
    met = staticmethod(_swapped)


mutant(
    "any-and-all-swapped",
    "JobSet invariant 26",
    "operator Any waits for all Jobs, All for one",
    "success_policy.met takes one operator for the other",
    jobsets.SUCCESS,
    Swap(controller, "success_policy", _SuccessPolicy),
)


def _without_targets(js: JobSetView, successful: Sequence[Child]) -> bool:
    policy = {name: value for name, value in (js.spec.get("successPolicy") or {}).items() if name != "targetReplicatedJobs"}
    return success_policy.met(JobSetView({**js.tree, "spec": {**js.spec, "successPolicy": policy}}), successful)


class _Untargeted:
    met = staticmethod(_without_targets)


mutant(
    "targets-of-success-ignored",
    "JobSet invariant 26",
    "Jobs of roles that the success policy does not name are waited for",
    "success_policy.met does not look at targetReplicatedJobs",
    jobsets.SUCCESS,
    Swap(controller, "success_policy", _Untargeted),
)

# ----------------------------------------------------------------------------------------------- order


def _all_at_once(js: JobSetView, counts: Mapping[str, RoleCounts]) -> startup_policy.Turn:
    return startup_policy.Turn(list(js.roles))


class _AllAtOnce:
    turn = staticmethod(_all_at_once)


mutant(
    "in-order-starts-early",
    "jobset KEP-104",
    "with InOrder later roles start before the earlier ones are ready",
    "startup_policy.turn gives everybody the turn",
    jobsets.IN_ORDER,
    Swap(controller, "startup_policy", _AllAtOnce),
)


mutant(
    "depends-on-ignored",
    "jobset KEP-672",
    "a role starts before the role that it depends on has come far enough",
    "depends_on.reached is always so",
    jobsets.DEPENDING,
    Swap(depends_on, "reached", lambda role, replicas, counts: True),
)


def _ready_suffices(role: Role, replicas: Mapping[str, int], counts: Mapping[str, RoleCounts]) -> bool:
    return all(counts[item["name"]].started == replicas.get(item["name"], 0) for item in role.depends_on)


mutant(
    "ready-for-complete",
    "jobset KEP-672",
    "dependsOn Complete is satisfied once the Jobs are ready",
    "depends_on.reached takes Ready for Complete",
    jobsets.DEPENDING,
    Swap(depends_on, "reached", _ready_suffices),
)

# ----------------------------------------------------------------------------------------------- suspension


async def _nothing(self: JobSetController, *rest: Any) -> None:
    return


mutant(
    "suspended-set-runs",
    "JobSet invariant 9",
    "Jobs of a suspended JobSet go on",
    "JobSetController._suspend does nothing",
    jobsets.PAUSED,
    Swap(JobSetController, "_suspend", _nothing),
)
mutant(
    "suspended-set-makes-running-jobs",
    "JobSet invariant 9",
    "a suspended JobSet makes Jobs that run",
    "Blueprint.make does not suspend",
    jobsets.RUNNING,
    Swap(Blueprint, "make", lambda self, index, **more: _MAKE(self, index, **{**more, "suspended": False})),
    Swap(JobSetController, "_suspend", _nothing),
)


def _merged_selectors(job: Tree, role: Role) -> Tree:
    found = resuming.resumed(job, role)
    before = job["spec"]["template"]["spec"].get("nodeSelector") or {}
    template = found["spec"]["template"]
    spec = {**template["spec"], "nodeSelector": {**before, **(template["spec"].get("nodeSelector") or {})}}
    return {**found, "spec": {**found["spec"], "template": {**template, "spec": spec}}}


mutant(
    "selectors-merged-on-resume",
    "jobset#1294",
    "node selectors of an earlier admission stay in resumed Jobs",
    "resuming.resumed merges node selectors",
    jobsets.RETARGETED,
    Swap(controller, "resumed", _merged_selectors),
)


# ----------------------------------------------------------------------------------------------- the end


async def _delete_unless_retiring(self: JobSetController, found: Iterable[Child]) -> None:
    await _DELETE(self, [job for job in found if job.end or self._sets.list()[0]["spec"].get("ttlSecondsAfterFinished") is None])


_DELETE = JobSetController._delete

mutant(
    "jobs-run-until-the-ttl",
    "jobset#666",
    "with a TTL active Jobs of a finished JobSet run on until it passes",
    "JobSetController._delete leaves active Jobs of a set with a TTL",
    jobsets.ONE_ENDS_AND_RETIRES,
    Swap(JobSetController, "_delete", _delete_unless_retiring),
)
mutant(
    "jobs-run-on-after-the-end",
    "jobset#666",
    "active Jobs of a finished JobSet run on",
    "JobSetController._delete leaves active Jobs",
    jobsets.ONE_ENDS,
    Swap(JobSetController, "_delete", lambda self, found: _DELETE(self, [job for job in found if job.end])),
)


def _end_unknown(self: JobSetView) -> Tree | None:
    return None


mutant(
    "goes-on-after-the-end",
    "JobSet invariant 7",
    "a JobSet that has completed or failed goes on: it restarts, or is both",
    "JobSetView.end is never there",
    jobsets.ONE_ENDS,
    Swap(JobSetView, "end", property(_end_unknown)),
)
mutant(
    "set-ttl-from-creation",
    "jobset KEP-279",
    "a JobSet goes when its TTL has passed since its creation",
    "ttl.left measures from the creation",
    jobsets.RETIRING,
    Swap(
        ttl,
        "left",
        lambda js, now: (
            from_stamp(js.meta["creationTimestamp"]) + js.spec["ttlSecondsAfterFinished"] - now if "ttlSecondsAfterFinished" in js.spec else None
        ),
    ),
)
mutant(
    "set-ttl-forgotten",
    "jobset KEP-279",
    "a finished JobSet stays after its time",
    "ttl.left knows no time",
    jobsets.RETIRING,
    Swap(ttl, "left", lambda js, now: None),
)


async def _swallow(self: JobSetController, *rest: Any) -> None:
    try:
        await _WRITE(self, *rest)
    except ApiStatus:
        return


_WRITE = JobSetController._write

mutant(
    "failed-status-write-swallowed",
    "jobset#1194",
    "a status that could not be written is not tried again",
    "JobSetController._write swallows refusals",
    jobsets.CONFLICTING,
    Swap(JobSetController, "_write", _swallow),
)


def _count_in_order(self: StatusDraft, counts: Mapping[str, RoleCounts]) -> None:
    _COUNT(self, counts)
    self.changed = True


def _render_other_way(self: StatusDraft) -> Tree:
    tree = _RENDER(self)
    if tree.get("replicatedJobsStatus") == self._before.get("replicatedJobsStatus"):
        tree["replicatedJobsStatus"] = tree["replicatedJobsStatus"][::-1]
    return tree


_COUNT, _RENDER = StatusDraft.count, StatusDraft.render

mutant(
    "status-written-for-ever",
    "jobset#405",
    "counts of roles are compared and written in any order, so that every write leads to the next",
    "StatusDraft writes the counts the other way round than they stand",
    jobsets.RUNNING,
    Swap(StatusDraft, "count", _count_in_order),
    Swap(StatusDraft, "render", _render_other_way),
)

# ----------------------------------------------------------------------------------------------- belongings


class _ByName:
    """An informer of Jobs that finds the children of every JobSet of the name."""

    def __init__(self, informer: Any) -> None:
        self._informer = informer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._informer, name)

    def by_index(self, name: str, value: str) -> list[Tree]:
        """Return every Job that any JobSet controls."""
        return [
            job
            for job in self._informer.list()
            if any(each.get("controller") and each["kind"] == "JobSet" for each in job["metadata"].get("ownerReferences") or ())
        ]


def _setup_by_name(self: JobSetController, ctx: Any) -> None:
    _SETUP(self, ctx)
    informer: Any = _ByName(self._jobs)
    self._jobs = informer


_SETUP = JobSetController.setup

mutant(
    "children-by-name",
    "jobset#1165",
    "Jobs of a deleted JobSet of the same name are taken for children",
    "Jobs are found by their owner's name",
    jobsets.ANEW,
    Swap(JobSetController, "setup", _setup_by_name),
)


def _make_orphan(self: Blueprint, index: int, **more: Any) -> Tree:
    job = _MAKE(self, index, **more)
    owners = [{**each, "controller": False} for each in self.owners]
    return {**job, "metadata": {**job["metadata"], "ownerReferences": owners}}


mutant(
    "children-without-controller",
    "JobSet invariant 1",
    "Jobs do not name their JobSet as controller, and are not found again",
    "Blueprint.make writes a plain owner reference",
    jobsets.FAILING,
    Swap(Blueprint, "make", _make_orphan),
)


async def _orphan_pods(self: JobSetController, found: Iterable[Child]) -> None:
    for job in found:
        if not job.deleting:
            await self._ctx.client.delete(JOBS, job.name, namespace="default", propagation="Orphan", uid=job.uid)


mutant(
    "pods-orphaned-by-restart",
    "Sieve: leaked children",
    "Jobs are deleted without their pods",
    "JobSetController._delete orphans",
    jobsets.FAILING,
    Swap(JobSetController, "_delete", _orphan_pods),
)
mutant(
    "service-not-made",
    "JobSet invariant 20",
    "the headless Service is not made, or not made again",
    "JobSetController._offer_service does nothing",
    jobsets.RUNNING,
    Swap(JobSetController, "_offer_service", _nothing),
)
_SERVICE = networking.service


def _select_role(js: Tree) -> Tree:
    service = _SERVICE(js)
    return {**service, "spec": {**service["spec"], "selector": {names.REPLICATED_JOB: "r0"}}}


mutant(
    "service-selects-by-role",
    "JobSet invariant 20",
    "the headless Service does not select every pod",
    "networking.service selects another label",
    jobsets.RUNNING,
    Swap(networking, "service", _select_role),
)
mutant(
    "coordinator-without-subdomain",
    "JobSet invariant 12",
    "the coordinator's address names the JobSet instead of its subdomain",
    "networking.coordinator does not look at network.subdomain",
    jobsets.COORDINATED,
    Swap(
        networking, "coordinator", lambda spec, name: f"{name}-{spec['coordinator']['replicatedJob']}-0-0.{name}" if spec.get("coordinator") else ""
    ),
)
mutant(
    "set-managed-by-ignored",
    "JobSet invariant 21",
    "a JobSet that another controller manages gets Jobs and a status",
    "JobSetView.foreign is never so",
    jobsets.FOREIGN,
    Swap(JobSetView, "foreign", False),
)

# ----------------------------------------------------------------------------------------------- exclusive placement


def _terminal_may_lead(pod: Tree, name: str) -> bool:
    return exclusive.without_suffix(pod["metadata"]["name"]) == name and "deletionTimestamp" not in pod["metadata"]


mutant(
    "dead-leader-leads",
    "jobset#1276",
    "a failed leader beside the new one: followers are refused for ever",
    "pod_webhook._may_lead does not look at the phase",
    jobsets.PLACED_RETRYING,
    Swap(pod_webhook, "_may_lead", _terminal_may_lead),
)


def _no_anti_affinity(pod: Tree, topology_key: str) -> Tree:
    return {name: value for name, value in _AFFINITY(pod, topology_key).items() if name != "podAntiAffinity"}


_AFFINITY = pod_webhook._affinity

mutant(
    "domains-shared",
    "jobset#1057",
    "leaders of two Jobs land in one domain",
    "pod_webhook._affinity keeps nobody away",
    jobsets.PLACED,
    Swap(pod_webhook, "_affinity", _no_anti_affinity),
)


_MUTATE = pod_webhook.mutate


def _any_follower(request: WebhookRequest) -> None:
    return


mutant(
    "followers-not-bound",
    "jobset#1088",
    "followers are admitted without their leader's domain",
    "the webhooks of pods let followers pass as they are",
    jobsets.PLACED,
    Swap(pod_webhook, "_following", lambda pod, topology_key, request: pod),
    Swap(pod_webhook, "leader_of", lambda pod, namespace, reader: {"spec": {"nodeName": "n-0-0"}}),
    Swap(pod_webhook, "VALIDATING", Webhook("vpod.kb.io", ("pods",), ("CREATE",), validate=_any_follower)),
)


def _mutate_without_priority(request: WebhookRequest) -> Tree | None:
    found = _MUTATE(request)
    if found is None or found["metadata"].get("labels") is None:
        return found
    labels = {name: value for name, value in found["metadata"]["labels"].items() if name != names.PRIORITY}
    return {**found, "metadata": {**found["metadata"], "labels": labels}}


mutant(
    "priority-label-missing",
    "jobset#1057",
    "pods of a JobSet do not carry their priority",
    "pod_webhook.mutate sets no priority label",
    jobsets.PLACED,
    Swap(pod_webhook, "MUTATING", Webhook("mpod.kb.io", ("pods",), ("CREATE",), mutate=_mutate_without_priority)),
)
