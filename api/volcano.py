"""PodGroup of scheduling.volcano.sh/v1beta1, as far as LeaderWorkerSet's gang scheduling with Volcano reads and writes it.

A cluster serves it only where gang scheduling by Volcano is asked for; its own fields are many more.
"""

from __future__ import annotations

from typing import Annotated, Literal

from kubemini.api.meta.markers import IntOrStringType, absent
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import Int32
from kubemini.api.meta.v1 import ApiObject

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
