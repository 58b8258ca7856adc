"""What autoscalers promise: sizes within their limits, no faster than their policies and no sooner than their windows allow, and nothing but the number of replicas.

The promises are about time, which a store does not tell: `Sizes` is given a clock, and told of every look that an autoscaler takes (`look`). It is about one autoscaler,
and nobody else may scale its target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from math import ceil

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.store import Change
from kubemini.testing.invariants.base import View

DOWN_WINDOW = 300.0
TOLERANCE = 0.1
DEFAULT_POLICIES: list[Tree] = [{"type": "Percent", "value": 100, "periodSeconds": 15}, {"type": "Pods", "value": 4, "periodSeconds": 15}]
EDGE = 1.0
"""Seconds at the edge of a window that are left open: a request takes its time."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What an autoscaler is to do: `target` is what each replica may have of the metric, `behavior` as in its spec."""

    least: int
    most: int
    target: float
    behavior: Tree | None = None

    def rules(self, direction: str) -> Tree:
        """Return the rules of ``scaleUp`` or ``scaleDown``, {} without any."""
        found: Tree = (self.behavior or {}).get(direction) or {}
        return found

    def window(self, direction: str) -> float:
        """Return the seconds that a recommendation counts in a direction."""
        given = self.rules(direction).get("stabilizationWindowSeconds")
        return float(given) if given is not None else (DOWN_WINDOW if direction == "scaleDown" else 0.0)

    def holds(self, value: float, replicas: int) -> bool:
        """Tell whether a value is near enough to the target for so many replicas."""
        if not replicas:
            return False
        ratio = value / (self.target * replicas)
        return 1 - TOLERANCE - 1e-9 <= ratio <= 1 + TOLERANCE + 1e-9

    def recommended(self, value: float, replicas: int) -> int:
        """Return the size for a value."""
        return replicas if self.holds(value, replicas) else ceil(value / self.target - 1e-9)

    def clamped(self, size: int) -> int:
        """Return a size within the limits."""
        return min(max(size, self.least), self.most)


@dataclass(slots=True)
class Sizes:
    """Every change of size is within limits, windows and rates; nothing else of the target changes."""

    resource: Resource
    wish: Wish
    clock: Callable[[], float]
    name: str = "sizes"
    replicas: int = 0
    """The present size."""
    looks: list[tuple[float, int]] = field(default_factory=list)
    """(time, recommended size)."""
    changes: list[tuple[float, int]] = field(default_factory=list)
    """(time, how many more)."""

    def look(self, value: float) -> None:
        """Note that the autoscaler reads this value of its metric."""
        self.looks.append((self.clock(), self.wish.recommended(value, self.replicas)))

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at the target."""
        if table != self.resource.storage or change.new is None:
            return ()
        spec = change.new.obj["spec"]
        if change.old is None:
            self.replicas = spec["replicas"]
            return ()
        before = change.old.obj["spec"]
        if before is spec or before == spec:
            return ()
        if {**before, "replicas": 0} != {**spec, "replicas": 0}:
            return ("more than the size was changed",)
        return list(self._check(before["replicas"], spec["replicas"]))

    def _check(self, old: int, new: int) -> Iterator[str]:
        now, wish = self.clock(), self.wish
        if not wish.least <= new <= wish.most:
            yield f"size {new} is not within {wish.least} and {wish.most}"
        if wish.least <= old <= wish.most:
            direction = "scaleUp" if new > old else "scaleDown"
            # Without a behavior the highest recommendation of the window is followed in both directions, also up when the load has gone again
            window = wish.window(direction) if wish.behavior is not None else DOWN_WINDOW
            recent = [size for at, size in self.looks if at > now - window + EDGE or (at, size) == self.looks[-1]]
            most = (min if wish.behavior is not None else max)(recent, default=new)
            if direction == "scaleUp" and new > wish.clamped(most):
                yield f"grew from {old} to {new}, where {recent} were recommended"
            if direction == "scaleDown" and any(new < wish.clamped(size) for size in recent):
                yield f"shrank from {old} to {new}, where {recent} were recommended"
            allowed = self._allowed(direction, old, now)
            if allowed is not None and (new > allowed if direction == "scaleUp" else new < allowed):
                yield f"went from {old} to {new}, where policies allow {allowed}"
        self.changes.append((now, new - old))
        self.replicas = new

    def _allowed(self, direction: str, old: int, now: float) -> int | None:
        """Return the farthest size that policies allow, None where there are none."""
        if self.wish.behavior is None:
            return max(2 * old, 4) if direction == "scaleUp" else None
        rules = self.wish.rules(direction)
        select, policies = rules.get("selectPolicy", "Max"), rules.get("policies")
        if select == "Disabled":
            return old
        if not policies:
            # The defaults: 4 more or twice as many in 15 seconds; anything less
            policies = DEFAULT_POLICIES if direction == "scaleUp" else DEFAULT_POLICIES[:1]
        sizes: list[int] = []
        for policy in policies:
            start = old - sum(change for at, change in self.changes if at > now - policy["periodSeconds"] + EDGE)
            value = policy["value"]
            if direction == "scaleUp":
                sizes.append(start + value if policy["type"] == "Pods" else ceil(start * (100 + value) / 100))
            else:
                sizes.append(start - value if policy["type"] == "Pods" else start * (100 - value) // 100)
        most = max if (select == "Max") == (direction == "scaleUp") else min
        return most(sizes)

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()

    def settled(self, value: float) -> Iterator[str]:
        """Yield what is wrong with the size after a value has stayed the same for long."""
        wanted = self.wish.clamped(ceil(value / self.wish.target - 1e-9))
        direction = "scaleUp" if wanted > self.replicas else "scaleDown"
        if wanted != self.replicas and not self.wish.holds(value, self.replicas) and self.wish.rules(direction).get("selectPolicy") != "Disabled":
            yield f"size {self.replicas} for {value:g} of {self.wish.target:g}, wants {wanted}"
