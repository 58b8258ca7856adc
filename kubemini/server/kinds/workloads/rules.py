"""Rules that many workload kinds share: immutability, counts, int-or-percent, selectors against the labels of a pod template.

All are generators of field errors over immutable trees. Mirrors parts of ``pkg/apis/apps/validation`` and
``pkg/apis/core/validation`` (1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import invalid, required
from kubemini.machinery.selectors import compile_label_selector
from kubemini.server.kinds.core import formats
from kubemini.server.kinds.core.formats import IMMUTABLE, NOT_NEGATIVE, Errors

SELECTOR_MISMATCH = "`selector` does not match template `labels`"
NOT_MORE_THAN_REPLICAS = "cannot be greater than status.replicas"
DNS_LABEL_ADVICE = "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: "


def same(a: Any, b: Any) -> bool:
    """Tell whether two decoded trees mean the same: absent, null and the empty list are one, as in Go's semantic equality.

    >>> same({"a": 1, "b": []}, {"a": 1, "c": None})
    True
    """
    if a is b or a == b:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return all(same(value, b.get(key)) for key, value in a.items()) and all(key in a or not_given(value) for key, value in b.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(*pair) for pair in zip(a, b, strict=True))
    return not_given(a) and not_given(b)


def not_given(value: Any) -> bool:
    """Tell whether a value is one that Go does not tell from an absent one."""
    return value is None or value == []


def immutable(new: Any, old: Any, path: str) -> Errors:
    """Refuse a changed value."""
    if not same(new, old):
        yield invalid(path, new, IMMUTABLE)


def immutable_fields(new: Tree, old: Tree, fields: Iterable[str], path: str) -> Errors:
    """Refuse changes of some fields of an object."""
    for field in fields:
        yield from immutable(new.get(field), old.get(field), f"{path}.{field}")


def counts(tree: Tree, fields: Iterable[str], path: str) -> Errors:
    """Refuse negative numbers in some fields of an object."""
    for field in fields:
        yield from formats.at_least_zero(tree.get(field), f"{path}.{field}")


def not_more_than(status: Tree, fields: Iterable[str], limit_field: str, text: str) -> Errors:
    """Refuse status counts above another count of the same status."""
    limit = status.get(limit_field) or 0
    for field in fields:
        value = status.get(field) or 0
        if value > limit:
            yield invalid(f"status.{field}", value, text)


def collision_count(new: Tree, old: Tree) -> Errors:
    """Refuse a collision count that went down."""
    before, after = old.get("collisionCount"), new.get("collisionCount")
    if before is not None and (after is None or after < before):
        yield invalid("status.collisionCount", after or 0, "cannot be decremented")


# ------------------------------------------------------------------------------------------------ int or percent


def int_or_percent(value: int | str, path: str) -> Errors:
    """Check a count that may be written as a percentage; both must not be negative."""
    if isinstance(value, str):
        yield from formats.wrong(names.percent, value, path)
    elif value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def at_most_all(value: int | str, path: str) -> Errors:
    """Refuse more than 100 %."""
    if isinstance(value, str) and names.percent(value) is None and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def bare_number(value: int | str | None) -> int:
    """Return the number of a count or percentage, without its sign; 0 for what is neither."""
    if isinstance(value, str):
        return int(value[:-1]) if names.percent(value) is None else _go_atoi(value)
    return value or 0


def _go_atoi(text: str) -> int:
    return int(text) if text.lstrip("+-").isascii() and text.lstrip("+-").isdecimal() and len(text) - len(text.lstrip("+-")) < 2 else 0


# ------------------------------------------------------------------------------------------------ selector and template


def is_empty_selector(selector: Tree) -> bool:
    """Tell whether a LabelSelector has no requirement, and so would select everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def template_labels(template: Tree) -> Tree:
    """Return the labels of a pod template."""
    labels: Tree = (template.get("metadata") or {}).get("labels") or {}
    return labels


def selector_matches(selector: Tree | None, labels: Tree) -> bool | None:
    """Tell whether a LabelSelector object selects some labels; nothing is selected without one. None for one that cannot be read."""
    if selector is None:
        return False
    try:
        return compile_label_selector(selector).matches(labels)
    except ValueError:
        return None


def mismatch(selector: Tree | None, template: Tree, path: str) -> Errors:
    """Refuse a template whose labels its own controller's selector would not select; `path` is the template's."""
    labels = template_labels(template)
    if selector_matches(selector, labels) is False:
        yield invalid(f"{path}.metadata.labels", labels or None, SELECTOR_MISMATCH)


def required_selector(spec: Tree, path: str, owner: str) -> Errors:
    """Check the selector of a kind that must have a non-empty one; `owner` is how upstream's text names the kind."""
    selector: Tree | None = spec.get("selector")
    if selector is None:
        yield required(path)
        return
    yield from formats.label_selector(selector, path)
    if is_empty_selector(selector):
        yield invalid(path, selector, f"empty selector is invalid for {owner}")


def name_advice(obj: Tree) -> Iterator[str]:
    """Yield the warning for a name that makes pod names which are no DNS labels."""
    problem = names.dns1123_label(obj["metadata"].get("name") or "")
    if problem:
        yield f"{DNS_LABEL_ADVICE}[{' '.join(names.faults(problem))}]"
