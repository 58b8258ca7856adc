"""What custom resources have in common: the strategy of a kind whose rules are all in its schema, and its table.

For the kinds we own and for those of CustomResourceDefinitions. Mirrors apiextensions-apiserver's ``registry/customresource``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery import jsonpath
from kubemini.machinery.human import human_duration
from kubemini.runtime.env import from_stamp
from kubemini.server.kinds.tables.common import AGE, NAME
from kubemini.server.strategy import Column, Scale, Strategy, Table


class CustomStrategy(Strategy):
    """A kind whose rules are in its schema: no defaults beside the schema's, generation for everything but metadata and status."""

    has_generation = True
    unconditional_update = False

    def __init__(self, *, status: bool, scale: Scale | None = None, selectable: Iterable[str] = ()) -> None:
        self.has_status = status
        self.scale = scale
        self.fields: Mapping[str, Callable[[Tree], str]] = {path.removeprefix("."): field_text(path) for path in selectable}
        self._aside = frozenset({"metadata", "status", "apiVersion"} if status else {"metadata", "apiVersion"})

    def spec_changed(self, new: Tree, old: Tree) -> bool:
        """Tell whether anything differs beside metadata, and status where that is a subresource."""
        aside = self._aside
        return any(new.get(key) != old.get(key) for key in dict.fromkeys((*new, *old)) if key not in aside)


def scale_of(spec_replicas: str, status_replicas: str, selector: str = "") -> Scale:
    """Return the scale of a kind whose paths are JSONPaths with a leading dot."""
    return Scale(spec_replicas.removeprefix("."), status_replicas.removeprefix("."), selector.removeprefix("."))


def field_text(path: str) -> Callable[[Tree], str]:
    """Return the getter of a selectable field: strings, booleans and numbers as text, "" for what is absent."""

    def text(tree: Tree) -> str:
        value = jsonpath.first(tree, path)
        return "" if value is None else printed(value)

    return text


# ------------------------------------------------------------------------------------------------- tables


def custom_table(columns: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table of ``additionalPrinterColumns``; Name and Age where there are none."""
    stated = [*columns] or [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": AGE.description}]
    headers = tuple(
        Column(each["name"], each["type"], each.get("format", ""), each.get("description", ""), each.get("priority", 0)) for each in stated
    )
    cells = [(each["type"], jsonpath.compiled(each["jsonPath"])) for each in stated]

    def row(obj: Tree, now: float) -> list[Any]:
        found = [obj["metadata"].get("name", "")]
        for kind, find in cells:
            values = find(obj)
            found.append(_cell(kind, values[0], now) if values else None)
        return found

    return Table((NAME, *headers), row)


def _cell(kind: str, value: Any, now: float) -> Any:
    """Return a value as a cell of a column of some type; None where it does not fit."""
    if kind == "string":
        return printed(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return int(value) if number else None
    if kind == "number":
        return float(value) if number else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "date" and isinstance(value, str):
        try:
            return human_duration(now - from_stamp(value))
        except ValueError:
            return "<invalid>"
    return None


def printed(value: Any) -> str:
    """Return a value as JSONPath prints it: texts and numbers bare, lists and objects as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    return orjson.dumps(value).decode()
