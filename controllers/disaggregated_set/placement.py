"""Exclusive placement of slices: affinities over the labels that the pods of a DisaggregatedSet carry."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def placed(template: Tree, base: str, slice_: int, policy: Tree | None) -> Tree:
    """Return a pod template whose pods keep to one domain per slice; as it is without a policy.

    A slice of its own for each domain, and with ExclusiveTopology none of another DisaggregatedSet beside it.
    """
    kind, topology = (policy or {}).get("type") or "None", (policy or {}).get("topology") or ""
    if kind == "None" or not topology:
        return template
    text = str(slice_)
    mine = [_in(names.DS_NAME, base), _in(names.DS_SLICE, text)]
    # Pods without a slice are of slice 0: strangers to every other slice, but not to that one
    exists = [_exists(names.DS_SLICE)] if slice_ == 0 else []
    others = [[_in(names.DS_NAME, base), *exists, _not_in(names.DS_SLICE, text)]]
    if kind == "ExclusiveTopology":
        others.append([_exists(names.DS_NAME), _not_in(names.DS_NAME, base), _exists(names.DS_SLICE)])
    spec: Tree = template.get("spec") or {}
    affinity: Tree = spec.get("affinity") or {}
    changed = {
        **affinity,
        "podAffinity": _with_terms(affinity.get("podAffinity") or {}, [mine], topology),
        "podAntiAffinity": _with_terms(affinity.get("podAntiAffinity") or {}, others, topology),
    }
    return {**template, "spec": {**spec, "affinity": changed}}


def _with_terms(affinity: Tree, terms: list[list[Tree]], topology: str) -> Tree:
    added = [{"labelSelector": {"matchExpressions": each}, "topologyKey": topology} for each in terms]
    return {**affinity, REQUIRED: [*(affinity.get(REQUIRED) or ()), *added]}


def _in(key: str, value: str) -> Tree:
    return {"key": key, "operator": "In", "values": [value]}


def _not_in(key: str, value: str) -> Tree:
    return {"key": key, "operator": "NotIn", "values": [value]}


def _exists(key: str) -> Tree:
    return {"key": key, "operator": "Exists"}
