"""Which flavor each pod set gets: the flavors of each resource group are tried in order, and the first good enough one, or the best of all, is taken.

Mirrors Kueue's ``pkg/scheduler/flavorassigner``. Pure: a view of one ClusterQueue in, an `Assignment` out, with a verdict for every
flavor that was looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.amounts import FlavorResource, Usage, add_to, shown
from kubemini.controllers.kueue.cache import TRY_NEXT, QueueState
from kubemini.controllers.kueue.placing import matches_affinity, untolerated
from kubemini.controllers.kueue.quota import Group
from kubemini.controllers.kueue.requests import PodSetRequest
from kubemini.controllers.kueue.workloads import Flavored, Info


class Mode(IntEnum):
    """How well something fits, worst first."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4


MODE_NAMES = {Mode.NO_CANDIDATES: "NoCandidates", Mode.PREEMPT: "Preempt", Mode.RECLAIM: "Reclaim"}
SEVERITY = (names.TOPOLOGY_PLACEMENT_FAILED, names.WAITING_FOR_QUOTA, names.EXCEEDS_MAX_QUOTA, names.NO_MATCHING_FLAVOR)
"""Reasons of QuotaReserved=False, the mildest first."""

Oracle = Callable[[FlavorResource, int], tuple[Mode, int]]
"""Tells for a (flavor, resource) and an amount whether preemption would help (and how), and how high it borrows then."""
TopologyCheck = Callable[[Tree, str], str]
"""Tells why a flavor does not do for a pod set's topology request, or ""."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one attempt with one flavor came to: the machine-readable why of an assignment."""

    flavor: str
    mode: Mode
    borrow: int
    reason: str
    """One of SEVERITY, or "" for a fit."""
    messages: tuple[str, ...]

    def text(self) -> str:
        """Return it as the event of a reservation words it."""
        mode = "Fit" if self.mode is Mode.FIT else "NoFit" if self.mode is Mode.NO_FIT else f"preemptionMode={MODE_NAMES[self.mode]}"
        parts = [mode]
        if self.borrow:
            parts.append(f"borrow={self.borrow}")
        if self.messages:
            parts.append(", ".join(self.messages))
        return f"{self.flavor}({';'.join(parts)})"


@dataclass(slots=True)
class Choice:
    """The flavor of one resource of one pod set."""

    flavor: str
    mode: Mode
    borrow: int
    tried: int


@dataclass(slots=True)
class PodSetAssignment:
    """The flavors of one pod set. `reasons` say why it does not fit as it is."""

    name: str
    request: PodSetRequest
    flavors: dict[str, Choice] = field(default_factory=dict)
    messages: list[str] = field(default_factory=list)
    reason: str = ""
    verdicts: list[Verdict] = field(default_factory=list)
    topology: Tree | None = None
    """The ``topologyAssignment``."""
    places: list[Any] = field(default_factory=list)
    """What it uses there."""
    delayed: str = ""

    @property
    def mode(self) -> Mode:
        """The worst of its resources."""
        if self.flavors:
            return min(choice.mode for choice in self.flavors.values())
        return Mode.NO_FIT if self.messages else Mode.FIT


