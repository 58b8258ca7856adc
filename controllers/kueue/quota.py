"""The quota tree: ClusterQueues are its leaves, cohorts its inner nodes. What is free anywhere follows from sums kept at every node.

Formulae per (flavor, resource), as in Kueue's ``pkg/cache/scheduler/resource_node.go``: a node keeps `local_quota` for itself and lends the rest
to its parent; `usage` of a parent counts what its children take beyond their local quota. `add` climbs only as far as a change
reaches, so the cost of a reservation is the depth of the tree. A cycle's simulations change the tree in place and undo it (see `Undo`); there
is no snapshot to copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.amounts import FlavorResource, amount


@dataclass(frozen=True, slots=True)
class Quota:
    """What the spec gives a node of one (flavor, resource); None is unlimited."""

    nominal: int
    borrowing: int | None = None
    lending: int | None = None


NONE = Quota(0)


@dataclass(frozen=True, slots=True)
class Group:
    """One of ``resourceGroups``."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


def parse_groups(spec: Tree) -> tuple[tuple[Group, ...], dict[FlavorResource, Quota]]:
    """Return the resource groups and quotas of a ClusterQueue's or Cohort's spec, in its order."""
    groups = []
    quotas: dict[FlavorResource, Quota] = {}
    for group in spec.get("resourceGroups") or ():
        groups.append(Group(tuple(group["coveredResources"]), tuple(flavor["name"] for flavor in group["flavors"])))
        for flavor in group["flavors"]:
            for each in flavor["resources"]:
                name = each["name"]
                limits = [amount(name, each[key]) if each.get(key) is not None else None for key in ("borrowingLimit", "lendingLimit")]
                quotas[flavor["name"], name] = Quota(amount(name, each["nominalQuota"]), limits[0], limits[1])
    return tuple(groups), quotas


class Node:
    """A node of the tree. `weight` is its fair-sharing weight in thousandths."""

    __slots__ = ("broken", "children", "height", "name", "parent", "queue", "quotas", "subtree", "usage", "weight")

    def __init__(self, name: str, *, queue: bool) -> None:
        self.name = name
        self.queue = queue
        self.parent: Node | None = None
        self.children: list[Node] = []
        self.quotas: dict[FlavorResource, Quota] = {}
        self.subtree: dict[FlavorResource, int] = {}
        self.usage: dict[FlavorResource, int] = {}
        self.weight = 1000
        self.height = 0
        self.broken = False
        """Part of a tree with a cycle of cohorts: nothing is admitted."""

    # ------------------------------------------------------------------ reading

    def local_quota(self, fr: FlavorResource) -> int:
        """Return what the node never lends."""
        lending = self.quotas.get(fr, NONE).lending
        return 0 if lending is None else max(0, self.subtree.get(fr, 0) - lending)

    def local_available(self, fr: FlavorResource) -> int:
        """Return what is left of what the node never lends."""
        local = self.local_quota(fr)
        return max(0, local - self.usage.get(fr, 0)) if local else 0

    def available(self, fr: FlavorResource) -> int:
        """Return what can be taken now, by borrowing where allowed; negative where quota was lowered below usage."""
        parent = self.parent
        if parent is None:
            return self.subtree.get(fr, 0) - self.usage.get(fr, 0)
        local = self.local_quota(fr)
        used = self.usage.get(fr, 0)
        above = parent.available(fr)
        limit = self.quotas.get(fr, NONE).borrowing
        if limit is not None:
            above = min(above, self.subtree.get(fr, 0) - local - max(0, used - local) + limit)
        return max(0, local - used) + above

    def potential(self, fr: FlavorResource) -> int:
        """Return what could be taken of an empty tree."""
        if self.parent is None:
            return self.subtree.get(fr, 0)
        most = self.local_quota(fr) + self.parent.potential(fr)
        limit = self.quotas.get(fr, NONE).borrowing
        return most if limit is None else min(most, self.subtree.get(fr, 0) + limit)

    def nominal(self, fr: FlavorResource) -> int:
        """Return the quota in the spec."""
        return self.quotas.get(fr, NONE).nominal

    def borrowing_with(self, fr: FlavorResource, value: int = 0) -> bool:
        """Tell whether the node takes more than its own quota, with `value` on top of what it has."""
        return self.usage.get(fr, 0) + value > self.subtree.get(fr, 0)

    def borrow_height(self, fr: FlavorResource, value: int) -> tuple[int, bool]:
        """Return how high up a queue has to borrow for `value` more (0 = not), and whether quota can still be reclaimed above that."""
        if self.parent is None or not self.borrowing_with(fr, value):
            return 0, self.parent is not None
        rest = value - self.local_available(fr)
        for ancestor in self.ancestors():
            if not ancestor.borrowing_with(fr, rest):
                return ancestor.height, ancestor.parent is not None
            rest -= ancestor.local_available(fr)
        return self.root().height, False

    def ancestors(self) -> Iterator[Node]:
        """Yield the cohorts above, from the parent to the root."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent

    def root(self) -> Node:
        """Return the root of the node's tree: itself where it has no parent."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def path(self) -> str:
        """Return ``/root/…/name``."""
        return "/" + "/".join([*(node.name for node in reversed(list(self.ancestors()))), self.name])

    # ------------------------------------------------------------------ changing

    def add(self, fr: FlavorResource, value: int) -> None:
        """Count `value` more (or less) as used, here and as far up as it reaches."""
        node = self
        while True:
            before = node.usage.get(fr, 0)
            after = node.usage[fr] = before + value
            if node.parent is None:
                return
            local = node.local_quota(fr)
            value = max(0, after - local) - max(0, before - local)
            if not value:
                return
            node = node.parent

    def add_all(self, usage: Mapping[FlavorResource, int], sign: int = 1) -> None:
        """Count a whole usage."""
        for fr, value in usage.items():
            if value:
                self.add(fr, sign * value)

    def fits(self, usage: Mapping[FlavorResource, int]) -> bool:
        """Tell whether all of a usage is available."""
        return all(value <= self.available(fr) for fr, value in usage.items())


