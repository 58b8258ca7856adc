"""Hints by the annotation ``service.kubernetes.io/topology-mode: Auto``: each zone gets endpoints in proportion to its CPU.

An endpoint is for its own zone where it can, and is lent to another where that has too few. Where the sums do not come out, a Service has no hints, and an event says why.
Mirrors the topology cache of k8s.io/endpointslice (1.36). `Service.spec.trafficDistribution`, which took its place, knows nothing of proportions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.endpoints.planning import Plan
from kubemini.machinery import quantity

MODE, OLD_MODE = "service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints"
OVERLOAD = 0.2
"""By how much more than its share an endpoint may be loaded."""
CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")

ENABLED, DISABLED = "TopologyAwareHintsEnabled", "TopologyAwareHintsDisabled"
NO_NODE_INFORMATION = "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
TOO_FEW = "Insufficient number of endpoints ({} endpoints, {} zones)"
NO_ALLOCATION = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold ({} endpoints, {} zones)"
NO_ZONE = "One or more endpoints do not have a zone specified"
NOTHING = "No hints allocated for zones"


def is_auto(service: Tree) -> bool:
    """Tell whether a Service asks for hints by proportion; the older of the two annotations counts where both are given."""
    annotations = service["metadata"].get("annotations") or {}
    return annotations.get(OLD_MODE, annotations.get(MODE)) in ("Auto", "auto")


def shares(nodes: Iterable[Tree]) -> dict[str, float] | None:
    """Return each zone's share of the CPU of ready nodes; None where a node does not say its zone or CPU, or there is no second zone."""
    cpu: dict[str, int] = {}
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        if any(each in labels for each in CONTROL_PLANE) or not is_ready(node):
            continue
        zone, size = labels.get(names.ZONE), quantity.milli((node["status"].get("allocatable") or {}).get("cpu") or "0")
        if not zone or not size:
            return None
        cpu[zone] = cpu.get(zone, 0) + size
    total = sum(cpu.values())
    return {zone: cpu[zone] / total for zone in sorted(cpu)} if len(cpu) > 1 else None


