"""Known defects of the LeaderWorkerSet controllers, made again. Each replaces one function or method for the time of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from kubemini.api.resources import SERVICES, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws import controller, groups, leader_set, pod_controller, pod_webhook, restarting, revisions, rollout, view, worker_set
from kubemini.controllers.lws.controller import LeaderWorkerSetController
from kubemini.controllers.lws.groups import Group
from kubemini.controllers.lws.pod_controller import GroupController
from kubemini.controllers.lws.rollout import Leaders, Rollout
from kubemini.controllers.lws.services import headless
from kubemini.controllers.lws.status import Counts
from kubemini.controllers.lws.view import LwsView
from kubemini.machinery.errors import AlreadyExists
from tests.quality import sets
from tests.quality.searching import Mutant, Scenario, Swap

MUTANTS: list[Mutant] = []


def mutant(name: str, source: str, defect: str, replaced: str, scenario: Scenario[Any], *swaps: Swap) -> None:
    """Add one to the table."""
    MUTANTS.append(Mutant(name, source, defect, replaced, scenario, swaps))


# ----------------------------------------------------------------------------------------------- workers of one revision


async def _patched(self: GroupController, owner: LwsView, leader: Tree) -> float | None:
    again = await _FOLLOW(self, owner, leader)
    name = leader["metadata"]["name"]
    live = self._caches.stateful.get(name, owner.namespace)
    if live is not None and revisions.key_of(live) != revisions.hash_of(owner.spec):
        key = {names.REVISION: revisions.hash_of(owner.spec)}
        labels = {"labels": {**live["spec"]["template"]["metadata"]["labels"], **key}}
        pods = {**owner.template["workerTemplate"], "metadata": {**live["spec"]["template"]["metadata"], **labels}}
        body = {"metadata": {"labels": key}, "spec": {"template": pods}}
        await self._ctx.client.patch(STATEFUL_SETS, name, body, namespace=owner.namespace)
    return again


_FOLLOW = GroupController._follow

mutant(
    "workers-patched",
    "lws#225",
    "StatefulSets of workers are written again on each pass: a new revision rolls the workers of all groups at once",
    "GroupController._follow patches workers that are there to the live template",
    sets.ROLLED,
    Swap(GroupController, "_follow", _patched),
)


def _from_live(owner: LwsView, leader: Tree, revision: Tree, domain: tuple[str, str] | None) -> Tree:
    return _WORKER_SET(owner, leader, {**revision, "data": revisions.recorded(owner.spec)}, domain)


_WORKER_SET = worker_set.worker_set

mutant(
    "old-group-of-new-template",
    "lws#280",
    "a group that is made again in the middle of an update mixes an old leader with new workers",
    "worker_set.worker_set reads the live spec",
    sets.CANARIES,
    Swap(pod_controller, "worker_set", _from_live),
)


def _sized_by_live(owner: LwsView, leader: Tree, revision: Tree, domain: tuple[str, str] | None) -> Tree:
    made = _WORKER_SET(owner, leader, revision, domain)
    return {**made, "spec": {**made["spec"], "replicas": owner.size - 1}}


mutant(
    "old-group-of-new-size",
    "lws#963",
    "an old group that is made again has the size of the live spec",
    "worker_set.worker_set takes the size from the live spec",
    sets.RESIZED,
    Swap(pod_controller, "worker_set", _sized_by_live),
)
mutant(
    "labels-stay-behind",
    "lws#896",
    "labels of the LeaderWorkerSet do not reach its StatefulSets",
    "view.merged forgets what the user gave",
    sets.SCALED_GROUPS,
    Swap(leader_set, "merged", lambda theirs, ours: ours),
)


def _without_type(template: Tree, annotations: Tree) -> Tree:
    return {key: value for key, value in _SUB_GROUP_ANNOTATIONS(template, annotations).items() if key != names.SUB_GROUP_POLICY_TYPE}


_SUB_GROUP_ANNOTATIONS = view.sub_group_annotations

mutant(
    "workers-know-no-policy-type",
    "lws#945",
    "workers do not know the type of their subgroups",
    "worker_set.sub_group_annotations leaves it out",
    sets.SUB_GROUPS,
    Swap(worker_set, "sub_group_annotations", _without_type),
)
mutant(
    "subgroups-collide",
    "lws#917",
    "with subgroups of one pod the leader and the first worker are one",
    "pod_webhook.sub_group_of sets the leader apart wherever the workers divide",
    sets.SUB_GROUPS,
    Swap(pod_webhook, "sub_group_of", lambda size, wanted, worker: (worker - 1 if (size - 1) % wanted == 0 else worker) // wanted),
)
mutant(
    "variables-of-the-user-first",
    "LWS invariant 13",
    "variables of the user stand before those of the group",
    "pod_webhook._joined puts ours last",
    sets.SUB_GROUPS,
    Swap(pod_webhook, "_joined", lambda ours, theirs: [*theirs, *reversed(ours)]),
)


def _named_after_the_set(pod: Tree, namespace: str, size: str) -> Tree:
    found = _WITH_VARIABLES({**pod, "spec": {**pod["spec"], "subdomain": pod["metadata"]["labels"][names.NAME]}}, namespace, size)
    return {**found, "spec": {**found["spec"], "subdomain": pod["spec"].get("subdomain", "")}}


_WITH_VARIABLES = pod_webhook._with_variables

mutant(
    "leader-address-of-the-set",
    "LWS invariant 13",
    "the leader's address names the shared Service though each group has its own",
    "pod_webhook._with_variables does not look at the subdomain",
    sets.SCALED_GROUPS,
    Swap(pod_webhook, "_with_variables", _named_after_the_set),
)


# ----------------------------------------------------------------------------------------------- rollouts


def _all_waits(states: Sequence[Group], step: int, current: int) -> int:
    count, done = len(states), 0
    while done < count and states[count - 1 - done].ready and states[count - 1 - done].updated:
        done += 1
    lowest = max(0, count - done - step)
    return min(lowest + sum(1 for group in states[:lowest] if not group.ready), current)


mutant(
    "unready-tail-waits",
    "lws#567",
    "an update waits for old groups that never were ready",
    "rollout.next_partition takes no group for free",
    sets.BROKEN_GROUPS,
    Swap(rollout, "next_partition", _all_waits),
)


def _unready_ignored(states: Sequence[Group], step: int, current: int) -> int:
    count, done = len(states), 0
    while done < count and states[count - 1 - done].ready and states[count - 1 - done].updated:
        done += 1
    return min(max(0, count - done - step), current)


mutant(
    "unready-groups-ignored",
    "lws#488",
    "groups that are down anyway do not count: the update takes down the others",
    "rollout.next_partition counts no unready groups below the window",
    sets.HALF_BROKEN_GROUPS,
    Swap(rollout, "next_partition", _unready_ignored),
)
mutant(
    "window-opens-at-once",
    "LWS invariant 7",
    "an update replaces all groups at once",
    "rollout.next_partition is 0",
    sets.ROLLED,
    Swap(rollout, "next_partition", lambda states, step, current: 0),
)
_NEXT_PARTITION = rollout.next_partition
mutant(
    "window-goes-back",
    "LWS invariant 6",
    "the partition grows again in the middle of an update",
    "rollout.next_partition is not bound by the present one",
    sets.FLAPPING_GROUPS,
    Swap(rollout, "next_partition", lambda states, step, current: _NEXT_PARTITION(states, step, len(states))),
)
mutant(
    "surge-reclaimed-early",
    "lws#778",
    "a surge group is given back before the last group is ready",
    "rollout.with_surge keeps one less than is unready, whatever maxUnavailable says",
    sets.ROLLED,
    Swap(rollout, "with_surge", lambda wanted, surge, unavailable, unready: wanted + max(0, unready - 1) if unready <= surge else wanted + surge),
)
mutant(
    "surge-stays",
    "LWS invariant 19",
    "surge groups are not given back",
    "rollout.with_surge always has them",
    sets.ROLLED,
    Swap(rollout, "with_surge", lambda wanted, surge, unavailable, unready: wanted + surge),
)


def _no_lowest(owner: LwsView, leaders: Leaders | None, states: Callable[[int], Sequence[Group]], *, updated: bool) -> Rollout:
    return rollout._plan(owner, leaders, states, updated=updated)


mutant(
    "canary-ignored",
    "LWS invariant 5",
    "groups below the partition are updated",
    "rollout.plan does not look at the partition of the LeaderWorkerSet",
    sets.CANARIES,
    Swap(controller, "plan", _no_lowest),
)


def _exists(workers: Tree) -> bool:
    return bool(workers["spec"].get("replicas", 1) == (workers.get("status") or {}).get("replicas", 0))


mutant(
    "ready-when-workers-exist",
    "lws#705",
    "a group counts as ready as soon as its workers exist",
    "groups.workers_ready looks at status.replicas",
    sets.ROLLED,
    Swap(groups, "workers_ready", _exists),
)
mutant(
    "history-of-live-groups-cut",
    "LWS invariant 18",
    "revisions are deleted that groups are still of",
    "Counts.update_done always is so",
    sets.CANARIES,
    Swap(Counts, "update_done", lambda self, owner: True),
)
mutant(
    "history-of-groups-grows",
    "LWS invariant 19",
    "old revisions are kept",
    "Counts.update_done never is so",
    sets.ROLLED,
    Swap(Counts, "update_done", lambda self, owner: False),
)


# ----------------------------------------------------------------------------------------------- starting and restarting


class _Ready(LwsView):
    """A LeaderWorkerSet whose startup policy is not looked at."""

    @property
    def leader_ready_first(self) -> bool:
        return False


mutant(
    "workers-do-not-wait",
    "LWS invariant 4",
    "under LeaderReady workers are made before their leader is ready",
    "LwsView.leader_ready_first never is so",
    sets.SCALED_GROUPS,
    Swap(pod_controller, "LwsView", _Ready),
)


class _Recreating(LwsView):
    """A LeaderWorkerSet that takes groups down, whatever its policy."""

    @property
    def restart_policy(self) -> str:
        return "RecreateGroupOnPodRestart"


mutant(
    "none-recreates",
    "LWS invariant 10",
    "under None a group goes as a whole when one of its pods does",
    "LwsView.restart_policy is RecreateGroupOnPodRestart",
    sets.LONE_FAILURES,
    Swap(pod_controller, "LwsView", _Recreating),
)
mutant(
    "group-not-recreated",
    "LWS invariant 11",
    "a pod goes, and its group stays",
    "restarting.recreates never is so",
    sets.ONE_FAILURE,
    Swap(restarting, "recreates", lambda owner, pod, group: False),
)
mutant(
    "killed-pod-not-noticed",
    "lws#998",
    "a worker that is gone before anybody looks is replaced alone",
    "restarting.vanishes never is so",
    sets.ONE_FAILURE,
    Swap(restarting, "vanishes", lambda pod: False),
)


async def _follow_dying(self: GroupController, pod: Tree) -> float | None:
    meta = pod["metadata"]
    owner = self._caches.sets.get(meta["labels"][names.NAME], meta["namespace"])
    if owner is not None and "deletionTimestamp" in meta and meta["labels"][names.WORKER_INDEX] == "0":
        its = LwsView(owner)
        if (its.spec.get("networkConfig") or {}).get("subdomainPolicy") == "UniquePerReplica":
            await self._serve(its, pod)
    return await _LOOK_AT(self, pod)


_LOOK_AT = GroupController._look_at


async def _serve_once(self: GroupController, owner: LwsView, leader: Tree) -> None:
    name = leader["metadata"]["name"]
    served: dict[str, str] = self.__dict__.setdefault("served", {})
    if served.get(name) == leader["metadata"]["uid"]:
        return
    selector = {names.NAME: owner.name, names.GROUP_INDEX: leader["metadata"]["labels"].get(names.GROUP_INDEX, "")}
    with suppress(AlreadyExists):
        await self._ctx.client.create(SERVICES, headless(owner.name, name, selector, {**leader, "apiVersion": "v1", "kind": "Pod"}))
    served[name] = leader["metadata"]["uid"]


mutant(
    "dying-leader-gets-a-service",
    "lws#947",
    "the Service of a group is made again for a leader that is going, and collected with it: the next group has no names",
    "GroupController._look_at serves leaders that are going; _serve looks once for each leader",
    sets.OWN_SERVICES,
    Swap(GroupController, "_look_at", _follow_dying),
    Swap(GroupController, "_serve", _serve_once),
)


async def _nothing(self: LeaderWorkerSetController, owner: LwsView) -> None:
    return


mutant(
    "shared-service-not-made",
    "LWS invariant 20",
    "the Service of all groups is not made, or not made again",
    "LeaderWorkerSetController._serve does nothing",
    sets.SCALED_GROUPS,
    Swap(LeaderWorkerSetController, "_serve", _nothing),
)


def _hiding(lws: str, name: str, selector: Tree, owner: Tree) -> Tree:
    made = headless(lws, name, selector, owner)
    return {**made, "spec": {**made["spec"], "publishNotReadyAddresses": False}}


mutant(
    "service-hides-unready-pods",
    "DNS invariant 2",
    "pods find each other only once they are ready, for which they may have to find each other",
    "services.headless does not publish addresses that are not ready",
    sets.SCALED_GROUPS,
    Swap(controller, "headless", _hiding),
)


def _by_name(pod: Tree, leader: Tree, workers: Tree | None) -> bool:
    return True


mutant(
    "leader-found-by-name",
    "lws#291, lws#804",
    "workers of a leader before this one, or of another revision, take the new group down as well",
    "restarting.is_follower always is so",
    sets.SLOW_WORKERS,
    Swap(restarting, "is_follower", _by_name),
)
