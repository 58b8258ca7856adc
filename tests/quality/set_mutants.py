"""Known defects of the StatefulSet controller and of endpoints, made again. Each replaces one function or method for the time of a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.endpoints import pods as endpoint_pods
from kubemini.controllers.endpoints.slices import EndpointSliceController
from kubemini.controllers.endpoints.written import Written
from kubemini.controllers.stateful_set import claim_owners, controller, planning, pods, templates
from kubemini.controllers.stateful_set.planning import Slots, Step
from kubemini.controllers.stateful_set.status import StatusDraft
from kubemini.controllers.stateful_set.templates import Chosen
from kubemini.controllers.stateful_set.view import SetView
from tests.quality import sets
from tests.quality.searching import Mutant, Scenario, Swap

MUTANTS: list[Mutant] = []


def mutant(name: str, source: str, defect: str, replaced: str, scenario: Scenario[Any], *swaps: Swap) -> None:
    """Add one to the table."""
    MUTANTS.append(Mutant(name, source, defect, replaced, scenario, swaps))


# ----------------------------------------------------------------------------------------------- who is made, of which revision


class _Current(SetView):
    """A set whose new pods are of the current revision as long as pods of it are counted, whatever the partition says."""

    def from_current(self, ordinal: int) -> bool:
        return not self.on_delete and ordinal < self.start + self.status.get("currentReplicas", 0)


mutant(
    "made-of-the-old-revision",
    "kubernetes#78209",
    "a pod that the update deleted comes back of the old revision",
    "SetView.from_current counts status.currentReplicas instead of the partition",
    sets.HELD,
    Swap(controller, "SetView", _Current),
)


class _Update(SetView):
    """A set whose new pods are all of the update revision."""

    def from_current(self, ordinal: int) -> bool:
        return False


mutant(
    "canary-grows",
    "StatefulSet invariant 16",
    "a pod below the partition that is deleted comes back of the new revision",
    "SetView.from_current never is so",
    sets.HELD,
    Swap(controller, "SetView", _Update),
)


class _Hasty(SetView):
    """An ordered set that is taken for a parallel one."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.ordered = False


mutant(
    "order-ignored",
    "StatefulSet invariant 2",
    "pods of an ordered set are made all at once",
    "SetView.ordered never is so",
    sets.SCALED,
    Swap(controller, "SetView", _Hasty),
)


def _step_of_ended(owner: SetView, pod: Tree | None, now: float) -> Step:
    if pod is not None and pods.phase(pod) == "Succeeded":
        return Step.KEEP
    return _REPLICA_STEP(owner, pod, now)


_REPLICA_STEP = planning.replica_step

mutant(
    "succeeded-pod-stays",
    "kubernetes#118310",
    "a pod that has succeeded is not made again",
    "planning.replica_step keeps pods that have succeeded",
    sets.ENDED,
    Swap(planning, "replica_step", _step_of_ended),
)


def _unlabelled(owner: SetView, ordinal: int, template: Tree, revision: str) -> Tree:
    pod = _MAKE(owner, ordinal, template, revision)
    labels = {key: value for key, value in pod["metadata"]["labels"].items() if key != pods.POD_INDEX}
    return {**pod, "metadata": {**pod["metadata"], "labels": labels}}


_MAKE = pods.make

mutant(
    "index-label-of-pods-missing",
    "StatefulSet invariant 7",
    "pods do not carry their index",
    "pods.make sets no index label",
    sets.SCALED,
    Swap(pods, "make", _unlabelled),
)


def _without_subdomain(owner: SetView, ordinal: int, template: Tree, revision: str) -> Tree:
    pod = _MAKE(owner, ordinal, template, revision)
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "subdomain"}}


mutant(
    "pods-without-subdomain",
    "StatefulSet invariant 7",
    "pods are not named below their Service",
    "pods.make sets no subdomain",
    sets.SCALED,
    Swap(pods, "make", _without_subdomain),
)


async def _of_live_template(*given: Any, **more: Any) -> Chosen:
    chosen = await _CHOOSE(*given, **more)
    return replace(chosen, current=chosen.update)


_CHOOSE = templates.choose

mutant(
    "current-revision-forgotten",
    "kubernetes#119685",
    "the update revision becomes current as soon as it is there: pods below the partition come back new",
    "templates.choose takes the update revision for the current one",
    sets.HELD,
    Swap(controller, "choose", _of_live_template),
)


# ----------------------------------------------------------------------------------------------- who goes


