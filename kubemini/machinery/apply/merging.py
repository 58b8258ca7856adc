"""Merging an applied configuration into the live object, checking it against the schema, and taking fields out again.

All of it copies only what changes: a merge that changes nothing returns the live object itself. Mirrors
structured-merge-diff's ``typed.Merge``, ``typed.Validate`` and ``RemoveItems`` (v6), order of lists and texts included.
"""

from __future__ import annotations

from typing import Any, Final

from kubemini.machinery.apply.owning import granular
from kubemini.machinery.apply.paths import FieldsError, shown
from kubemini.machinery.apply.sets import LEAF, MEMBER, Fields, interned, is_member
from kubemini.machinery.apply.shapes import DEDUCED, Shape
from kubemini.machinery.gotext import go_type, plain, sharp
from kubemini.machinery.merge import same

_ABSENT: Final = object()


# ----------------------------------------------------------------------------------------------- checking

Fault = tuple[str, str]
"""Path and text of a violation."""


def check(value: Any, shape: Shape) -> list[Fault]:
    """Return where a configuration contradicts its schema: wrong types, undeclared fields, doubled or missing keys."""
    if value is None:
        return []
    if isinstance(value, dict):
        if shape.is_object:
            return _check_object(value, shape)
    elif isinstance(value, list):
        if shape.is_list:
            return _check_list(value, shape)
    elif shape.scalar:
        return _check_scalar(value, shape)
    if shape.is_object:
        return [("", f"expected map, got {_value(value)}")]
    return _check_scalar(value, shape) if shape.scalar else [("", f"expected list, got {_value(value)}")]


def faults_text(faults: list[Fault]) -> str:
    """Return faults as one text."""
    texts = [f"{path}: {text}" if path else text for path, text in faults]
    return texts[0] if len(texts) == 1 else "\n".join(["errors:", *(f"  {each}" for each in texts)])


def _check_object(value: dict[str, Any], shape: Shape) -> list[Fault]:
    found: list[Fault] = []
    for key, each in value.items():
        below = shape.of_field(key)
        if below is None:
            found.append((f".{key}", "field not declared in schema"))
            break
        if each is not None:
            found += [(f".{key}{path}", text) for path, text in check(each, below)]
    return found


def _check_list(items: list[Any], shape: Shape) -> list[Fault]:
    found: list[Fault] = []
    seen: set[str] = set()
    assert shape.items is not None
    for index, each in enumerate(items):
        if shape.atomic_list:
            element = f"i:{index}"
        else:
            try:
                element = shape.element_of(each)
            except FieldsError as error:
                found.append(("", f"element {index}: {error}"))
                break
            if element in seen:
                found.append(("", f"duplicate entries for key {shown(element)}"))
            seen.add(element)
        found += [(shown(element) + path, text) for path, text in check(each, shape.items)]
    return found


def _check_scalar(value: Any, shape: Shape) -> list[Fault]:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if shape.scalar == "numeric":
        return [] if number else [("", f"expected numeric (int or float), got {go_type(value)}")]
    if shape.scalar == "string":
        return [] if isinstance(value, str) else [("", f"expected string, got &value.valueUnstructured{{Value:{sharp(value)}}}")]
    if shape.scalar == "boolean":
        return [] if isinstance(value, bool) else [("", f"expected boolean, got {_value(value)}")]
    return [] if number or isinstance(value, str | bool) else [("", f"expected any scalar, got {_value(value)}")]


def _value(value: Any) -> str:
    return f"&{{{plain(value)}}}"


# ----------------------------------------------------------------------------------------------- merging


def merge(live: Any, config: Any, shape: Shape) -> Any:
    """Return `live` with a configuration merged into it; `live` itself where nothing changes. Raise `FieldsError`."""
    if live is config:
        return live
    if granular(live, shape) and (config is None or granular(config, shape)) and live:
        if isinstance(live, dict) and isinstance(config, dict | None):
            return _merge_objects(live, config or {}, shape)
        if isinstance(live, list) and isinstance(config, list | None):
            return _merge_lists(live, config or [], shape)
    return live if same(live, config) else config


