"""Parts that several Kueue kinds, in both served versions, have in common."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import StringConstraints

from kubemini.api.meta.markers import Rule
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import DNS_LABEL, DNS_SUBDOMAIN, Quantity

DnsName: TypeAlias = Annotated[str, StringConstraints(max_length=253, pattern=DNS_SUBDOMAIN)]
"""Name of a queue, cohort, flavor or topology."""
PodSetName: TypeAlias = Annotated[str, StringConstraints(max_length=63, pattern=DNS_LABEL)]
"""Name of a pod set."""

StopPolicy = Literal["None", "Hold", "HoldAndDrain"]

TAINT_EFFECTS = Rule(
    "self.all(x, x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
    "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
)
EXISTS_FOR_ALL = Rule(
    "self.all(x, !has(x.key) ? x.operator == 'Exists' : true)",
    "operator must be Exists when 'key' is empty, which means 'match all values and all keys'",
)
SECONDS_OF_NO_EXECUTE = Rule(
    "self.all(x, has(x.tolerationSeconds) ? x.effect == 'NoExecute' : true)",
    "effect must be 'NoExecute' when 'tolerationSeconds' is set",
)
TOLERATION_OPERATORS = Rule(
    "self.all(x, !has(x.operator) || x.operator in ['Equal', 'Exists'])",
    "supported toleration values: 'Equal'(default), 'Exists'",
)
NO_VALUE_OF_EXISTS = Rule(
    "self.all(x, has(x.operator) && x.operator == 'Exists' ? !has(x.value) : true)",
    "a value must be empty when 'operator' is 'Exists'",
)
TOLERATION_EFFECTS = Rule(
    "self.all(x, !has(x.effect) || x.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
    "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
)


class FairSharing(Model):
    """Weight in fair sharing."""

    weight: Quantity = 1
    """Share of borrowed quota relative to the others; 0 always yields."""
