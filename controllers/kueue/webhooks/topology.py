"""The topology annotations of pod templates. Mirrors ``pkg/controller/jobframework/tas_validation.go``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.topology.requests import FALSE, TRUE, annotations_of
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, required

MOST_LAYERS = 3
INT32 = 2**31 - 1


def template_errors(template: Tree, path: str, count: int | None = None) -> list[FieldError]:
    """Return what is wrong with the topology annotations of one template of `count` pods; `path` is that of its metadata.annotations."""
    given = annotations_of(template)
    if not any(key.startswith("kueue.x-k8s.io/podset-") for key in given):
        return []
    return [*_exclusive(given, path), *_values(given, path), *_group(given, path), *_slices(given, path, count), *_layers(given, path)]


def _exclusive(given: dict[str, str], path: str) -> Iterator[FieldError]:
    kinds = [key for key in (names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY, names.UNCONSTRAINED_TOPOLOGY) if key in given]
    if len(kinds) > 1:
        listed = ", ".join(f'"{key}"' for key in kinds)
        yield invalid(path, given, f"must not contain more than one topology annotation: [{listed}]")


def _values(given: dict[str, str], path: str) -> Iterator[FieldError]:
    for key in (names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY, names.SLICE_REQUIRED_TOPOLOGY):
        if key in given:
            yield from rules.errors(f"{path}[{key}]", given[key], rules.qualified_name(given[key]))
    value = given.get(names.UNCONSTRAINED_TOPOLOGY)
    if value is not None and value not in (*TRUE, *FALSE):
        yield invalid(f"{path}[{names.UNCONSTRAINED_TOPOLOGY}]", value, "must be a boolean value")


def _group(given: dict[str, str], path: str) -> Iterator[FieldError]:
    value = given.get(names.POD_SET_GROUP_NAME)
    if value is None:
        return
    at = f"{path}[{names.POD_SET_GROUP_NAME}]"
    if value.isdigit():
        yield invalid(at, value, "must not be a number")
    for key in (names.SLICE_SIZE, names.SLICE_REQUIRED_TOPOLOGY):
        if key in given:
            yield forbidden(at, f"may not be set when '{key}' is specified")
    if names.REQUIRED_TOPOLOGY not in given and names.PREFERRED_TOPOLOGY not in given:
        yield forbidden(at, f"may not be set when neither '{names.PREFERRED_TOPOLOGY}' nor '{names.REQUIRED_TOPOLOGY}' is specified")


def _slices(given: dict[str, str], path: str, count: int | None) -> Iterator[FieldError]:
    level, size = given.get(names.SLICE_REQUIRED_TOPOLOGY), given.get(names.SLICE_SIZE)
    at = f"{path}[{names.SLICE_SIZE}]"
    if level is not None and size is None:
        yield required(at, f"must be set when '{names.SLICE_REQUIRED_TOPOLOGY}' is specified")
    if size is None:
        return
    if level is None:
        yield forbidden(at, f"may not be set when '{names.SLICE_REQUIRED_TOPOLOGY}' is not specified")
    if not size.lstrip("-+").isdigit() or abs(int(size)) > INT32:
        yield invalid(at, size, "must be a numeric value")
    elif int(size) < 1:
        yield invalid(at, size, "must be greater than or equal to 1")
    elif count is not None and int(size) > count:
        yield invalid(at, size, f"must not be greater than pod set count {count}")


def _layers(given: dict[str, str], path: str) -> Iterator[FieldError]:
    text = given.get(names.SLICE_CONSTRAINTS)
    if text is None:
        return
    at = f"{path}[{names.SLICE_CONSTRAINTS}]"
    for key in (names.SLICE_REQUIRED_TOPOLOGY, names.SLICE_SIZE, names.POD_SET_GROUP_NAME):
        if key in given:
            yield forbidden(at, f"may not be set when '{key}' is specified")
    try:
        layers: Any = json.loads(text)
    except ValueError as problem:
        yield invalid(at, text, f"must be a valid JSON array: {problem}")
        return
    if not isinstance(layers, list) or not all(isinstance(each, dict) for each in layers):
        yield invalid(at, text, "must be a valid JSON array: not a list of objects")
        return
    if not 1 <= len(layers) <= MOST_LAYERS:
        yield invalid(at, text, f"topology constraints must contain between 1 and {MOST_LAYERS} entries")
        return
    seen: set[str] = set()
    outer: int | None = None
    for number, layer in enumerate(layers):
        level, size = str(layer.get("topology", "")), layer.get("size")
        yield from rules.errors(f"{at}[{number}].topology", level, rules.qualified_name(level))
        if level in seen:
            yield duplicate(f"{at}[{number}].topology", level)
        seen.add(level)
        if not isinstance(size, int) or size < 1:
            yield invalid(f"{at}[{number}].size", size, "must be greater than or equal to 1")
        elif outer is not None and outer % size:
            yield invalid(f"{at}[{number}].size", size, f"must evenly divide the parent layer size {outer}")
        outer = size if isinstance(size, int) and size > 0 else outer


def group_errors(templates: Sequence[tuple[Tree, str, int]]) -> list[FieldError]:
    """Return what is wrong with groups of pod sets: (template, path of its annotations, number of pods) of each."""
    groups: dict[str, list[tuple[dict[str, str], str, int]]] = {}
    for template, path, count in templates:
        given = annotations_of(template)
        name = given.get(names.POD_SET_GROUP_NAME)
        if name is not None:
            groups.setdefault(name, []).append((given, path, count))
    found: list[FieldError] = []
    for name, members in groups.items():
        at = f"{members[0][1]}[{names.POD_SET_GROUP_NAME}]"
        if len(members) != 2:
            found.append(invalid(at, name, f"can only define groups of exactly 2 pod sets, got: {len(members)} pod set(s)"))
            continue
        if all(count != 1 for _, _, count in members):
            found.append(invalid(at, name, "can only define groups where at least one pod set has only 1 replica, but all have more"))
        first, second = members[0][0], members[1][0]
        for key in (names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY):
            if first.get(key) != second.get(key):
                words = f"must specify '{names.REQUIRED_TOPOLOGY}' or '{names.PREFERRED_TOPOLOGY}' topology consistent with '{members[0][1]}'"
                found.append(invalid(members[1][1], second.get(key, ""), words))
                break
    return found