def _below_the_partition(owner: SetView, replicas: Sequence[Tree | None], revision: str, now: float, *, budgeted: bool = False) -> list[Tree]:
    held, owner.partition = owner.partition, 0
    try:
        return _OUTDATED(owner, replicas, revision, now, budgeted=budgeted)
    finally:
        owner.partition = held


_OUTDATED = planning.outdated

mutant(
    "partition-ignored",
    "StatefulSet invariant 5",
    "an update goes below the partition",
    "planning.outdated knows no partition",
    sets.HELD,
    Swap(planning, "outdated", _below_the_partition),
)


def _all_outdated(owner: SetView, replicas: Sequence[Tree | None], revision: str, now: float, *, budgeted: bool = False) -> list[Tree]:
    return [pod for pod in replicas[owner.partition or 0 :] if pod is not None and pods.revision_of(pod) != revision and not pods.is_terminating(pod)]


mutant(
    "updated-all-at-once",
    "StatefulSet invariant 5",
    "an update replaces all pods at once",
    "planning.outdated returns every pod of another revision",
    sets.UPDATED,
    Swap(planning, "outdated", _all_outdated),
)


def _lowest_outdated(owner: SetView, replicas: Sequence[Tree | None], revision: str, now: float, *, budgeted: bool = False) -> list[Tree]:
    if any(pods.is_unavailable(pod, owner.min_ready, now) for pod in replicas):
        return []
    return _all_outdated(owner, replicas, revision, now)[:1]


mutant(
    "updated-from-below",
    "StatefulSet invariant 5",
    "an update starts with the lowest ordinal",
    "planning.outdated goes upwards",
    sets.UPDATED,
    Swap(planning, "outdated", _lowest_outdated),
)


def _without_min_ready(owner: SetView, replicas: Sequence[Tree | None], revision: str, now: float, *, budgeted: bool = False) -> list[Tree]:
    least, owner.min_ready = owner.min_ready, 0
    try:
        return _OUTDATED(owner, replicas, revision, now, budgeted=budgeted)
    finally:
        owner.min_ready = least


mutant(
    "min-ready-seconds-ignored",
    "kubernetes#119234",
    "the update of a parallel set does not wait for minReadySeconds",
    "planning.outdated takes minReadySeconds for 0",
    sets.UPDATED,
    Swap(planning, "outdated", _without_min_ready),
)


def _budget_eaten(owner: SetView, replicas: Sequence[Tree | None], revision: str, now: float, *, budgeted: bool = False) -> list[Tree]:
    if any(pods.is_unavailable(pod, owner.min_ready, now) for pod in replicas):
        return []
    return _OUTDATED(owner, replicas, revision, now, budgeted=budgeted)


mutant(
    "broken-revision-stays",
    "kubernetes#137409",
    "broken pods of a parallel set use up what an update may take down: a good revision after a bad one never comes",
    "planning.outdated waits for any pod that is not available",
    sets.BROKEN_SET,
    Swap(planning, "outdated", _budget_eaten),
)