class Undo:
    """Changes of the tree that are taken back together: the simulations of one scheduling cycle."""

    __slots__ = ("_done",)

    def __init__(self) -> None:
        self._done: list[tuple[Node, Mapping[FlavorResource, int], int]] = []

    def add(self, node: Node, usage: Mapping[FlavorResource, int], sign: int = 1) -> None:
        """Count a usage until `back`."""
        node.add_all(usage, sign)
        self._done.append((node, usage, sign))

    def note(self, node: Node, usage: Mapping[FlavorResource, int], sign: int = 1) -> None:
        """Remember a change that was made already."""
        self._done.append((node, usage, sign))

    def back(self) -> None:
        """Take everything back, latest first."""
        while self._done:
            node, usage, sign = self._done.pop()
            node.add_all(usage, -sign)


def build(parents: Mapping[str, str], cohorts: Mapping[str, Node], queues: Iterable[tuple[Node, str]]) -> dict[str, Node]:
    """Link a tree anew and recompute every sum: O(nodes). `parents` names the parent of each cohort, `queues` pairs each leaf with its cohort's name ("" = none).

    Returns all cohorts by name: those given and the implicit ones that are only mentioned.
    """
    nodes = dict(cohorts)
    leaves = list(queues)
    for name in [*parents.values(), *(cohort for _, cohort in leaves)]:
        if name and name not in nodes:
            nodes[name] = Node(name, queue=False)
    looped = _looped(nodes, parents)
    for name, node in nodes.items():
        node.parent, node.children, node.broken, node.height = None, [], name in looped, 0
    for name, node in nodes.items():
        parent = parents.get(name, "")
        if parent and name not in looped:
            node.parent = nodes[parent]
            node.parent.children.append(node)
    for leaf, cohort in leaves:
        leaf.parent = nodes[cohort] if cohort and cohort not in looped else None
        leaf.broken = cohort in looped
        leaf.subtree = {fr: quota.nominal for fr, quota in leaf.quotas.items()}
        if leaf.parent is not None:
            leaf.parent.children.append(leaf)
    for node in nodes.values():
        if node.parent is None:
            _sum(node)
    return nodes


def _looped(nodes: Mapping[str, Node], parents: Mapping[str, str]) -> set[str]:
    """Return the cohorts of which the way up never ends."""
    ends: dict[str, bool] = {}
    for name in nodes:
        way: list[str] = []
        here = name
        while here and here not in ends and here not in way:
            way.append(here)
            here = parents.get(here, "")
        good = not here or (here not in way and ends[here])
        for each in way:
            ends[each] = good
    return {name for name, good in ends.items() if not good}


def _sum(node: Node) -> None:
    node.subtree = {fr: quota.nominal for fr, quota in node.quotas.items()}
    node.usage = {}
    node.height = 1
    for child in node.children:
        if not child.queue:
            _sum(child)
            node.height = max(node.height, child.height + 1)
        for fr, value in child.subtree.items():
            node.subtree[fr] = node.subtree.get(fr, 0) + value - child.local_quota(fr)
        for fr, used in child.usage.items():
            node.usage[fr] = node.usage.get(fr, 0) + max(0, used - child.local_quota(fr))
