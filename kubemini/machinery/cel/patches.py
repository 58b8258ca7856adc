"""What patches are made of: ``Object.spec{...}`` and ``JSONPatch{...}``, and such values as JSON.

Mirrors ``apiserver/pkg/cel/mutation`` (1.36).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kubemini.machinery.cel import times
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.values import Duration, Opaque, Optional, Timestamp


class Built(Opaque):
    """An object that an expression built: its type and its fields."""

    __slots__ = ("fields", "type_name")

    def __init__(self, type_name: str, fields: dict[str, Any]) -> None:
        self.type_name = type_name
        self.fields = fields

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Built) and self.type_name == other.type_name and self.fields == other.fields

    __hash__ = None  # type: ignore[assignment]


def built(name: str, fields: Sequence[tuple[str, bool]], given: Sequence[Any]) -> Built:
    """Return an object of a type; of its fields, those told to be optional are left out where they are absent."""
    found: dict[str, Any] = {}
    for (key, maybe), value in zip(fields, given, strict=True):
        if not maybe:
            found[key] = value
        elif value.present:
            found[key] = value.value
    return Built(name, found)


def as_json(value: Any) -> Any:
    """Return a value as JSON. Raise `CelEvaluationError` for one that is none."""
    if isinstance(value, Built):
        return {key: as_json(each) for key, each in value.fields.items()}
    if isinstance(value, dict):
        if odd := next((key for key in value if not isinstance(key, str)), None):
            raise CelEvaluationError(f"map key {odd!r} is no string")
        return {key: as_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_json(each) for each in value]
    if isinstance(value, Duration):
        return times.duration_text(value)
    if isinstance(value, Timestamp):
        return times.timestamp_text(value)
    if isinstance(value, Optional):
        return as_json(value.value) if value.present else None
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, Opaque | bytes):
        raise CelEvaluationError("a value of this type cannot be part of an object")
    return value


def misnamed(value: Any, path: str = "Object") -> Iterator[str]:
    """Yield what is wrong with the types of the objects in a value: each is named after its path."""
    if isinstance(value, Built):
        if value.type_name != path:
            yield f'unexpected type name "{value.type_name}", expected "{path}", which matches field name path from root Object type'
        for key, each in value.fields.items():
            yield from misnamed(each, f"{path}.{key}")
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from misnamed(each, path)
