"""What a pod asks for and what a node has, as integers: cpu in millicores, everything else in whole units."""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.api.trees import Tree
from kubemini.machinery.memo import IdentityMemo, by_identity
from kubemini.machinery.quantity import milli, units

Amounts = dict[str, int]

PODS = "pods"
NONZERO_CPU, NONZERO_MEMORY = 100, 200 * 1024 * 1024
"""What a container without a request counts for in scoring: 100m and 200Mi."""


def amounts(resources: Mapping[str, str] | None) -> Amounts:
    """Return quantities as integers."""
    return {name: milli(value) if name == "cpu" else units(value) for name, value in (resources or {}).items()}


class Requests:
    """What one pod asks for: `fit` for filtering (with one pod), `score_cpu` and `score_memory` for scoring."""

    __slots__ = ("fit", "items", "key", "score_cpu", "score_memory")

    def __init__(self, fit: Amounts, score_cpu: int, score_memory: int) -> None:
        self.fit = fit
        self.items = tuple((name, value) for name, value in fit.items() if value)
        self.score_cpu = score_cpu
        self.score_memory = score_memory
        self.key = (self.items, score_cpu, score_memory)
        """Equal for equal requests."""


_INTERNED = 8192
_interned: dict[tuple[object, ...], Requests] = {}
"""Equal requests are one object, as far as they are remembered."""
_memo: IdentityMemo[tuple[Tree | None, Tree | None, Tree | None, Requests]] = IdentityMemo(16384)


def requests_of(spec: Tree) -> Requests:
    """Return a pod's requests: the larger of what its containers and sidecars take together and of each init container with the sidecars before it, plus overhead.

    Pod-level requests replace the aggregate. Memoised by the identity of the containers list.
    """
    containers = spec["containers"]
    init, overhead, level = spec.get("initContainers"), spec.get("overhead"), spec.get("resources")
    found = _memo.get(containers)
    if found is not None and found[0] is init and found[1] is overhead and found[2] is level:
        return found[3]
    computed = _compute(containers, init or (), overhead, level)
    _memo.put(containers, (init, overhead, level, computed))
    return computed


@by_identity(16384)
def _requested(resources: Tree) -> tuple[Amounts, Amounts]:
    """Return what a container's resources ask for, and what they count for in scoring. Never to be changed."""
    wanted = amounts(resources.get("requests"))
    return wanted, {"cpu": wanted.get("cpu", NONZERO_CPU), "memory": wanted.get("memory", NONZERO_MEMORY)}


_NOTHING: Tree = {}


def _of(container: Tree) -> tuple[Amounts, Amounts]:
    # By the identity of the resources: admission may copy containers, not what they ask for
    return _requested(container.get("resources") or _NOTHING)


def _compute(containers: list[Tree], init: list[Tree] | tuple[Tree, ...], overhead: Tree | None, level: Tree | None) -> Requests:
    total: Amounts = {}
    scored: Amounts = {}
    sidecars: Amounts = {}
    scored_sidecars: Amounts = {}
    peak: Amounts = {}
    scored_peak: Amounts = {}
    for container in containers:
        wanted, counted = _of(container)
        _add(total, wanted)
        _add(scored, counted)
    for container in init:
        wanted, counted = _of(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, wanted)
            _add(scored_sidecars, counted)
            _raise(peak, sidecars)
            _raise(scored_peak, scored_sidecars)
        else:
            _raise(peak, _sum(sidecars, wanted))
            _raise(scored_peak, _sum(scored_sidecars, counted))
    _add(total, sidecars)
    _add(scored, scored_sidecars)
    _raise(total, peak)
    _raise(scored, scored_peak)
    if level and level.get("requests"):
        given = amounts(level["requests"])
        total |= given
        scored |= {name: value for name, value in given.items() if name in ("cpu", "memory")}
    if overhead:
        extra = amounts(overhead)
        _add(total, extra)
        _add(scored, extra)
    total[PODS] = 1
    found = Requests(total, scored.get("cpu", 0), scored.get("memory", 0))
    known = _interned.get(found.key)
    if known is None:
        if len(_interned) >= _INTERNED:
            _interned.clear()
        known = _interned[found.key] = found
    return known


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value


def _raise(total: Amounts, other: Mapping[str, int]) -> None:
    for name, value in other.items():
        if value > total.get(name, 0):
            total[name] = value


def _sum(left: Mapping[str, int], right: Mapping[str, int]) -> Amounts:
    total = dict(left)
    _add(total, right)
    return total
