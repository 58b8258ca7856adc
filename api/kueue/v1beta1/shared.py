"""Parts that several Kueue kinds of v1beta1 have in common."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from kubemini.api.meta.markers import by
from kubemini.api.meta.v1 import Condition

Version: TypeAlias = Literal["kueue.x-k8s.io/v1beta1"]
Conditions: TypeAlias = Annotated[list[Condition], by("type")]
