"""What a Workload asks for: per pod set, the requests of one pod after defaults of LimitRanges and RuntimeClasses, transformed and multiplied.

Nothing of this is written into the Workload's spec. Mirrors Kueue's ``pkg/workload/resources.go`` and ``pkg/workload/workload.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.amounts import MAX, add_to, amount, amounts, raise_to, times
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.machinery.memo import IdentityMemo
from kubemini.machinery.quantity import nano

_memo: IdentityMemo[tuple[Tree | None, Tree | None, Tree | None, dict[str, int]]] = IdentityMemo(16384)
NANO = 10**9
NAMESPACE_MISMATCH = "workload namespace doesn't match ClusterQueue selector"


@dataclass(frozen=True, slots=True)
class PodSetRequest:
    """What one pod set asks for: `total` is for `count` pods, `single` for one, in the units of `amounts`."""

    name: str
    count: int
    single: Mapping[str, int]
    total: Mapping[str, int]

    def scaled(self, count: int) -> PodSetRequest:
        """Return the same for another number of pods."""
        if count == self.count:
            return self
        return PodSetRequest(self.name, count, self.single, {name: times(value, count) for name, value in self.single.items()})


def pod_requests(spec: Tree) -> dict[str, int]:
    """Return a pod's requests: the larger of its containers with sidecars and of each init step, pod-level requests over that, plus overhead."""
    containers = spec.get("containers") or []
    init, overhead, level = spec.get("initContainers"), spec.get("overhead"), spec.get("resources")
    found = _memo.get(containers)
    if found is not None and found[0] is init and found[1] is overhead and found[2] is level:
        return found[3]
    total: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in containers:
        add_to(total, _requests(container))
    for container in init or ():
        wanted = _requests(container)
        if container.get("restartPolicy") == "Always":
            add_to(sidecars, wanted)
            raise_to(peak, sidecars)
        else:
            here = dict(sidecars)
            add_to(here, wanted)
            raise_to(peak, here)
    add_to(total, sidecars)
    raise_to(total, peak)
    if level and level.get("requests"):
        total |= amounts(level["requests"])
    if overhead:
        add_to(total, amounts(overhead))
    _memo.put(containers, (init, overhead, level, total))
    return total


def _requests(container: Tree) -> dict[str, int]:
    found = _container_memo.get(container)
    if found is None:
        resources = container.get("resources") or {}
        found = _container_memo.put(container, amounts(resources.get("requests")))
    return found


_container_memo: IdentityMemo[dict[str, int]] = IdentityMemo(16384)


# ---------------------------------------------------------------------------------------------- adjusting


def adjusted(spec: Tree, limit_ranges: Sequence[Tree], runtime_overhead: Tree | None) -> Tree:
    """Return a pod spec with the overhead of its RuntimeClass, the defaults of LimitRanges, and limits as requests where it has none; itself where nothing changes."""
    new = spec
    if runtime_overhead and not spec.get("overhead"):
        new = {**new, "overhead": runtime_overhead}
    limits, requests = _defaults(limit_ranges, "Container")
    for field in ("containers", "initContainers"):
        old = spec.get(field)
        if old:
            changed = [_container(each, limits, requests) for each in old]
            if any(a is not b for a, b in zip(changed, old, strict=True)):
                new = {**new, field: changed}
    level = spec.get("resources")
    if level and level.get("limits"):
        merged = {**level["limits"], **(level.get("requests") or {})}
        if merged != level.get("requests"):
            new = {**new, "resources": {**level, "requests": merged}}
    return new


def _defaults(limit_ranges: Sequence[Tree], type_: str) -> tuple[Mapping[str, str], Mapping[str, str]]:
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for limit_range in limit_ranges:
        for item in limit_range["spec"].get("limits") or ():
            if item["type"] == type_:
                for target, key in ((limits, "default"), (requests, "defaultRequest")):
                    for name, value in (item.get(key) or {}).items():
                        target.setdefault(name, value)
    return limits, requests


def _container(container: Tree, limits: Mapping[str, str], requests: Mapping[str, str]) -> Tree:
    resources = container.get("resources") or {}
    given_limits, given_requests = resources.get("limits") or {}, resources.get("requests") or {}
    new_limits = {**limits, **given_limits} if limits else given_limits
    new_requests = {**new_limits, **requests, **given_requests}
    if new_requests == given_requests and new_limits == given_limits:
        return container
    return {**container, "resources": {**resources, "limits": dict(new_limits), "requests": new_requests}}


def beyond_limits(pod_sets: Iterable[Tree]) -> str:
    """Return the complaint about a container that requests more than its limit, or ""."""
    problems: list[str] = []
    for index, pod_set in enumerate(pod_sets):
        spec = pod_set["template"]["spec"]
        for field in ("initContainers", "containers"):
            for position, container in enumerate(spec.get(field) or ()):
                limits = _listed(container, "limits")
                over = sorted(name for name, value in _listed(container, "requests").items() if name in limits and nano(value) > nano(limits[name]))
                if over:
                    listed = "[" + ", ".join(f'"{name}"' for name in over) + "]"
                    problems.append(
                        f"spec.podSets[{index}].template.spec.{field}[{position}]: Invalid value: {listed}: requests must not exceed its limits"
                    )
    return "" if not problems else problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _listed(container: Tree, kind: str) -> Mapping[str, str]:
    found: Mapping[str, str] = (container.get("resources") or {}).get(kind) or {}
    return found


