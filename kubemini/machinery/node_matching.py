"""Which nodes a pod accepts: tolerations against taints, node selectors and node affinity against labels. Mirrors ``component-helpers/scheduling`` (1.36)."""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.api.trees import Tree


def tolerates_hard(spec: Tree, node: Tree) -> bool:
    """Tell whether a pod tolerates all NoSchedule and NoExecute taints of a node."""
    tolerations = spec.get("tolerations") or ()
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] in ("NoSchedule", "NoExecute") and not any(tolerates(toleration, taint) for toleration in tolerations):
            return False
    return True


def tolerates(toleration: Tree, taint: Tree) -> bool:
    """Tell whether a toleration covers a taint."""
    if toleration.get("effect") and toleration["effect"] != taint["effect"]:
        return False
    key = toleration.get("key", "")
    if key and key != taint["key"]:
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Exists" or not key:
        return operator == "Exists"
    value, other = toleration.get("value", ""), taint.get("value", "")
    if operator in ("Lt", "Gt"):
        return _compares(other, operator, value)
    return bool(value == other)


def matches_node(spec: Tree, node: Tree) -> bool:
    """Tell whether nodeSelector and required node affinity accept a node."""
    selector, affinity = spec.get("nodeSelector"), spec.get("affinity")
    if not selector and not affinity:
        return True
    labels = node["metadata"].get("labels") or {}
    if selector and any(labels.get(key) != value for key, value in selector.items()):
        return False
    required = ((affinity or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(matches_term(term, labels, node["metadata"]["name"]) for term in required.get("nodeSelectorTerms") or ())


def named_nodes(spec: Tree) -> list[str] | None:
    """Return the only nodes that required node affinity allows by name, in order, or None where it names none in some term."""
    affinity = spec.get("affinity")
    required = ((affinity or {}).get("nodeAffinity") or {}).get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required or not required.get("nodeSelectorTerms"):
        return None
    allowed: dict[str, None] = {}
    for term in required["nodeSelectorTerms"]:
        lists: list[list[str]] = [
            each.get("values") or [] for each in term.get("matchFields") or () if each["key"] == "metadata.name" and each["operator"] == "In"
        ]
        if not lists:
            return None
        allowed |= dict.fromkeys(name for name in lists[0] if all(name in others for others in lists[1:]))
    return list(allowed)


def matches_term(term: Tree, labels: Mapping[str, str], name: str) -> bool:
    """Tell whether a node selector term accepts a node; an empty term accepts none."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return all(_holds(each, labels) for each in expressions) and all(_holds(each, {"metadata.name": name}) for each in fields)


def _holds(requirement: Tree, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement["key"], requirement["operator"], requirement.get("values") or []
    present = key in labels
    if operator == "In":
        return present and labels[key] in values
    if operator == "NotIn":
        return not present or labels[key] not in values
    if operator == "Exists":
        return present
    if operator == "DoesNotExist":
        return not present
    return present and bool(values) and _compares(labels[key], operator, values[0])


def _compares(found: str, operator: str, bound: str) -> bool:
    try:
        left, right = int(found), int(bound)
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right