def is_ready(node: Tree) -> bool:
    """Tell whether a node is ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in (node.get("status") or {}).get("conditions") or ())


@dataclass(frozen=True, slots=True)
class Allocation:
    """How many endpoints a zone should have: as many as its share, no fewer than keep each within its load, and no more than leave the others theirs."""

    wanted: float
    most: int


def allocated(share: Mapping[str, float] | None, total: int) -> dict[str, Allocation] | str:
    """Return the allocation of so many endpoints by zone, or why there is none."""
    if share is None:
        return NO_NODE_INFORMATION
    if len(share) > total:
        return TOO_FEW.format(total, len(share))
    least = {zone: ceil(part * total / (1 + OVERLOAD)) for zone, part in share.items()}
    spare = total - sum(least.values())
    if spare < 0:
        return NO_ALLOCATION.format(total, len(share))
    return {zone: Allocation(max(part * total, least[zone]), least[zone] + spare) for zone, part in share.items()}


def is_overloaded(counts: Mapping[str, int], share: Mapping[str, float] | None) -> bool:
    """Tell whether hints given earlier leave a zone with fewer endpoints than keep each within its load."""
    total = sum(counts.values())
    return bool(counts) and (share is None or any(counts.get(zone, 0) < ceil(total * part / (1 + OVERLOAD)) for zone, part in share.items()))


def without_hints(slice_: Tree) -> Tree:
    """Return a slice without hints; the same where it has none."""
    if not any("hints" in each for each in slice_.get("endpoints") or ()):
        return slice_
    return {**slice_, "endpoints": [{key: value for key, value in each.items() if key != "hints"} for each in slice_["endpoints"]]}


class Topology:
    """The Services that have hints: how many of their endpoints are for each zone, by family of addresses."""

    def __init__(self) -> None:
        self._counts: dict[str, dict[str, dict[str, int]]] = {}

    @property
    def any(self) -> bool:
        """Whether any Service has hints."""
        return bool(self._counts)

    def overloaded(self, share: Mapping[str, float] | None) -> list[str]:
        """Return the Services whose hints do not fit the nodes any more."""
        return [key for key, families in self._counts.items() if any(is_overloaded(each, share) for each in families.values())]

    def forget(self, key: str, family: str) -> bool:
        """Take note that a Service has no hints. Tell whether it had."""
        families = self._counts.get(key)
        if families is None:
            return False
        families.pop(family, None)
        # One event is enough for all families
        del self._counts[key]
        return True

    def hint(self, key: str, family: str, plan: Plan, existing: Sequence[Tree], share: Mapping[str, float] | None) -> tuple[str, str, str] | None:
        """Give the endpoints of a plan their hints, and of slices that it leaves alone where they must change. Return the event to tell, if any.

        The slices of the plan have no hints yet; `existing` are those that stand, as they are.
        """
        changed = {each["metadata"]["name"] for each in (*plan.update, *plan.delete)}
        others = [each for each in existing if each["metadata"]["name"] not in changed]
        total = sum(_is_ready(endpoint) for each in (*plan.create, *plan.update, *others) for endpoint in each.get("endpoints") or ())
        goal = allocated(share, total)
        if isinstance(goal, str):
            return self._none(key, family, plan, others, goal)
        counts: dict[str, int] = {}
        for each in others:
            by_zone = _counted(each, counts, goal)
            if by_zone is None:
                plan.update.append(without_hints(each))
            else:
                for zone, number in by_zone.items():
                    counts[zone] = counts.get(zone, 0) + number
        slices = [*plan.create, *plan.update]
        zones = [endpoint.get("zone", "") for each in slices for endpoint in each.get("endpoints") or () if _is_ready(endpoint)]
        if not all(zones):
            return self._none(key, family, plan, others, NO_ZONE)
        for zone in zones:
            counts[zone] = counts.get(zone, 0) + 1
        if not counts:
            return self._none(key, family, plan, others, NOTHING)
        lent = _lent(goal, counts)
        hinted = [_hinted(each, lent, counts) for each in slices]
        plan.create, plan.update = hinted[: len(plan.create)], hinted[len(plan.create) :]
        known = key in self._counts
        self._counts.setdefault(key, {})[family] = counts
        return None if known else ("Normal", ENABLED, f"Topology Aware Hints has been enabled, addressType: {family}")

    def _none(self, key: str, family: str, plan: Plan, others: Sequence[Tree], why: str) -> tuple[str, str, str]:
        self.forget(key, family)
        noted = {each["metadata"].get("name") for each in plan.update}
        plan.update += [bare for each in others if (bare := without_hints(each)) is not each and each["metadata"]["name"] not in noted]
        return "Warning", DISABLED, f"{why}, addressType: {family}"


def _is_ready(endpoint: Tree) -> bool:
    return bool(endpoint["conditions"].get("ready"))


def _counted(slice_: Tree, counts: Mapping[str, int], goal: Mapping[str, Allocation]) -> dict[str, int] | None:
    """Return the endpoints of a slice by the zones they are for; None where the slice has to change."""
    found: dict[str, int] = {}
    for endpoint in slice_.get("endpoints") or ():
        if not _is_ready(endpoint):
            continue
        zones = [each["name"] for each in (endpoint.get("hints") or {}).get("forZones") or ()]
        if not zones or not all(zone in goal for zone in zones):
            return None
        for zone in zones:
            found[zone] = found.get(zone, 0) + 1
    return None if any(number + counts.get(zone, 0) > goal[zone].most for zone, number in found.items()) else found


def _lent(goal: Mapping[str, Allocation], counts: Mapping[str, int]) -> dict[str, list[str]]:
    """Return to which zones each zone lends endpoints: always from the one with most too many to the one with most too few, down to half an endpoint."""
    over = {zone: counts.get(zone, 0) - each.wanted for zone, each in goal.items()}
    found: dict[str, list[str]] = {}
    while True:
        giver, taker = max(over, key=lambda zone: over[zone]), min(over, key=lambda zone: over[zone])
        much, little = over[giver], -over[taker]
        if (much < 1 and little < 1) or much < 0.5 or little < 0.5:
            return found
        found.setdefault(giver, []).append(taker)
        over[giver] -= 1
        over[taker] += 1


def _hinted(slice_: Tree, lent: dict[str, list[str]], counts: dict[str, int]) -> Tree:
    """Return a slice whose ready endpoints are for their zones, or those that they are lent to (which are used up)."""

    def hinted(endpoint: Tree) -> Tree:
        if not _is_ready(endpoint):
            return endpoint
        zone = endpoint["zone"]
        if lent.get(zone):
            counts[zone] -= 1
            zone = lent[zone].pop(0)
            counts[zone] = counts.get(zone, 0) + 1
        return {**endpoint, "hints": {"forZones": [{"name": zone}]}}

    return {**slice_, "endpoints": [hinted(each) for each in slice_.get("endpoints") or ()]}
