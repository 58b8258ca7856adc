"""The reference of an AdmissionCheck to its configuration."""

from __future__ import annotations

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree


def parameters_problem(parameters: Tree | None, config: Resource) -> str:
    """Return what is wrong with the reference of a check to a configuration of this kind, or ""."""
    if parameters is None:
        return "missing parameters reference"
    for what, field, wanted in (("group", "apiGroup", config.group), ("kind", "kind", config.kind)):
        if parameters.get(field) != wanted:
            return f'wrong {what} "{parameters.get(field, "")}", expecting "{wanted}": bad parameters reference'
    return ""