def _merge_objects(live: dict[str, Any], config: dict[str, Any], shape: Shape) -> dict[str, Any]:
    new: dict[str, Any] | None = None
    for key, each in config.items():
        before = live.get(key, _ABSENT)
        after = each if before is _ABSENT else merge(before, each, shape.of_field(key) or DEDUCED)
        if after is not before:
            if new is None:
                new = dict(live)
            new[key] = after
    return live if new is None else new


def _merge_lists(live: list[Any], config: list[Any], shape: Shape) -> list[Any]:
    """Merge two sets or keyed lists.

    Live order is kept among elements that only the live list has, the configuration's among its own; elements new to
    the list stand before the shared element that follows them in the configuration.
    """
    items = shape.items
    assert items is not None
    wanted = {shape.element_of(each): each for each in config}
    elements = [shape.element_of(each) for each in live]
    known: dict[str, Any] = {}
    for element, each in zip(elements, live, strict=True):
        # Doubled live elements do not merge: the configuration's takes their place.
        known[element] = None if element in known else each
    shared = iter([element for element in wanted if element in known])
    awaited = next(shared, None)
    new: list[Any] = []
    at = 0
    for element, each in wanted.items():
        while at < len(live):
            here = elements[at]
            if here not in wanted:
                new.append(live[at])
            elif here == awaited:
                break
            at += 1
        if element == awaited:
            at += 1
            awaited = next(shared, None)
        new.append(merge(known[element], each, items) if element in known else each)
    new += [each for element, each in zip(elements[at:], live[at:], strict=True) if element not in wanted]
    return live if len(new) == len(live) and all(after is before for after, before in zip(new, live, strict=True)) else new


# ----------------------------------------------------------------------------------------------- removing


def named(fields: Fields, shape: Shape | None) -> Fields:
    """Return a set with every declared field on its paths as a member too, so that removing the set removes emptied structs."""
    found: Fields = {}
    for element, below in fields.items():
        if not below:
            found[element] = below
            continue
        under = shape.of_element(element) if shape is not None else None
        tree = named(below, under)
        if shape is not None and element[0] == "f" and element[2:] in shape.fields and MEMBER not in tree:
            tree = {MEMBER: LEAF, **tree}
        found[element] = tree
    return interned(found)


def remove(value: Any, fields: Fields, shape: Shape, *, emptied: Any = None) -> Any:
    """Return a value without the members of a set; the value itself where nothing is removed.

    An object that loses its last key becomes empty, a list that loses its last element becomes `emptied`: null is what
    counts as a field of its own when the result is made a set again, an empty list does not.
    """
    if not fields or not isinstance(value, dict | list):
        return value
    if not granular(value, shape):
        return None
    return _remove_keys(value, fields, shape, emptied) if isinstance(value, dict) else _remove_items(value, fields, shape, emptied)


def _remove_keys(value: dict[str, Any], fields: Fields, shape: Shape, emptied: Any) -> Any:
    kept: dict[str, Any] = {}
    changed = False
    for key, each in value.items():
        below = fields.get(f"f:{key}")
        if below is not None:
            changed = True
            if is_member(below):
                continue
            each = remove(each, below, shape.of_field(key) or DEDUCED, emptied=emptied)  # noqa: PLW2901
        kept[key] = each
    return kept if changed else value


def _remove_items(items: list[Any], fields: Fields, shape: Shape, emptied: Any) -> Any:
    assert shape.items is not None
    kept: list[Any] = []
    changed = False
    for each in items:
        below = fields.get(shape.element_of(each))
        if below is not None:
            changed = True
            if is_member(below):
                continue
            each = remove(each, below, shape.items, emptied=emptied)  # noqa: PLW2901
        kept.append(each)
    if not changed:
        return items
    return kept or emptied
