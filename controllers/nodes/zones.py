"""How fast nodes that are not ready lose their pods: by zone, slower or not at all where much is down. Mirrors the node lifecycle controller's disruption modes (1.36).

A node's pods are evicted by NoExecute taints. In a zone that is well, one node every 10 seconds gets them. Where more than half of a zone is down, it is rather the
network than the nodes: a large zone is slowed down to one node in 100 seconds, a small one left alone. When nothing at all is ready, nobody is evicted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubemini.api.trees import Tree

RATE, SLOW_RATE = 0.1, 0.01
"""Nodes per second (``node-eviction-rate``, ``secondary-node-eviction-rate``)."""
LARGE = 50
"""Nodes of a zone that counts as large (``large-cluster-size-threshold``)."""
UNHEALTHY = 0.55
"""Share of nodes that must be down for a partial disruption (``unhealthy-zone-threshold``)."""
NORMAL, PARTIAL, FULL = "Normal", "PartialDisruption", "FullDisruption"


def zone_of(node: Tree) -> str:
    """Return a node's zone with its region; "" for nodes without labels."""
    labels = node["metadata"].get("labels") or {}
    region, zone = labels.get("topology.kubernetes.io/region", ""), labels.get("topology.kubernetes.io/zone", "")
    return f"{region}:\x00:{zone}" if region or zone else ""


def readiness(node: Tree | None) -> str | None:
    """Return the status of a node's Ready condition, or None while it has none."""
    for condition in ((node or {}).get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            found: str = condition["status"]
            return found
    return None


@dataclass(slots=True)
class _Zone:
    ready: int = 0
    down: int = 0
    next_at: float = 0.0
    """When the next node may be tainted."""

    @property
    def state(self) -> str:
        if not self.ready and self.down:
            return FULL
        if self.down > 2 and self.down / (self.down + self.ready) >= UNHEALTHY:
            return PARTIAL
        return NORMAL


@dataclass(slots=True)
class Zones:
    """The zones, counted from node events, and when each may evict next."""

    _zones: dict[str, _Zone] = field(default_factory=dict)

    def change(self, old: Tree | None, new: Tree | None) -> bool:
        """Count a node's change; tell whether a zone's state, and so a rate, changed."""
        if (
            old is not None
            and new is not None
            and readiness(old) == readiness(new)
            and old["metadata"].get("labels") is new["metadata"].get("labels")
        ):
            return False
        before = self._modes()
        for node, sign in ((old, -1), (new, 1)):
            ready = readiness(node)
            if node is None or ready is None:
                continue
            zone = self._zones.setdefault(zone_of(node), _Zone())
            if ready == "True":
                zone.ready += sign
            else:
                zone.down += sign
        return self._modes() != before

    def _modes(self) -> list[tuple[str, str]]:
        return [(name, zone.state) for name, zone in self._zones.items() if zone.ready or zone.down]

    def all_down(self) -> bool:
        """Tell whether nothing is ready anywhere: then it is the controller that is cut off."""
        modes = self._modes()
        return bool(modes) and all(state == FULL for _, state in modes)

    def rate(self, node: Tree) -> float:
        """Return how many nodes per second may be tainted in a node's zone."""
        if self.all_down():
            return 0.0
        zone = self._zones.get(zone_of(node))
        if zone is None or zone.state != PARTIAL:
            return RATE
        return SLOW_RATE if zone.ready + zone.down > LARGE else 0.0

    def wait(self, node: Tree, now: float) -> float | None:
        """Return how long a node still waits for its turn (0 = it is its turn), or None while its zone evicts nobody."""
        if not self.rate(node):
            return None
        zone = self._zones.setdefault(zone_of(node), _Zone())
        return max(zone.next_at - now, 0.0)

    def took(self, node: Tree, now: float) -> None:
        """Note that a node was tainted: the next one of its zone waits."""
        rate = self.rate(node)
        if rate:
            self._zones.setdefault(zone_of(node), _Zone()).next_at = now + 1.0 / rate
