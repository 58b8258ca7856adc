"""What nodes have free for topology-aware scheduling: capacity of the nodes of a flavor, less what other pods and admitted Workloads use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.api.wellknown.kubernetes import HOSTNAME
from kubemini.controllers.kueue.amounts import amounts
from kubemini.controllers.kueue.topology.placement import Domain, Values

Free = dict[str, int]


@dataclass(slots=True, eq=False)
class Leaf:
    """A lowest domain: its nodes, what they have, and what is used by others and by Workloads."""

    values: Values
    nodes: list[Tree] = field(default_factory=list)
    capacity: Free = field(default_factory=dict)
    others: Free = field(default_factory=dict)
    placed: Free = field(default_factory=dict)

    def free(self, resource: str) -> int:
        """Return what is left of a resource."""
        return self.capacity.get(resource, 0) - self.others.get(resource, 0) - self.placed.get(resource, 0)


class FlavorTree:
    """The domains of one flavor's nodes."""

    def __init__(self, topology: str, levels: list[str], nodes: Iterable[Tree]) -> None:
        self.topology = topology
        self.levels = levels
        self.root = Domain((), -1)
        self.leaves: dict[Values, Leaf] = {}
        self.by_node: dict[str, Leaf] = {}
        domains: dict[Values, Domain] = {(): self.root}
        for node in sorted(nodes, key=lambda node: tuple(node["metadata"]["labels"][level] for level in levels)):
            labels: Mapping[str, str] = node["metadata"]["labels"]
            values: Values = ()
            for depth, level in enumerate(levels):
                above = domains[values]
                values = (*values, labels[level])
                if values not in domains:
                    domains[values] = Domain(values, depth)
                    above.children.append(domains[values])
            leaf = self.leaves.setdefault(values, Leaf(values))
            leaf.nodes.append(node)
            self.by_node[node["metadata"]["name"]] = leaf
            for resource, value in amounts((node.get("status") or {}).get("allocatable")).items():
                leaf.capacity[resource] = leaf.capacity.get(resource, 0) + value

    @property
    def hosts(self) -> bool:
        """Whether the lowest level is the host."""
        return self.levels[-1] == HOSTNAME

    def leaf_of(self, values: Values) -> Leaf | None:
        """Return a leaf by the values of an assignment: the full path, or the host alone."""
        found = self.leaves.get(values)
        if found is None and self.hosts and len(values) == 1:
            return self._hosts().get(values[0])
        return found

    def _hosts(self) -> dict[str, Leaf]:
        found = getattr(self, "_by_host", None)
        if found is None:
            found = self._by_host = {values[-1]: leaf for values, leaf in self.leaves.items()}
        return found
