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
from kubemini.machinery.labels import from_label_selector, validate_label_selector
from kubemini.server.kinds.core.formats import IMMUTABLE, NOT_NEGATIVE, Errors, at_least_zero, wrong
from kubemini.server.kinds.internal_types import Struct

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


def immutable(new: Any, old: Any, path: str, struct: Struct | None = None) -> Errors:
    """Refuse a changed value; `struct` is its type, where the error shows upstream's internal one."""
    if not same(new, old):
        yield invalid(path, struct.shown(new) if struct else new, IMMUTABLE)


def counts(tree: Tree, fields: Iterable[str], path: str) -> Errors:
    """Refuse negative numbers in some fields of an object."""
    for field in fields:
        yield from at_least_zero(tree.get(field), f"{path}.{field}")


# ------------------------------------------------------------------------------------------------ statuses


def not_more_than(status: Tree, fields: Iterable[str], limit: str, text: str) -> Errors:
    """Refuse status counts above another count of the same status."""
    most = status.get(limit) or 0
    for field in fields:
        value = status.get(field) or 0
        if value > most:
            yield invalid(f"status.{field}", value, text)


def collision_count(new: Tree, old: Tree) -> Errors:
    """Refuse a status whose collision count went down."""
    before, after = old.get("collisionCount"), new.get("collisionCount")
    if before is not None and (after is None or after < before):
        yield invalid("status.collisionCount", after or 0, "cannot be decremented")


# ------------------------------------------------------------------------------------------------ int or percent


def int_or_percent(value: int | str, path: str) -> Errors:
    """Check a count that may be written as a percentage; neither may be negative."""
    if isinstance(value, str):
        yield from wrong(names.percent, value, path)
    elif value < 0:
        yield invalid(path, value, NOT_NEGATIVE)


def at_most_all(value: int | str, path: str) -> Errors:
    """Refuse more than 100 %."""
    if isinstance(value, str) and names.percent(value) is None and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def bare_number(value: int | str | None) -> int:
    """Return the number of a count or of a percentage without its sign; 0 for a text that is neither.

    >>> bare_number("25%"), bare_number(3), bare_number("x")
    (25, 3, 0)
    """
    if isinstance(value, str):
        digits = value.removesuffix("%")
        return int(digits) if digits.isascii() and digits.isdigit() else 0
    return value or 0


# ------------------------------------------------------------------------------------------------ selector and template


def is_empty_selector(selector: Tree) -> bool:
    """Tell whether a LabelSelector has no requirement, and so would select everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


def template_labels(template: Tree) -> Tree:
    """Return the labels of a pod template; none is empty."""
    labels: Tree = (template.get("metadata") or {}).get("labels") or {}
    return labels


def mismatch(selector: Tree | None, template: Tree, path: str) -> Errors:
    """Refuse a template whose labels its own controller's selector would not select; `path` is the template's.

    A selector that cannot be read is reported elsewhere.
    """
    labels = template_labels(template)
    if is_readable(selector) and not from_label_selector(selector).matches(labels):
        yield invalid(f"{path}.metadata.labels", labels or None, SELECTOR_MISMATCH)


def is_readable(selector: Tree | None) -> bool:
    """Tell whether labels can be held against a LabelSelector at all."""
    return not validate_label_selector(selector, "")


def required_selector(selector: Tree | None, path: str, owner: str, unreadable: str) -> Errors:
    """Check the selector of a kind that must have a non-empty one; `owner` is the kind as upstream's text names it, `unreadable` its word for a bad one."""
    if selector is None:
        yield required(path)
        return
    yield from validate_label_selector(selector, path)
    if is_empty_selector(selector):
        yield invalid(path, selector, f"empty selector is invalid for {owner}")
    if not is_readable(selector):
        yield invalid(path, selector, unreadable)


def name_advice(obj: Tree) -> Iterator[str]:
    """Yield the warning for a name from which pod names follow that are no DNS labels."""
    problem = names.dns1123_label(obj["metadata"].get("name") or "")
    if problem:
        yield f"{DNS_LABEL_ADVICE}[{' '.join(names.faults(problem))}]"
