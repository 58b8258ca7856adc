"""JSON as Go writes structs: fields in the order of their declaration, maps sorted. Hashes of a template and texts of refusals are made of such JSON."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Any

POD_TEMPLATE = "v1.PodTemplateSpec"
JOB_TEMPLATE = "v1.JobTemplateSpec"
CLAIM_SPEC = "v1.PersistentVolumeClaimSpec"
METADATA = "v1.ObjectMeta"

Field = tuple[str, str, str]
"""Go name, JSON name ("" of an embedded struct) and Go type."""


@lru_cache(maxsize=1)
def layout() -> dict[str, tuple[Field, ...]]:
    """Return the fields of Go's structs in the order of their declaration."""
    text = files("kubemini.api").joinpath("schemas/pod_template_layout.tsv").read_text()
    found: dict[str, tuple[Field, ...]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, *fields = line.split("\t")
            found[name] = tuple((go, json, kind) for go, json, kind in (field.split(":") for field in fields))
    return found


@lru_cache(maxsize=512)
def _fields(struct: str) -> tuple[tuple[str, str], ...]:
    """Return JSON name and type of the fields of a struct, those of embedded structs in their place."""
    found: list[tuple[str, str]] = []
    for _, json, kind in layout()[struct]:
        found += [(json, kind)] if json else _fields(kind)
    return tuple(found)


def in_order(kind: str, value: Any) -> Any:
    """Return a value of a Go type with all its keys in Go's order. Keys that the type does not know come last."""
    kind = kind.removeprefix("*")
    if isinstance(value, list):
        return [in_order(kind.removeprefix("[]"), each) for each in value]
    if not isinstance(value, dict):
        return value
    if kind not in layout() or kind.startswith("map["):
        return {key: value[key] for key in sorted(value)}
    known = {name: in_order(each, value[name]) for name, each in _fields(kind) if name in value}
    return known | {key: value[key] for key in sorted(value) if key not in known}
