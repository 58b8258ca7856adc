"""Rules of what steers scheduling: tolerations, affinity, spread constraints, gates."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import POSITIVE, Errors, wrong

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def tolerations(entries: Any, path: str) -> Errors:
    """Check tolerations."""
    for index, entry in enumerate(entries or ()):
        here = f"{path}[{index}]"
        key, operator, value = entry.get("key", ""), entry.get("operator", ""), entry.get("value", "")
        effect = entry.get("effect", "")
        if key:
            yield from wrong(names.qualified_name, key, f"{here}.key")
        elif operator != "Exists":
            text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{here}.operator", operator, text)
        if entry.get("tolerationSeconds") is not None and effect != "NoExecute":
            yield invalid(f"{here}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
        if operator in ("", "Equal"):
            problem = names.label_value(value)
            if problem:
                yield invalid(f"{here}.operator", value, problem.replace("\n", ";"))
        elif operator == "Exists":
            if value:
                yield invalid(f"{here}.operator", value, "value must be empty when `operator` is 'Exists'")
        else:
            yield not_supported(f"{here}.operator", operator, ("Equal", "Exists"))
        if effect and effect not in EFFECTS:
            yield not_supported(f"{here}.effect", effect, EFFECTS)


def taints(entries: Any, path: str) -> Errors:
    """Check the taints of a node."""
    seen: set[tuple[str, str]] = set()
    for index, entry in enumerate(entries or ()):
        here, key, effect = f"{path}[{index}]", entry.get("key", ""), entry.get("effect", "")
        yield from wrong(names.qualified_name, key, f"{here}.key")
        problem = names.label_value(entry.get("value", ""))
        if problem:
            yield invalid(f"{here}.value", entry["value"], problem.replace("\n", ";"))
        if not effect:
            yield required(f"{here}.effect")
        elif effect not in EFFECTS:
            yield not_supported(f"{here}.effect", effect, EFFECTS)
        if (key, effect) in seen:
            found = duplicate(here, entry)
            yield FieldError(found.reason, found.field, f"{found.body}: taints must be unique by key and effect pair")
        seen.add((key, effect))


# ------------------------------------------------------------------------------------------------------ affinity


def affinity(tree: Tree | None, path: str) -> Errors:
    """Check node affinity, pod affinity and pod anti-affinity."""
    if not tree:
        return
    node: Tree = tree.get("nodeAffinity") or {}
    if node.get(_REQUIRED) is not None:
        yield from node_selector(node[_REQUIRED], f"{path}.nodeAffinity.{_REQUIRED}")
    for index, term in enumerate(node.get(_PREFERRED) or ()):
        here = f"{path}.nodeAffinity.{_PREFERRED}[{index}]"
        yield from _weight(term, here)
        yield from _node_term(term.get("preference") or {}, f"{here}.preference", values=False)
    for key in ("podAffinity", "podAntiAffinity"):
        pods: Tree = tree.get(key) or {}
        for index, term in enumerate(pods.get(_REQUIRED) or ()):
            yield from _pod_term(term, f"{path}.{key}.{_REQUIRED}[{index}]")
        for index, term in enumerate(pods.get(_PREFERRED) or ()):
            here = f"{path}.{key}.{_PREFERRED}[{index}]"
            yield from _weight(term, here)
            yield from _pod_term(term.get("podAffinityTerm") or {}, f"{here}.podAffinityTerm")


def _weight(term: Tree, path: str) -> Errors:
    weight = term.get("weight", 0)
    if not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def node_selector(tree: Tree, path: str) -> Errors:
    """Check a NodeSelector (node affinity, volumes)."""
    terms = tree.get("nodeSelectorTerms") or ()
    if not terms:
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    for index, term in enumerate(terms):
        yield from _node_term(term, f"{path}.nodeSelectorTerms[{index}]", values=True)


def _node_term(term: Tree, path: str, *, values: bool) -> Errors:
    for index, each in enumerate(term.get("matchExpressions") or ()):
        yield from _node_expression(each, f"{path}.matchExpressions[{index}]", values=values)
    for index, each in enumerate(term.get("matchFields") or ()):
        here, operator = f"{path}.matchFields[{index}]", each.get("operator", "")
        listed = each.get("values") or ()
        if operator not in ("In", "NotIn"):
            yield invalid(f"{here}.operator", operator, "not a valid selector operator")
        elif len(listed) != 1:
            yield required(f"{here}.values", "must be only one value when `operator` is 'In' or 'NotIn' for node field selector")
        if each.get("key") != "metadata.name":
            yield invalid(f"{here}.key", each.get("key", ""), "not a valid field selector key")
        else:
            for at, value in enumerate(listed):
                yield from wrong(names.dns1123_subdomain, value, f"{here}.values[{at}]")


def _node_expression(each: Tree, path: str, *, values: bool) -> Errors:
    operator, listed = each.get("operator", ""), each.get("values") or ()
    match operator:
        case "In" | "NotIn":
            if not listed:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if listed:
                yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case "Gt" | "Lt":
            if len(listed) != 1:
                yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
        case _:
            yield invalid(f"{path}.operator", operator, "not a valid selector operator")
    yield from wrong(names.qualified_name, each.get("key", ""), f"{path}.key")
    if values:
        for at, value in enumerate(listed):
            yield from wrong(names.label_value, value, f"{path}.values[{at}]")


def _pod_term(term: Tree, path: str) -> Errors:
    selector = term.get("labelSelector")
    yield from labels.validate_label_selector(selector, f"{path}.labelSelector")
    yield from labels.validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for each in term.get("namespaces") or ():
        yield from wrong(names.dns1123_label, each, f"{path}.namespace")
    matching, mismatching = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    yield from _label_keys(matching, selector, f"{path}.matchLabelKeys")
    yield from _label_keys(mismatching, selector, f"{path}.mismatchLabelKeys")
    if selector is not None:
        # The strategy has merged the keys into the selector already, so a key that stands there twice was given twice.
        seen = set(selector.get("matchLabels") or ())
        for each in selector.get("matchExpressions") or ():
            key = each.get("key", "")
            if key in matching and key in seen:
                yield invalid(f"{path}[{matching.index(key)}]", key, "exists in both matchLabelKeys and labelSelector")
            seen.add(key)
    for index, key in enumerate(matching):
        if key in mismatching:
            yield invalid(f"{path}.matchLabelKeys[{index}]", key, "exists in both matchLabelKeys and mismatchLabelKeys")
    if not term.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from wrong(names.qualified_name, term.get("topologyKey", ""), f"{path}.topologyKey")


def _label_keys(keys: list[str], selector: Tree | None, path: str) -> Errors:
    if keys and selector is None:
        yield forbidden(path, "must not be specified when labelSelector is not set")
        return
    for index, key in enumerate(keys):
        yield from wrong(names.qualified_name, key, f"{path}[{index}]")


# ------------------------------------------------------------------------------------------------------ spreading, gates


def spread_constraints(entries: Any, path: str) -> Errors:
    """Check topology spread constraints."""
    constraints = entries or ()
    for index, each in enumerate(constraints):
        here = f"{path}[{index}]"
        skew, key, action = each.get("maxSkew", 0), each.get("topologyKey", ""), each.get("whenUnsatisfiable", "")
        if skew <= 0:
            yield invalid(f"{here}.maxSkew", skew, POSITIVE)
        if not key:
            yield required(f"{here}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            yield not_supported(f"{here}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        if any(key == other.get("topologyKey", "") and action == other.get("whenUnsatisfiable", "") for other in constraints[index + 1 :]):
            yield duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
        least = each.get("minDomains")
        if least is not None:
            if least <= 0:
                yield invalid(f"{here}.minDomains", least, POSITIVE)
            if action != "DoNotSchedule":
                yield invalid(f"{here}.minDomains", least, f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}")
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if each.get(policy) not in (None, "Honor", "Ignore"):
                yield not_supported(f"{here}.{policy}", each[policy], ("Honor", "Ignore"))
        yield from _spread_label_keys(each, f"{here}.matchLabelKeys")
        yield from labels.validate_label_selector(each.get("labelSelector"), f"{here}.labelSelector")


def _spread_label_keys(constraint: Tree, path: str) -> Errors:
    keys, selector = constraint.get("matchLabelKeys") or [], constraint.get("labelSelector")
    if not keys:
        return
    if selector is None:
        yield forbidden(path, "must not be specified when labelSelector is not set")
    counts: dict[str, int] = dict.fromkeys((selector or {}).get("matchLabels") or {}, 1)
    for each in (selector or {}).get("matchExpressions") or ():
        counts[each.get("key", "")] = counts.get(each.get("key", ""), 0) + 1
    for index, key in enumerate(keys):
        yield from wrong(names.qualified_name, key, f"{path}[{index}]")
        if counts.get(key, 0) > 1:
            yield invalid(f"{path}[{index}]", key, "exists in both matchLabelKeys and labelSelector")


def scheduling_gates(entries: Any, path: str) -> Errors:
    """Check scheduling gates."""
    seen: set[str] = set()
    for index, gate in enumerate(entries or ()):
        here, name = f"{path}[{index}]", gate.get("name", "")
        yield from wrong(names.qualified_name, name, here)
        if name in seen:
            yield duplicate(here, name)
        seen.add(name)
