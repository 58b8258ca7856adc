"""What custom resources have in common: the strategy of a kind whose rules are all in its schema, and its table.

For the kinds we own and for those of CustomResourceDefinitions. Mirrors apiextensions-apiserver's ``registry/customresource``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.machinery.jsonpath import JsonPath, cell
from kubemini.server.kinds.tables.common import AGE, NAME
from kubemini.server.strategy import Column, Scale, Strategy, Table, WriteContext


class CustomStrategy(Strategy):
    """A kind whose rules are in its schema: no defaults beside the schema's, generation for everything but metadata and status."""

    has_generation = True
    unconditional_update = False
    closed_for = ""
    """``plural.group`` while the definition of the kind terminates, else ""."""

    def __init__(self, *, status: bool, scale: Scale | None = None, selectable: Iterable[str] = ()) -> None:
        self.has_status = status
        self.scale = scale
        self.fields: Mapping[str, Callable[[Tree], str]] = {path.removeprefix("."): JsonPath(path).text_of for path in selectable}
        self._aside = frozenset({"metadata", "status", "apiVersion"} if status else {"metadata", "apiVersion"})

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Refuse while the definition terminates. Raise `Forbidden`."""
        if self.closed_for:
            plural, _, group = self.closed_for.partition(".")
            why = "create not allowed while custom resource definition is terminating"
            raise Forbidden.of(plural, group, obj["metadata"].get("name", ""), why)
        return obj

    def spec_changed(self, new: Tree, old: Tree) -> bool:
        """Tell whether anything differs beside metadata, and status where that is a subresource."""
        aside = self._aside
        return any(new.get(key) != old.get(key) for key in dict.fromkeys((*new, *old)) if key not in aside)


def scale_of(spec_replicas: str, status_replicas: str, selector: str = "") -> Scale:
    """Return the scale of a kind whose paths are JSONPaths with a leading dot."""
    return Scale(spec_replicas.removeprefix("."), status_replicas.removeprefix("."), selector.removeprefix("."))


# ------------------------------------------------------------------------------------------------- tables


def custom_table(columns: Iterable[Mapping[str, Any]]) -> Table:
    """Return the table of ``additionalPrinterColumns``; Name and Age where there are none."""
    stated = [*columns] or [{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": AGE.description}]
    headers = tuple(
        Column(each["name"], each["type"], each.get("format", ""), each.get("description", ""), each.get("priority", 0)) for each in stated
    )
    cells = [(JsonPath(each["jsonPath"]), each["type"]) for each in stated]

    def row(obj: Tree, now: float) -> list[Any]:
        return [obj["metadata"].get("name", ""), *[cell(path, kind, obj, now) for path, kind in cells]]

    return Table((NAME, *headers), row)
