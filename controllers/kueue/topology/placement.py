"""Where in a topology the pods of a pod set go: counts bottom-up, then the best level and domains, then down to the leaves.

Mirrors Kueue's ``pkg/cache/scheduler/tas_flavor_snapshot.go`` as functions of a tree of domains whose leaves know how many pods fit. A *slice* is a group of pods that must share a domain of
one level; without slices every pod is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Values = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Domain:
    """A domain; `values` are the label values from the top down to it. Counts are filled anew for each search."""

    values: Values
    level: int
    children: list[Domain] = field(default_factory=list)
    pods: int = 0
    slices: int = 0
    leader: bool = False
    """Whether the leader fits somewhere in it."""
    pods_with_leader: int = 0
    slices_with_leader: int = 0


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for. Levels are indexes from the top; `inner` maps levels below the slice level to the unit that must stay together there."""

    count: int
    level: int
    slice_level: int
    slice_size: int = 1
    required: bool = False
    unconstrained: bool = False
    leader: bool = False
    least_free: bool = False
    inner: Mapping[int, int] = field(default_factory=dict)

    @property
    def needed(self) -> int:
        """Slices to place."""
        return self.count // self.slice_size


@dataclass(frozen=True, slots=True)
class Share:
    """What a domain gets: so many slices (or pods, below the slice level), and the leader or not."""

    domain: Domain
    amount: int
    leader: bool


@dataclass(slots=True)
class Found:
    """Pods per leaf in order, and the leaf of the leader."""

    pods: dict[Values, int]
    leader: Values | None = None


class NoRoom(Exception):
    """It does not fit; `fits` slices would."""

    def __init__(self, fits: int) -> None:
        super().__init__(f"only {fits} fit")
        self.fits = fits


LeafCount = Callable[[Domain], tuple[int, bool, int]]
"""For a leaf: pods that fit, whether the leader fits, and pods that fit beside the leader."""


def fill(root: Domain, search: Search, leaf: LeafCount) -> None:
    """Fill the counts of a tree, bottom-up. `root` is the parent of the top level and counts as no level."""
    if not root.children:
        root.pods, root.leader, root.pods_with_leader = leaf(root)
    else:
        pods = 0
        cost: int | None = None
        slices = 0
        slice_cost: int | None = None
        for child in root.children:
            fill(child, search, leaf)
            unit = search.inner.get(child.level, 1)
            have, beside = child.pods // unit * unit, child.pods_with_leader // unit * unit
            pods += have
            slices += child.slices
            if child.leader:
                cost = have - beside if cost is None else min(cost, have - beside)
                difference = child.slices - child.slices_with_leader
                slice_cost = difference if slice_cost is None else min(slice_cost, difference)
        root.pods, root.leader = pods, cost is not None
        root.pods_with_leader = pods - (cost or 0)
        root.slices, root.slices_with_leader = slices, slices - (slice_cost or 0)
    if root.level == search.slice_level:
        root.slices = root.pods // search.slice_size
        root.slices_with_leader = root.pods_with_leader // search.slice_size
    elif root.level > search.slice_level:
        root.slices = root.slices_with_leader = 0


def at_level(root: Domain, level: int) -> Iterator[Domain]:
    """Yield the domains of a level."""
    if root.level == level:
        yield root
        return
    for child in root.children:
        yield from at_level(child, level)


def search(root: Domain, wanted: Search, leaf: LeafCount) -> Found:
    """Place a pod set. Raise `NoRoom`."""
    fill(root, wanted, leaf)
    shares = _choose(root, wanted, wanted.level)
    level = shares[0].domain.level if shares else wanted.level
    deepest = _depth(root)
    while level < min(wanted.slice_level, deepest):
        pool = [child for share in shares for child in share.domain.children]
        shares = _take(pool, sum(share.amount for share in shares), wanted.leader, wanted)
        level += 1
    shares = [Share(share.domain, share.amount * wanted.slice_size, share.leader) for share in shares]
    while level < deepest:
        level += 1
        shares = [below for share in shares for below in _spread(share, wanted, wanted.inner.get(level, 1))]
    found = Found({})
    for share in sorted(shares, key=lambda share: share.domain.values):
        if share.amount:
            found.pods[share.domain.values] = found.pods.get(share.domain.values, 0) + share.amount
        if share.leader:
            found.leader = share.domain.values
    return found