def beyond_ranges(pod_sets: Iterable[Tree], limit_ranges: Sequence[Tree]) -> str:
    """Return the complaint about containers or pods outside the minimum and maximum of a LimitRange, or ""."""
    problems = []
    for index, pod_set in enumerate(pod_sets):
        spec = pod_set["template"]["spec"]
        path = f"spec.podSets[{index}].template.spec"
        for type_ in ("Pod", "Container"):
            least, most = _bounds(limit_ranges, type_)
            if not least and not most:
                continue
            where: list[tuple[str, Mapping[str, int]]] = [(path, pod_requests(spec))]
            if type_ == "Container":
                where = [
                    (f"{path}.{field}[{n}]", _requests(each))
                    for field in ("initContainers", "containers")
                    for n, each in enumerate(spec.get(field) or ())
                ]
            for place, wanted in where:
                for names, word in (
                    (sorted(name for name, value in wanted.items() if name in most and value > most[name]), "above the limitRange max"),
                    (sorted(name for name, value in wanted.items() if name in least and value < least[name]), "below the limitRange min"),
                ):
                    if names:
                        listed = "[" + ", ".join(f'"{name}"' for name in names) + "]"
                        problems.append(f"{place}: Invalid value: {listed}: requests must not be {word}")
    return "" if not problems else problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"


def _bounds(limit_ranges: Sequence[Tree], type_: str) -> tuple[dict[str, int], dict[str, int]]:
    least: dict[str, int] = {}
    most: dict[str, int] = {}
    for limit_range in limit_ranges:
        for item in limit_range["spec"].get("limits") or ():
            if item["type"] == type_:
                for name, value in amounts(item.get("min")).items():
                    least[name] = max(least.get(name, 0), value)
                for name, value in amounts(item.get("max")).items():
                    most[name] = min(most.get(name, MAX), value)
    return least, most


# ---------------------------------------------------------------------------------------------- transforming


def effective(single: Mapping[str, int], config: KueueConfig) -> Mapping[str, int]:
    """Return one pod's requests without excluded resources and after transformations."""
    if config.excluded_prefixes:
        single = {name: value for name, value in single.items() if not name.startswith(config.excluded_prefixes)}
    if not config.transformations:
        return single
    result: dict[str, int] = {}
    for name, value in single.items():
        rule = config.transformations.get(name)
        if rule is None or rule.retain:
            result[name] = result.get(name, 0) + value
        if rule is not None:
            scale = 1000 if name == "cpu" else 1
            multiplier = single.get(rule.multiply_by, 0) if rule.multiply_by else 1
            for output, factor in rule.outputs.items():
                share = nano(factor) * value * multiplier
                to = 1000 if output == "cpu" else 1
                result[output] = result.get(output, 0) + max(0, -(-share * to // (NANO * scale)))
    return {name: min(MAX, value) for name, value in result.items()}


def totals(
    pod_sets: Sequence[Tree], config: KueueConfig, reclaimable: Mapping[str, int], counts: Mapping[str, int] | None = None
) -> list[PodSetRequest]:
    """Return what each pod set asks for; `counts` overrides the numbers of pods, reclaimable pods ask for nothing any more."""
    found = []
    for pod_set in pod_sets:
        name = pod_set["name"]
        count = max(0, (counts[name] if counts is not None else pod_set["count"]) - reclaimable.get(name, 0))
        single = effective(pod_requests(pod_set["template"]["spec"]), config)
        found.append(PodSetRequest(name, count, single, {resource: times(value, count) for resource, value in single.items()}))
    return found


def usage_of(assignment: Tree, pods: int) -> dict[tuple[str, str], int]:
    """Return what an admitted pod set uses of each (flavor, resource) when no more than so many pods are left to run."""
    flavors = assignment.get("flavors") or {}
    count = assignment.get("count", 1)
    usage: dict[tuple[str, str], int] = {}
    for resource, text in (assignment.get("resourceUsage") or {}).items():
        flavor = flavors.get(resource)
        if flavor is None:
            continue
        value = amount(resource, text)
        if pods < count:
            value = value // count * max(0, pods)
        usage[flavor, resource] = usage.get((flavor, resource), 0) + value
    return usage


def misfit(pod_sets: Sequence[Tree], ranges: Sequence[Tree]) -> str:
    """Return why pods of these sets cannot be made as they ask to be, or ""."""
    problem = beyond_limits(pod_sets)
    if problem:
        return f"resources validation failed: {problem}"
    problem = beyond_ranges(pod_sets, ranges) if ranges else ""
    return f"resources didn't satisfy LimitRange constraints: {problem}" if problem else ""