@dataclass(slots=True)
class Assignment:
    """The flavors of a whole Workload."""

    pod_sets: list[PodSetAssignment] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)
    borrow: int = 0

    @property
    def mode(self) -> Mode:
        """The worst of its pod sets."""
        return min((each.mode for each in self.pod_sets), default=Mode.NO_FIT)

    @property
    def preempts(self) -> bool:
        """Whether it can be had by preemption only, candidates or not."""
        return self.mode in (Mode.NO_CANDIDATES, Mode.PREEMPT, Mode.RECLAIM)

    @property
    def reason(self) -> str:
        """The most severe reason over the pod sets."""
        reasons = [each.reason for each in self.pod_sets if each.reason]
        return max(reasons, key=SEVERITY.index) if reasons else names.WAITING_FOR_QUOTA

    def message(self) -> str:
        """Return why it does not fit as it is."""
        return "; ".join(
            f"couldn't assign flavors to pod set {each.name}: {', '.join(sorted(each.messages))}" for each in self.pod_sets if each.messages
        )

    def considered(self) -> str:
        """Return what was looked at beside plain fits, as the event of a reservation words it."""
        parts = []
        for each in self.pod_sets:
            told = [verdict.text() for verdict in each.verdicts if verdict.mode is not Mode.FIT or verdict.borrow]
            if told:
                parts.append(f"{each.name}: {', '.join(told)}")
        return "; ".join(parts)

    def needing_preemption(self) -> list[FlavorResource]:
        """Return the (flavor, resource) pairs for which something must go."""
        found: dict[FlavorResource, None] = {}
        for each in self.pod_sets:
            for resource, choice in each.flavors.items():
                if choice.mode is not Mode.FIT:
                    found[choice.flavor, resource] = None
        return list(found)

    def position(self, generation: int) -> Flavored:
        """Return where the next attempt goes on."""
        return Flavored([{resource: choice.tried for resource, choice in each.flavors.items()} for each in self.pod_sets], generation)

    def held(self) -> Usage:
        """Return what it takes altogether, with what it holds already."""
        total: Usage = {}
        for each in self.pod_sets:
            for resource, choice in each.flavors.items():
                fr = (choice.flavor, resource)
                total[fr] = total.get(fr, 0) + each.request.total.get(resource, 0)
        return total

    def admission(self, queue: str) -> Tree:
        """Return the ``status.admission`` of it."""
        assignments: list[Tree] = []
        for each in self.pod_sets:
            entry: Tree = {"name": each.name}
            if each.flavors:
                entry["flavors"] = {resource: choice.flavor for resource, choice in sorted(each.flavors.items())}
            usage = {resource: shown(resource, value) for resource, value in sorted(each.request.total.items()) if resource in each.flavors}
            if usage:
                entry["resourceUsage"] = usage
            entry["count"] = each.request.count
            if each.topology is not None:
                entry["topologyAssignment"] = each.topology
            if each.delayed:
                entry["delayedTopologyRequest"] = each.delayed
            assignments.append(entry)
        return {"clusterQueue": queue, "podSetAssignments": assignments}


