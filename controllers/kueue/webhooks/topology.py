"""The topology annotations of pod templates. Mirrors ``pkg/controller/jobframework/tas_validation.go``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.topology.requests import annotations_of, topology_request
from kubemini.controllers.kueue.webhooks.numbers import FALSE, TRUE, int_fault, read_int
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, invalid_omitted, required
from kubemini.runtime.gates import FeatureGates

MOST_LAYERS = 3


def template_errors(template: Tree, path: str, gates: FeatureGates) -> list[FieldError]:
    """Return what is wrong with the topology annotations of one template; `path` is that of its metadata.annotations."""
    given = annotations_of(template)
    if not any(key.startswith("kueue.x-k8s.io/podset-") for key in given):
        return []
    return [
        *_exclusive(given, path),
        *_values(given, path),
        *_group(given, path),
        *_bool(given, path),
        *_slices(given, path),
        *_layers(given, path, gates),
    ]


def _exclusive(given: dict[str, str], path: str) -> Iterator[FieldError]:
    kinds = (names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY, names.UNCONSTRAINED_TOPOLOGY)
    if sum(key in given for key in kinds) > 1:
        listed = ", ".join(f'"{key}"' for key in kinds)
        yield invalid_omitted(path, f"must not contain more than one topology annotation: [{listed}]")


def _values(given: dict[str, str], path: str) -> Iterator[FieldError]:
    for key in (names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY, names.SLICE_REQUIRED_TOPOLOGY):
        if key in given:
            yield from rules.errors(f"{path}[{key}]", given[key], rules.qualified_name(given[key]))


def _bool(given: dict[str, str], path: str) -> Iterator[FieldError]:
    value = given.get(names.UNCONSTRAINED_TOPOLOGY)
    if value is not None and value not in (*TRUE, *FALSE):
        yield invalid(f"{path}[{names.UNCONSTRAINED_TOPOLOGY}]", value, "must be a boolean value")


def _group(given: dict[str, str], path: str) -> Iterator[FieldError]:
    value = given.get(names.POD_SET_GROUP_NAME)
    if value is None:
        return
    at = f"{path}[{names.POD_SET_GROUP_NAME}]"
    if value.isascii() and value.isdigit() and int(value) < 1 << 64:
        yield invalid(at, value, "must not be a number")
    for key in (names.SLICE_SIZE, names.SLICE_REQUIRED_TOPOLOGY):
        if key in given:
            yield forbidden(at, f"may not be set when '{key}' is specified")
    if names.REQUIRED_TOPOLOGY not in given and names.PREFERRED_TOPOLOGY not in given:
        yield forbidden(at, f"may not be set when neither '{names.PREFERRED_TOPOLOGY}' nor '{names.REQUIRED_TOPOLOGY}' is specified")


def _slices(given: dict[str, str], path: str) -> Iterator[FieldError]:
    level, size = given.get(names.SLICE_REQUIRED_TOPOLOGY), given.get(names.SLICE_SIZE)
    at = f"{path}[{names.SLICE_SIZE}]"
    if size is not None:
        number = read_int(size, bits=32)
        if number is None:
            yield invalid(at, size, "must be a numeric value")
        elif number < 1:
            yield invalid(at, size, "must be greater than or equal to 1")
    if level is not None and size is None:
        yield required(at, f"must be set when '{names.SLICE_REQUIRED_TOPOLOGY}' is specified")
    if level is None and size is not None:
        yield forbidden(at, f"may not be set when '{names.SLICE_REQUIRED_TOPOLOGY}' is not specified")


def size_errors(template: Tree, path: str, count: int) -> Iterator[FieldError]:
    """Yield slices that are larger than the `count` pods of a template."""
    given = annotations_of(template)
    size = given.get(names.SLICE_SIZE)
    if size is not None:
        number = read_int(size, bits=32)
        if number is None:
            yield invalid(f"{path}[{names.SLICE_SIZE}]", size, "must be a numeric value")
            return
        if number > count:
            yield invalid(f"{path}[{names.SLICE_SIZE}]", size, f"must not be greater than pod set count {count}")
    layers = _read_layers(given.get(names.SLICE_CONSTRAINTS, ""))
    if isinstance(layers, list) and layers and layers[0][1] > count:
        yield invalid(f"{path}[{names.SLICE_CONSTRAINTS}]", layers[0][1], f"must not be greater than pod set count {count}")


def unreadable(template: Tree) -> str:
    """Return why no topology request can be made of a template's annotations, or ""."""
    given = annotations_of(template)
    loose = given.get(names.UNCONSTRAINED_TOPOLOGY, "true")
    if names.REQUIRED_TOPOLOGY not in given and names.PREFERRED_TOPOLOGY not in given and loose not in (*TRUE, *FALSE):
        return f'strconv.ParseBool: parsing "{loose}": invalid syntax'
    if names.SLICE_CONSTRAINTS in given:
        layers = _read_layers(given[names.SLICE_CONSTRAINTS])
        if isinstance(layers, str):
            return f"failed to parse multi-layer topology constraints annotation: {layers}"
        if not 1 <= len(layers) <= MOST_LAYERS:
            return f"topology constraints must contain between 1 and {MOST_LAYERS} entries: got {len(layers)}"
        return ""
    size = given.get(names.SLICE_SIZE, "1")
    if names.SLICE_REQUIRED_TOPOLOGY in given and read_int(size, bits=32) is None:
        return int_fault(size).replace("Atoi", "ParseInt")
    return ""