class _Eager(SetView):
    """A set whose OnDelete is taken for RollingUpdate."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.on_delete = False


mutant(
    "on-delete-ignored",
    "StatefulSet invariant 8",
    "under OnDelete pods are replaced all the same",
    "SetView.on_delete never is so",
    sets.ON_DELETE,
    Swap(controller, "SetView", _Eager),
)


def _from_below(owner: SetView, found: Sequence[Tree]) -> Slots:
    slots = _SPLIT(owner, found)
    slots.condemned.reverse()
    return slots


_SPLIT = planning.split

mutant(
    "scaled-down-from-below",
    "StatefulSet invariant 3",
    "of the pods that are too many the lowest goes first",
    "planning.split sorts them upwards",
    sets.SCALED,
    Swap(planning, "split", _from_below),
)


def _never_first(owner: SetView, pod: Tree, first: Tree | None, now: float) -> Step:
    return _CONDEMNED_STEP(owner, pod, None, now)


_CONDEMNED_STEP = planning.condemned_step

mutant(
    "unready-pod-blocks-scale-down",
    "kubernetes#123918",
    "a pod that is too many and not available is never removed",
    "planning.condemned_step makes no exception for the first one",
    sets.NEVER_READY_SET,
    Swap(planning, "condemned_step", _never_first),
)


# ----------------------------------------------------------------------------------------------- counts, history, claims


def _observed_later(self: StatusDraft) -> Tree:
    tree = _RENDER(self)
    return {**tree, "observedGeneration": tree["observedGeneration"] + 1}


_RENDER = StatusDraft.render

mutant(
    "observes-the-future",
    "StatefulSet invariant 10",
    "observedGeneration runs ahead of the generation",
    "StatusDraft.render counts one more",
    sets.SCALED,
    Swap(StatusDraft, "render", _observed_later),
)


def _all_are_ready(self: StatusDraft, found: Any, min_ready: int, now: float) -> None:
    _COUNT(self, found, min_ready, now)
    self.ready = self.available = max(self.ready, self.updated) + 1


_COUNT = StatusDraft.count

mutant(
    "more-ready-than-there-are",
    "StatefulSet invariant 10",
    "the status tells of more ready pods than there are pods",
    "StatusDraft.count counts one pod too many as ready",
    sets.SCALED,
    Swap(StatusDraft, "count", _all_are_ready),
)
mutant(
    "history-grows",
    "StatefulSet invariant 12",
    "revisions that nothing names are kept for ever",
    "history.historic finds none",
    sets.UPDATED,
    Swap(controller, "historic", lambda ordered, live, limit: []),
)


def _live_too(ordered: Sequence[Tree], live: Any, limit: int) -> list[Tree]:
    return list(ordered[:-1])


mutant(
    "live-revision-deleted",
    "StatefulSet invariant 6",
    "the history is cut of revisions that pods are of",
    "history.historic keeps the newest alone",
    sets.HELD,
    Swap(controller, "historic", _live_too),
)
mutant(
    "claims-taken-along",
    "StatefulSet invariant 11",
    "claims that are to be retained are owned by their set, and go with it",
    "claim_owners.wanted gives every claim to the set",
    sets.CLAIMS,
    Swap(claim_owners, "wanted", lambda owner, pod: (True, False)),
)
mutant(
    "claims-leak",
    "kubernetes#126919",
    "claims that are to go with their set stay",
    "claim_owners.wanted gives no claim to anybody",
    sets.CLAIMS,
    Swap(claim_owners, "wanted", lambda owner, pod: (False, False)),
)


def _complete_always(self: StatusDraft, owner: SetView) -> None:
    if self.updated == self.ready == self.replicas == owner.replicas:
        self.current, self.current_revision = self.updated, self.update_revision


mutant(
    "on-delete-completes",
    "kubernetes#73492",
    "under OnDelete the update revision becomes current",
    "StatusDraft.complete does not look at the strategy",
    sets.ON_DELETE,
    Swap(StatusDraft, "complete", _complete_always),
)


def _complete_early(self: StatusDraft, owner: SetView) -> None:
    if not owner.on_delete and self.updated == self.replicas:
        self.current, self.current_revision = self.updated, self.update_revision


mutant(
    "completes-before-it-is-ready",
    "kubernetes#120731",
    "an update is complete when its pods are there, ready or not, and whatever is still to come",
    "StatusDraft.complete compares with status.replicas alone",
    sets.UPDATED,
    Swap(StatusDraft, "complete", _complete_early),
)


# ----------------------------------------------------------------------------------------------- endpoints and names


def _member_though_ended(pod: Tree) -> bool:
    return bool((pod.get("status") or {}).get("podIPs"))


mutant(
    "ended-pod-stays-endpoint",
    "DNS invariant 4",
    "a pod that has ended stays an endpoint for as long as it is there",
    "endpoints.pods.is_member does not look at the phase",
    sets.ENDED_APART,
    Swap(endpoint_pods, "is_member", _member_though_ended),
)


def _always_ready(service: Tree, member: Any, family: str, zone: str, *, publish: bool) -> Tree:
    return _ENDPOINT(service, member, family, zone, publish=True)


_ENDPOINT = EndpointSliceController._made

mutant(
    "unready-pod-published",
    "DNS invariant 3",
    "pods that are not ready answer for a Service that does not publish them",
    "EndpointSliceController._made publishes every pod",
    sets.UNREADY,
    Swap(EndpointSliceController, "_made", staticmethod(_always_ready)),
)
mutant(
    "named-below-any-service",
    "DNS invariant 5",
    "a pod is named below every Service that selects it",
    "endpoints.pods.hostname does not look at the subdomain",
    sets.UNREADY,
    Swap(endpoint_pods, "hostname", lambda pod, service: pod["spec"].get("hostname") or ""),
)
mutant(
    "names-missing",
    "DNS invariant 1",
    "pods are endpoints, but have no names",
    "endpoints.pods.hostname is always empty",
    sets.SCALED,
    Swap(endpoint_pods, "hostname", lambda pod, service: ""),
)
mutant(
    "stale-slices",
    "DNS invariant 8",
    "the controller trusts a cache that does not show its own slices yet: endpoints stand in two of them",
    "Written.put notes nothing",
    sets.LATE_ENDPOINTS,
    Swap(Written, "put", lambda self, obj: None),
)
