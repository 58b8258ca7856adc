"""What a pod asks for as a whole, and the quality of service that follows from it. Exact, in billionths.

Mirrors ``component-helpers/resource`` and ``pkg/apis/core/helper/qos`` (1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import quantity
from kubemini.machinery.memo import by_identity

Amounts = dict[str, int]
"""Amounts by resource, in billionths."""


def is_sidecar(container: Tree) -> bool:
    """Tell whether an init container keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def total(lists: Iterable[Mapping[str, str]]) -> Amounts:
    """Return the sums of resource lists."""
    sums: Amounts = {}
    for each in lists:
        for name, value in each.items():
            sums[name] = sums.get(name, 0) + quantity.nano(value)
    return sums


def larger(one: Amounts, other: Amounts) -> Amounts:
    """Return the larger amount of each resource."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}


def aggregate(spec: Tree, kind: str) -> Amounts:
    """Return what the containers of a pod ask for together: sidecars count with the others, init containers one after another.

    `kind` is ``requests`` or ``limits``.
    """
    containers, inits = spec.get("containers") or [], spec.get("initContainers")
    if not inits:
        return (_requests_of if kind == "requests" else _limits_of)(containers)

    def of(container: Tree) -> Mapping[str, str]:
        return (container.get("resources") or {}).get(kind) or {}

    sidecars: list[Mapping[str, str]] = []
    peak: Amounts = {}
    for each in inits:
        if is_sidecar(each):
            sidecars.append(of(each))
            peak = larger(peak, total(sidecars))
        else:
            peak = larger(peak, total([*sidecars, of(each)]))
    return larger(total([*map(of, containers), *sidecars]), peak)


@by_identity()
def _requests_of(containers: list[Tree]) -> Amounts:
    return total((each.get("resources") or {}).get("requests") or {} for each in containers)


@by_identity()
def _limits_of(containers: list[Tree]) -> Amounts:
    return total((each.get("resources") or {}).get("limits") or {} for each in containers)


def of_pod(spec: Tree, kind: str) -> Amounts:
    """Return what a pod asks for: its own resources where it has them, else its containers', plus overhead."""
    own = (spec.get("resources") or {}).get(kind)
    amounts = {**aggregate(spec, kind), **total([own])} if own else aggregate(spec, kind)
    overhead = spec.get("overhead")
    if not overhead:
        return amounts
    added = total([overhead])
    # A limit that nobody set stays absent: overhead does not make one.
    names = {**amounts, **added} if kind == "requests" else amounts
    return {name: amounts.get(name, 0) + added.get(name, 0) for name in names}


# ------------------------------------------------------------------------------------------------------ quality of service


def qos_class(spec: Tree) -> str:
    """Return the quality-of-service class of a pod: Guaranteed, Burstable or BestEffort."""
    if spec.get("resources"):
        return _qos([spec["resources"]])
    containers, inits = spec.get("containers") or [], spec.get("initContainers")
    return _qos_of_containers(containers) if not inits else _qos([each.get("resources") for each in (*containers, *inits)])


@by_identity()
def _qos_of_containers(containers: list[Tree]) -> str:
    return _qos([each.get("resources") for each in containers])


def _positive(resources: Any, kind: str) -> dict[str, str]:
    found = (resources or {}).get(kind) or {}
    return {name: found[name] for name in ("cpu", "memory") if name in found and quantity.nano(found[name]) > 0}


def _qos(parts: list[Any]) -> str:
    requests = total(_positive(each, "requests") for each in parts)
    limits = total(_positive(each, "limits") for each in parts)
    if not requests and not limits:
        return "BestEffort"
    guaranteed = requests == limits and all(len(_positive(each, "limits")) == 2 for each in parts)
    return "Guaranteed" if guaranteed else "Burstable"
