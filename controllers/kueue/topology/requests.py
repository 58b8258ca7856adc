"""What pods ask of the topology: from annotations of a pod template to ``podSets[].topologyRequest``."""

from __future__ import annotations

import json
from contextlib import suppress

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.webhooks.numbers import FALSE, TRUE

ASKING = (names.REQUIRED_TOPOLOGY, names.PREFERRED_TOPOLOGY, names.UNCONSTRAINED_TOPOLOGY, names.SLICE_REQUIRED_TOPOLOGY, names.SLICE_CONSTRAINTS)
"""Annotations that make a pod one that is placed by topology."""


def annotations_of(template: Tree) -> dict[str, str]:
    """Return the annotations of a template or pod."""
    found: dict[str, str] = (template.get("metadata") or {}).get("annotations") or {}
    return found


def topology_request(template: Tree, index_label: str | None, *, sub_group: str | None = None, sub_groups: int | None = None) -> Tree | None:
    """Return the topology request of a pod set, or None where neither annotations nor the kind of job give one."""
    given = annotations_of(template)
    request: Tree = {}
    if names.REQUIRED_TOPOLOGY in given:
        request["required"] = given[names.REQUIRED_TOPOLOGY]
    elif names.PREFERRED_TOPOLOGY in given:
        request["preferred"] = given[names.PREFERRED_TOPOLOGY]
    elif given.get(names.UNCONSTRAINED_TOPOLOGY) in (*TRUE, *FALSE):
        request["unconstrained"] = given[names.UNCONSTRAINED_TOPOLOGY] in TRUE
    if names.SLICE_REQUIRED_TOPOLOGY in given and given.get(names.SLICE_SIZE, "").isdigit():
        request["podSetSliceRequiredTopology"] = given[names.SLICE_REQUIRED_TOPOLOGY]
        request["podSetSliceSize"] = int(given[names.SLICE_SIZE])
    if names.SLICE_CONSTRAINTS in given:
        with suppress(ValueError):
            request["podsetSliceRequiredTopologyConstraints"] = json.loads(given[names.SLICE_CONSTRAINTS])
    if names.POD_SET_GROUP_NAME in given and ("required" in request or "preferred" in request):
        request["podSetGroupName"] = given[names.POD_SET_GROUP_NAME]
    if index_label is not None:
        request["podIndexLabel"] = index_label
    if sub_group is not None:
        request["subGroupIndexLabel"] = sub_group
        request["subGroupCount"] = sub_groups
    return request or None


def asks(request: Tree | None) -> bool:
    """Tell whether a topology request asks for anything (an index label alone does not)."""
    if not request:
        return False
    return any(
        key in request for key in ("required", "preferred", "unconstrained", "podSetSliceRequiredTopology", "podsetSliceRequiredTopologyConstraints")
    )
