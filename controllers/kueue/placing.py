"""Whether a pod could run on the nodes of a flavor: taints, and node affinity restricted to what the flavor says about its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kubemini.api.trees import Tree
from kubemini.machinery.labels import Requirement

HARD = ("NoSchedule", "NoExecute")
_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def tolerates(toleration: Tree, taint: Tree) -> bool:
    """Tell whether a toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    key = toleration.get("key", "")
    if key and key != taint["key"]:
        return False
    if toleration.get("operator", "Equal") == "Exists":
        return True
    return bool(key) and toleration.get("value", "") == taint.get("value", "")


def untolerated(taints: Sequence[Tree] | None, tolerations: Iterable[Tree]) -> Tree | None:
    """Return the first hard taint that nothing covers, or None."""
    if not taints:
        return None
    known = list(tolerations)
    for taint in taints:
        if taint["effect"] in HARD and not any(tolerates(each, taint) for each in known):
            return taint
    return None


def _requirement(tree: Tree) -> Requirement:
    return Requirement(tree["key"], _OPERATORS[tree["operator"]], tuple(tree.get("values") or ()))


def matches_affinity(spec: Tree, labels: Mapping[str, str]) -> bool:
    """Tell whether the node selector and required node affinity of a pod allow nodes with these labels, as far as they speak of these keys."""
    for key, value in (spec.get("nodeSelector") or {}).items():
        if key in labels and labels[key] != value:
            return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    if not terms:
        return True
    for term in terms:
        known = [each for each in term.get("matchExpressions") or () if each["key"] in labels]
        if all(_requirement(each).matches(labels) for each in known):
            return True
    return False


def node_matches(spec: Tree, node: Tree) -> bool:
    """Tell whether required node affinity (not the node selector) allows a node."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    if not terms:
        return True
    labels = node["metadata"].get("labels") or {}
    fields = {"metadata.name": node["metadata"]["name"]}
    for term in terms:
        expressions, matched = term.get("matchExpressions") or (), term.get("matchFields") or ()
        if not expressions and not matched:
            continue
        if all(_requirement(each).matches(labels) for each in expressions) and all(_requirement(each).matches(fields) for each in matched):
            return True
    return False