def _depth(root: Domain) -> int:
    here = root
    while here.children:
        here = here.children[0]
    return here.level


def _choose(root: Domain, wanted: Search, level: int) -> list[Share]:
    """Find the level and the domains that hold all."""
    domains = list(at_level(root, level))
    sign = 1 if wanted.least_free else -1
    ranked = sorted(
        domains, key=lambda each: (not each.leader if wanted.leader else False, sign * each.slices_with_leader, each.pods_with_leader, each.values)
    )
    fitting = [each for each in ranked if each.slices_with_leader >= wanted.needed and (each.leader or not wanted.leader)]
    if fitting:
        best = fitting[0] if wanted.least_free else min(fitting, key=lambda each: each.slices_with_leader)
        return [Share(best, wanted.needed, wanted.leader)]
    if wanted.required:
        raise NoRoom(max((each.slices_with_leader for each in domains if each.leader or not wanted.leader), default=0))
    if level > 0 and not wanted.unconstrained:
        return _choose(root, wanted, level - 1)
    return _take(ranked, wanted.needed, wanted.leader, wanted)


def _take(domains: Sequence[Domain], needed: int, leader: bool, wanted: Search) -> list[Share]:
    """Take as few domains as cover what is needed. Raise `NoRoom`."""
    left = needed
    taken: list[Share] = []
    rest = list(domains)
    if leader:
        host = _host(rest, needed, wanted)
        if host is None:
            total = sum(each.slices for each in rest)
            costs = [each.slices - each.slices_with_leader for each in rest if each.leader]
            raise NoRoom(min(needed - 1, total - min(costs)) if costs else 0)
        amount = min(left, host.slices_with_leader)
        taken.append(Share(host, amount, True))
        left -= amount
        rest = [each for each in rest if each is not host]
    sign = 1 if wanted.least_free else -1
    rest.sort(key=lambda each: (sign * each.slices, each.pods, each.values))
    for position, each in enumerate(rest):
        if left <= 0:
            break
        if not each.slices:
            continue
        if each.slices >= left:
            able = [other for other in rest[position:] if other.slices >= left]
            best = each if wanted.least_free else min(able, key=lambda other: (other.slices, other.pods, other.values))
            taken.append(Share(best, left, False))
            left = 0
        else:
            taken.append(Share(each, each.slices, False))
            left -= each.slices
    if left > 0:
        raise NoRoom(needed - left)
    return taken


def _host(domains: Sequence[Domain], needed: int, wanted: Search) -> Domain | None:
    """Return the domain for the leader: one that leaves room for the workers in all domains together."""
    total = sum(each.slices for each in domains)
    able = [each for each in domains if each.leader and total - each.slices + each.slices_with_leader >= needed]
    whole = [each for each in able if each.slices_with_leader >= needed]
    if whole and not wanted.least_free:
        return min(whole, key=lambda each: (each.slices_with_leader, each.pods_with_leader, each.values))
    sign = 1 if wanted.least_free else -1
    return min(able, key=lambda each: (sign * each.slices_with_leader, each.pods_with_leader, each.values), default=None)


def _spread(share: Share, wanted: Search, unit: int) -> list[Share]:
    """Distribute the pods of one domain over its children, in units that stay together."""
    children = [
        Domain(
            child.values,
            child.level,
            child.children,
            child.pods,
            child.pods // unit,
            child.leader,
            child.pods_with_leader,
            child.pods_with_leader // unit,
        )
        for child in share.domain.children
    ]
    taken = _take(children, share.amount // unit, share.leader, wanted)
    originals = {child.values: child for child in share.domain.children}
    return [Share(originals[each.domain.values], each.amount * unit, each.leader) for each in taken]
