"""How fast a size may follow its metrics: stabilization windows, rate policies, and the limits of an autoscaler. Pure but for the history that is passed in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil

from kubemini.api.trees import Tree

DOWNSCALE_WINDOW = 300.0
"""Seconds in which the highest recommendation counts where no behavior says otherwise (--horizontal-pod-autoscaler-downscale-stabilization)."""
LEAST_LIMIT, LIMIT_FACTOR = 4, 2
"""Without a behavior, a size may double, or grow to this, in one step."""

HIGHER = "recent recommendations were higher than current one, applying the highest recent recommendation"
LOWER = "recent recommendations were lower than current one, applying the lowest recent recommendation"
TOO_FAST = "the desired replica count is increasing faster than the maximum scale rate"
TOO_FAST_DOWN = "the desired replica count is decreasing faster than the maximum scale rate"
TOO_MANY = "the desired replica count is more than the maximum replica count"
TOO_FEW = "the desired replica count is less than the minimum replica count"
IN_RANGE = "the desired count is within the acceptable range"


@dataclass(frozen=True, slots=True)
class Decision:
    """A size, with the reason and message of why it is that."""

    replicas: int
    reason: str
    message: str


@dataclass(slots=True)
class History:
    """What an autoscaler remembers: what was recommended, and by how much the size was changed, each with its time."""

    recommendations: list[tuple[float, int]] = field(default_factory=list)
    ups: list[tuple[float, int]] = field(default_factory=list)
    downs: list[tuple[float, int]] = field(default_factory=list)

    def recommend(self, now: float, replicas: int, window: float) -> None:
        """Note a recommendation, and forget those older than the window."""
        self.recommendations = [each for each in self.recommendations if each[0] >= now - window]
        self.recommendations.append((now, replicas))

    def bridge(self, now: float, period: float) -> None:
        """Note what looks that were not taken would have recommended: nothing changed until one period ago, so the same as the last."""
        if self.recommendations and self.recommendations[-1][0] < now - period:
            self.recommendations.append((now - period, self.recommendations[-1][1]))

    def scaled(self, now: float, before: int, after: int, behavior: Tree) -> None:
        """Note a change of size, and forget those that no policy looks back to."""
        rules, events = (behavior["scaleUp"], self.ups) if after > before else (behavior["scaleDown"], self.downs)
        longest = max((policy["periodSeconds"] for policy in rules.get("policies") or ()), default=0)
        events[:] = [each for each in events if each[0] >= now - longest]
        events.append((now, abs(after - before)))


def stabilized(history: History, wanted: int, now: float) -> int:
    """Without a behavior: return the highest recommendation of the last minutes, and note the new one."""
    recent = [replicas for at, replicas in history.recommendations if at >= now - DOWNSCALE_WINDOW]
    history.recommend(now, wanted, DOWNSCALE_WINDOW)
    return max([wanted, *recent])


def limited(current: int, wanted: int, least: int, most: int) -> Decision:
    """Without a behavior: return the size within the limits, and no more than twice the present one."""
    fastest = max(LIMIT_FACTOR * current, LEAST_LIMIT)
    if wanted < least:
        return Decision(least, "TooFewReplicas", TOO_FEW)
    if wanted > min(most, fastest):
        return Decision(fastest, "ScaleUpLimit", TOO_FAST) if most > fastest else Decision(most, "TooManyReplicas", TOO_MANY)
    return Decision(wanted, "DesiredWithinRange", IN_RANGE)


def window_of(rules: Tree, default: float) -> float:
    """Return a stabilization window in seconds."""
    found = rules.get("stabilizationWindowSeconds")
    return default if found is None else float(found)


def stabilized_by(history: History, behavior: Tree, current: int, wanted: int, now: float) -> Decision:
    """Return the recommendation within the lowest of the scale-up window and the highest of the scale-down window, and note the new one."""
    up_window, down_window = window_of(behavior["scaleUp"], 0.0), window_of(behavior["scaleDown"], DOWNSCALE_WINDOW)
    low = min([wanted, *(replicas for at, replicas in history.recommendations if at > now - up_window)])
    high = max([wanted, *(replicas for at, replicas in history.recommendations if at > now - down_window)])
    history.recommend(now, wanted, max(up_window, down_window))
    found = min(max(current, low), high)
    return Decision(found, "ScaleUpStabilized", LOWER) if wanted >= current else Decision(found, "ScaleDownStabilized", HIGHER)


def limited_by(history: History, behavior: Tree, current: int, wanted: int, least: int, most: int, now: float) -> Decision:
    """Return the size within the limits, and within what the policies allow at this time."""
    if wanted > current:
        fastest = max(_up_limit(history, behavior["scaleUp"], current, now), current)
        if wanted > min(most, fastest):
            return Decision(fastest, "ScaleUpLimit", TOO_FAST) if most > fastest else Decision(most, "TooManyReplicas", TOO_MANY)
    elif wanted < current:
        fastest = min(_down_limit(history, behavior["scaleDown"], current, now), current)
        if wanted < max(least, fastest):
            return Decision(fastest, "ScaleDownLimit", TOO_FAST_DOWN) if least < fastest else Decision(least, "TooFewReplicas", TOO_FEW)
    return Decision(wanted, "DesiredWithinRange", IN_RANGE)


def _changed(events: Sequence[tuple[float, int]], period: float, now: float) -> int:
    return sum(change for at, change in events if at > now - period)


def _start(history: History, policy: Tree, current: int, now: float) -> int:
    """Return the size at the start of a policy's period."""
    period = policy["periodSeconds"]
    return current - _changed(history.ups, period, now) + _changed(history.downs, period, now)


def _limits(history: History, rules: Tree, current: int, now: float, after: Callable[[Tree, int], int]) -> list[int]:
    """Return how far each policy lets the size go; `after` tells that of a policy and the size at the start of its period. Nothing where the direction is disabled."""
    if rules.get("selectPolicy") == "Disabled":
        return []
    return [after(policy, _start(history, policy, current, now)) for policy in rules.get("policies") or ()]


def _up_limit(history: History, rules: Tree, current: int, now: float) -> int:
    def after(policy: Tree, start: int) -> int:
        return int(start + policy["value"]) if policy["type"] == "Pods" else ceil(start * (100 + policy["value"]) / 100)

    return (min if rules.get("selectPolicy") == "Min" else max)(_limits(history, rules, current, now, after), default=current)


def _down_limit(history: History, rules: Tree, current: int, now: float) -> int:
    def after(policy: Tree, start: int) -> int:
        return int(start - policy["value"]) if policy["type"] == "Pods" else int(start * (100 - policy["value"]) / 100)

    # The least change keeps the most
    return (max if rules.get("selectPolicy") == "Min" else min)(_limits(history, rules, current, now, after), default=current)
