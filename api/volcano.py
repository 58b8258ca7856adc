"""PodGroup of scheduling.volcano.sh/v1beta1, as far as LeaderWorkerSet's gang scheduling with Volcano reads and writes it.

A cluster serves it only where gang scheduling by Volcano is asked for (LWS's ``Configuration``), or where somebody installs Volcano's own definition. Its own
fields are many more: they are kept as they come.
"""

from __future__ import annotations

from typing import Annotated, Literal

from kubemini.api.meta.markers import IntOrStringType, absent
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32
from kubemini.api.meta.v1 import ApiObject
from kubemini.api.trees import Tree

_Resource = Annotated[int | str, IntOrStringType()]


class PodGroupSpec(Model):
    """What must be schedulable together."""

    min_member: Int32 | None = None
    """Pods that must be placed before any of them starts."""
    min_resources: dict[str, _Resource] = absent(dict)
    """Resources that the whole group needs."""
    queue: str | None = None
    """Queue that the group is charged to."""


class PodGroupStatus(Model):
    """How far the group is."""

    phase: str | None = None
    """Pending, Inqueue, Running or Unknown."""
    running: Int32 = absent(0)
    """Pods that run."""


class PodGroup(ApiObject):
    """Pods that are scheduled together or not at all."""

    api_version: Literal["scheduling.volcano.sh/v1beta1"] = "scheduling.volcano.sh/v1beta1"
    kind: Literal["PodGroup"] = "PodGroup"
    spec: PodGroupSpec = absent(PodGroupSpec)
    """What must be schedulable together."""
    status: PodGroupStatus = absent(PodGroupStatus)
    """How far the group is."""


def pod_group_definition() -> Tree:
    """Return the CustomResourceDefinition of PodGroups."""
    from kubemini.api.openapi import structural_schema

    schema = structural_schema(PodGroup)
    parts: Tree = {name: {**schema["properties"][name], "x-kubernetes-preserve-unknown-fields": True} for name in ("spec", "status")}
    version: Tree = {
        "name": "v1beta1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "description": schema["description"], "properties": parts}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [
            {"name": "STATUS", "type": "string", "jsonPath": ".status.phase"},
            {"name": "minMember", "type": "integer", "jsonPath": ".spec.minMember"},
            {"name": "AGE", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    names = {"kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup", "shortNames": ["pg"]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "podgroups.scheduling.volcano.sh"},
        "spec": {"group": "scheduling.volcano.sh", "names": names, "scope": "Namespaced", "versions": [version]},
    }
