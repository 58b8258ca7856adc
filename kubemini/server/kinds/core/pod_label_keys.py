"""``matchLabelKeys`` and ``mismatchLabelKeys``: on create, the pod's own label values become requirements of the selectors.

Mirrors ``mutatePodAffinity`` and ``mutateTopologySpreadConstraints`` of the pod registry (1.36).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubemini.api.trees import Tree

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def merge_label_keys(spec: Tree, labels: Mapping[str, str]) -> Tree:
    """Return the spec with its label keys written into its selectors; the same tree where there are none."""
    affinity, constraints = spec.get("affinity"), spec.get("topologySpreadConstraints")
    if not affinity and not constraints:
        return spec
    changes: Tree = {}
    if affinity:
        new_affinity = _affinity(affinity, labels)
        if new_affinity is not affinity:
            changes["affinity"] = new_affinity
    if constraints and any(each.get("matchLabelKeys") for each in constraints):
        changes["topologySpreadConstraints"] = [_merged(each, labels) for each in constraints]
    return {**spec, **changes} if changes else spec


def _affinity(affinity: Tree, labels: Mapping[str, str]) -> Tree:
    changes: Tree = {}
    for key in ("podAffinity", "podAntiAffinity"):
        tree: Tree | None = affinity.get(key)
        if tree is None:
            continue
        required: Any = tree.get(_REQUIRED) or []
        preferred: Any = tree.get(_PREFERRED) or []
        if not any(_has_keys(each) for each in required) and not any(_has_keys(each.get("podAffinityTerm") or {}) for each in preferred):
            continue
        fresh = dict(tree)
        if required:
            fresh[_REQUIRED] = [_merged(each, labels) for each in required]
        if preferred:
            fresh[_PREFERRED] = [{**each, "podAffinityTerm": _merged(each.get("podAffinityTerm") or {}, labels)} for each in preferred]
        changes[key] = fresh
    return {**affinity, **changes} if changes else affinity


def _has_keys(term: Tree) -> bool:
    return bool(term.get("matchLabelKeys") or term.get("mismatchLabelKeys"))


def _merged(term: Tree, labels: Mapping[str, str]) -> Tree:
    """Return a term or constraint with its keys as requirements; keys that the pod has no label for are ignored."""
    selector = term.get("labelSelector")
    if selector is None or not _has_keys(term):
        return term
    added = [
        {"key": key, "operator": operator, "values": [labels[key]]}
        for operator, field in (("In", "matchLabelKeys"), ("NotIn", "mismatchLabelKeys"))
        for key in term.get(field) or ()
        if key in labels
    ]
    if not added:
        return term
    return {**term, "labelSelector": {**selector, "matchExpressions": [*(selector.get("matchExpressions") or ()), *added]}}