def _read_layers(text: str) -> list[tuple[str, int]] | str:
    """Return (level, size) of each layer, or what is wrong with the text as JSON."""
    try:
        layers: Any = json.loads(text)
    except ValueError as problem:
        return str(problem)
    if not isinstance(layers, list):
        return f"json: cannot unmarshal {_kind(layers)} into Go value of type []v1beta2.PodsetSliceRequiredTopologyConstraint"
    found = []
    for layer in layers:
        if not isinstance(layer, dict):
            return f"json: cannot unmarshal {_kind(layer)} into Go value of type v1beta2.PodsetSliceRequiredTopologyConstraint"
        level, size = layer.get("topology", ""), layer.get("size", 0)
        if not isinstance(level, str):
            return f"json: cannot unmarshal {_kind(level)} into Go struct field PodsetSliceRequiredTopologyConstraint.topology of type string"
        if not isinstance(size, int) or isinstance(size, bool):
            return f"json: cannot unmarshal {_kind(size)} into Go struct field PodsetSliceRequiredTopologyConstraint.size of type int32"
        found.append((level, size))
    return found


def _kind(value: Any) -> str:
    """Return Go's name for a kind of JSON value."""
    if isinstance(value, float):
        return f"number {value}"
    return {bool: "bool", int: "number", str: "string", list: "array"}.get(type(value), "object")


def _layers(given: dict[str, str], path: str, gates: FeatureGates) -> Iterator[FieldError]:
    text = given.get(names.SLICE_CONSTRAINTS)
    if text is None:
        return
    at = f"{path}[{names.SLICE_CONSTRAINTS}]"
    if not gates.enabled("TASMultiLayerTopology"):
        yield forbidden(at, "the TASMultiLayerTopology feature gate must be enabled to use this annotation")
        return
    for key in (names.SLICE_REQUIRED_TOPOLOGY, names.SLICE_SIZE):
        if key in given:
            yield forbidden(at, f"may not be set when '{key}' is specified")
    if names.POD_SET_GROUP_NAME in given:
        yield forbidden(f"{path}[{names.POD_SET_GROUP_NAME}]", f"may not be set when '{names.SLICE_CONSTRAINTS}' is specified")
    layers = _read_layers(text)
    if isinstance(layers, str):
        yield invalid(at, text, f"must be a valid JSON array: {layers}")
        return
    if not 1 <= len(layers) <= MOST_LAYERS:
        yield invalid(at, text, f"topology constraints must contain between 1 and {MOST_LAYERS} entries")
        return
    for number, (level, size) in enumerate(layers):
        yield from rules.errors(f"{at}[{number}].topology", level, rules.qualified_name(level))
        if size < 1:
            yield invalid(f"{at}[{number}].size", size, "must be greater than or equal to 1")
    seen: dict[str, int] = {}
    for number, (level, _) in enumerate(layers):
        if level in seen:
            yield duplicate(f"{at}[{number}].topology", f"{level} (also at index {seen[level]})")
        seen.setdefault(level, number)
    for number, ((_, outer), (_, inner)) in enumerate(pairwise(layers), 1):
        if inner > 0 and outer % inner:
            yield invalid(f"{at}[{number}].size", inner, f"must evenly divide the parent layer size {outer}")


def group_errors(templates: Sequence[tuple[Tree, str, int]]) -> list[FieldError]:
    """Return what is wrong with groups of pod sets: (template, path of its annotations, number of pods) of each."""
    groups: dict[str, list[tuple[Tree, str, int]]] = {}
    for template, path, count in templates:
        request = topology_request(template, None) or {}
        if "podSetGroupName" in request:
            groups.setdefault(request["podSetGroupName"], []).append((request, path, count))
    found: list[FieldError] = []
    for name, members in groups.items():
        if len(members) != 2:
            words = f"can only define groups of exactly 2 pod sets, got: {len(members)} pod set(s)"
            found += [invalid(f"{path}[{names.POD_SET_GROUP_NAME}]", name, words) for _, path, _ in members]
            continue
        (first, here, count), (second, there, other) = members
        if 1 not in (count, other):
            words = (
                f"can only define groups where at least one pod set has only 1 replica, got: {count} replica(s) and {other} replica(s) in the group"
            )
            found += [invalid(f"{path}[{names.POD_SET_GROUP_NAME}]", name, words) for path in (here, there)]
        if any(first.get(key) != second.get(key) for key in ("required", "preferred")):
            words = f"must specify '{names.REQUIRED_TOPOLOGY}' or '{names.PREFERRED_TOPOLOGY}' topology consistent with"
            found += [invalid_omitted(path, f"{words} '{mate}' in group '{name}'") for path, mate in ((here, there), (there, here))]
    return found