@dataclass(slots=True)
class Assigner:
    """Assigns flavors of one ClusterQueue to one Workload."""

    queue: QueueState
    flavors: Mapping[str, Tree]
    info: Info
    oracle: Oracle
    fair: bool = False
    ignore_undeclared: bool = False
    topology: TopologyCheck | None = None
    generation: int = 0
    only: Mapping[str, Mapping[str, str]] | None = None
    """Flavors that each pod set must keep (a slice that replaces another, or an assignment that is made anew)."""
    discount: Mapping[str, Mapping[str, int]] | None = None
    """What each pod set holds already, and need not be found again."""

    def assign(self, requests: Sequence[PodSetRequest]) -> Assignment:
        """Assign flavors for these requests; stops at the first pod set that gets none."""
        result = Assignment()
        for positions in _units(self.info.pod_sets):
            members = [PodSetAssignment(requests[n].name, self._covered(requests[n])) for n in positions]
            asked: dict[str, int] = {}
            for member in members:
                add_to(asked, self._needed(member))
            pod_sets = [self.info.pod_sets[n] for n in positions]
            problem = False
            for resource, value in asked.items():
                if any(resource in member.flavors for member in members):
                    continue
                group = self.queue.group_of.get(resource)
                if group is None:
                    if value == 0 or self.ignore_undeclared:
                        continue
                    self._refuse(members, f"resource {resource} unavailable in ClusterQueue")
                    problem = True
                    break
                wanted = {name: amount for name, amount in asked.items() if name in group.resources}
                if not self._find(group, wanted, members, pod_sets, positions, result):
                    problem = True
                    break
            result.pod_sets += members
            for member in members:
                for resource, choice in member.flavors.items():
                    fr = (choice.flavor, resource)
                    result.usage[fr] = result.usage.get(fr, 0) + self._needed(member).get(resource, 0)
                    result.borrow = max(result.borrow, choice.borrow)
                if member.mode is Mode.FIT:
                    member.messages, member.reason = [], ""
            if problem:
                break
        return result

    def _needed(self, member: PodSetAssignment) -> Mapping[str, int]:
        """Return what a pod set asks for beyond what it holds already."""
        have = self.discount.get(member.name) if self.discount is not None else None
        if not have:
            return member.request.total
        return {resource: max(0, value - have.get(resource, 0)) for resource, value in member.request.total.items()}

    def _covered(self, request: PodSetRequest) -> PodSetRequest:
        """Return a request with one ``pods`` for each pod where the queue counts pods."""
        if "pods" not in self.queue.group_of:
            return request
        return PodSetRequest(request.name, request.count, {**request.single, "pods": 1}, {**request.total, "pods": request.count})

    @staticmethod
    def _refuse(members: Sequence[PodSetAssignment], message: str, reason: str = names.NO_MATCHING_FLAVOR) -> None:
        for member in members:
            member.flavors = {}
            member.messages.append(message)
            member.reason = max(member.reason or reason, reason, key=SEVERITY.index)

    def _find(
        self,
        group: Group,
        wanted: Mapping[str, int],
        members: list[PodSetAssignment],
        pod_sets: Sequence[Tree],
        positions: Sequence[int],
        result: Assignment,
    ) -> bool:
        """Choose one flavor of a group for its resources. Tell whether any will do."""
        best: dict[str, Choice] | None = None
        best_key: tuple[int, ...] = (Mode.NO_FIT,)
        messages: list[str] = []
        reasons: list[str] = []
        verdicts: list[Verdict] = []
        last = len(group.flavors) - 1
        tried = -1
        for index in range(self._start(positions[0], next(iter(wanted))), last + 1):
            tried = index
            name = group.flavors[index]
            verdict, choices = self._try(name, group, wanted, members, pod_sets, result)
            verdicts.append(verdict)
            if verdict.messages:
                messages += verdict.messages
                reasons.append(verdict.reason)
            key = self._key(verdict)
            if verdict.mode is not Mode.NO_FIT and (best is None or key > best_key):
                best, best_key = choices, key
            if not self._look_on(verdict):
                best = choices
                break
        for member in members:
            member.verdicts += verdicts
        mildest = min(reasons, key=SEVERITY.index) if reasons else names.NO_MATCHING_FLAVOR
        if best is None:
            for member in members:
                member.flavors = {}
                member.messages += messages
                member.reason = max(member.reason or mildest, mildest, key=SEVERITY.index)
            return False
        mark = -1 if tried == last else tried
        for member in members:
            for resource, choice in best.items():
                if resource in member.request.total:
                    member.flavors[resource] = Choice(choice.flavor, choice.mode, choice.borrow, mark)
            if any(choice.mode is not Mode.FIT for choice in best.values()):
                member.messages += messages
                member.reason = max(member.reason or mildest, mildest, key=SEVERITY.index)
        return True

    def _start(self, position: int, resource: str) -> int:
        last = self.info.last
        if last is None or last.generation != self.generation or position >= len(last.tried):
            return 0
        return last.tried[position].get(resource, -1) + 1

    def _look_on(self, verdict: Verdict) -> bool:
        rules = self.queue.fungibility
        if verdict.mode <= Mode.NO_CANDIDATES:
            return True
        if verdict.mode is not Mode.FIT and rules.when_preempt == TRY_NEXT:
            return True
        return verdict.borrow > 0 and rules.when_borrow == TRY_NEXT

    def _key(self, verdict: Verdict) -> tuple[int, ...]:
        if verdict.mode <= Mode.NO_CANDIDATES:
            return (0, verdict.mode, -verdict.borrow)
        if self.queue.fungibility.preemption_over_borrowing:
            return (1, -verdict.borrow, verdict.mode)
        return (1, verdict.mode, -verdict.borrow)

    def _try(
        self, name: str, group: Group, wanted: Mapping[str, int], members: Sequence[PodSetAssignment], pod_sets: Sequence[Tree], result: Assignment
    ) -> tuple[Verdict, dict[str, Choice]]:
        problem = self._mismatch(name, group, members, pod_sets)
        if problem:
            return Verdict(name, Mode.NO_FIT, 0, names.NO_MATCHING_FLAVOR, (problem,)), {}
        choices: dict[str, Choice] = {}
        messages: list[str] = []
        mode, borrow, reason = Mode.FIT, 0, ""
        for resource, value in wanted.items():
            fr = (name, resource)
            one, height, complaint, why = self._quota(fr, result.usage.get(fr, 0), value)
            if complaint:
                messages.append(complaint)
                reason = max(reason or why, why, key=SEVERITY.index)
            mode, borrow = min(mode, one), max(borrow, height)
            choices[resource] = Choice(name, one, height, -1)
            if one is Mode.NO_FIT:
                break
        return Verdict(name, mode, borrow, reason, tuple(messages)), choices

    def _mismatch(self, name: str, group: Group, members: Sequence[PodSetAssignment], pod_sets: Sequence[Tree]) -> str:
        flavor = self.flavors.get(name)
        if flavor is None:
            return f"flavor {name} not found"
        kept = self._kept(name, group, members)
        if kept is not None and self.discount is None:
            return f"skipping flavor {name} as it is not found in the nomination mapping for resource {kept[0]}"
        for member, pod_set in zip(members, pod_sets, strict=True):
            spec = pod_set["template"]["spec"]
            if self.topology is not None and any(resource in member.request.total for resource in group.resources):
                problem = self.topology(pod_set, name)
                if problem:
                    return problem
            rules = flavor["spec"]
            taint = untolerated(rules.get("nodeTaints"), [*(spec.get("tolerations") or ()), *(rules.get("tolerations") or ())])
            if taint is not None:
                shown_taint = f"{{{taint['key']} {taint.get('value', '')} {taint['effect']} <nil>}}"
                return f"untolerated taint {shown_taint} in flavor {name}"
            if not matches_affinity(spec, rules.get("nodeLabels") or {}):
                return f"flavor {name} doesn't match node affinity"
        return f"could not assign {name} flavor since the original workload is assigned: {kept[1]}" if kept is not None else ""

    def _kept(self, name: str, group: Group, members: Sequence[PodSetAssignment]) -> tuple[str, str] | None:
        """Return the first (resource, flavor) that has to be kept where a flavor is another one."""
        for member in members if self.only is not None else ():
            kept = (self.only or {}).get(member.name, {})
            for resource in group.resources:
                if kept.get(resource, name) != name:
                    return resource, kept[resource]
        return None

    def _quota(self, fr: FlavorResource, assumed: int, value: int) -> tuple[Mode, int, str, str]:
        node, (flavor, resource) = self.queue.node, fr
        total = assumed + value
        most = node.potential(fr)
        if total > most:
            text = (
                f"insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests ({shown(resource, assumed)}) "
                f"+ current podset request ({shown(resource, value)}) > maximum capacity ({shown(resource, most)})"
            )
            return Mode.NO_FIT, 0, text, names.EXCEEDS_MAX_QUOTA
        height, reclaimable = node.borrow_height(fr, total)
        free = max(0, node.available(fr))
        if total <= free:
            return Mode.FIT, height, "", ""
        text = f"insufficient unused quota for {resource} in flavor {flavor}, {shown(resource, total - free)} more needed"
        policy = self.queue.policy
        if total <= node.nominal(fr) or reclaimable or policy.borrow or (self.fair and policy.reclaim != "Never"):
            mode, height = self.oracle(fr, total)
            return mode, height, text, names.WAITING_FOR_QUOTA
        return Mode.NO_FIT, 0, text, names.WAITING_FOR_QUOTA


def _units(pod_sets: Sequence[Tree]) -> list[list[int]]:
    """Return the positions of pod sets that are assigned together: those of one topology group, each other alone."""
    found: dict[str, list[int]] = {}
    for position, pod_set in enumerate(pod_sets):
        group = (pod_set.get("topologyRequest") or {}).get("podSetGroupName")
        found.setdefault(f"g/{group}" if group else f"p/{position}", []).append(position)
    return list(found.values())
