"""Shared types of meta/v1: object metadata, conditions, label selectors, and the base of all kinds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from annotated_types import Ge, MaxLen
from pydantic import InstanceOf, StringConstraints

from kubemini.api.meta.markers import ATOMIC, absent
from kubemini.api.meta.model import Model
from kubemini.api.meta.types import LABEL_KEY, Int64, Time
from kubemini.api.trees import Tree

Status = Literal["True", "False", "Unknown"]


class OwnerReference(Model):
    """An object that this one belongs to."""

    api_version: str
    """Group and version of the owner."""
    kind: str
    """Kind of the owner."""
    name: str
    """Name of the owner."""
    uid: str
    """UID of the owner."""
    controller: bool | None = None
    """Whether the owner manages this object; at most one owner does."""
    block_owner_deletion: bool | None = None
    """Whether a foreground deletion of the owner waits for this object."""


class ObjectMeta(Model):
    """What every stored object carries: names, labels, owners, and the server's bookkeeping."""

    name: str | None = None
    """Unique name within the namespace and resource."""
    generate_name: str | None = None
    """Prefix from which the server makes a unique name when none is given."""
    namespace: str | None = None
    """Namespace, empty for cluster-scoped objects."""
    labels: dict[str, str] = absent(dict)
    """Identifying key/value pairs that selectors can ask for."""
    annotations: dict[str, str] = absent(dict)
    """Key/value pairs for tools, not selectable."""
    owner_references: list[OwnerReference] = absent(list)
    """Objects this one belongs to; it is collected when all are gone."""
    finalizers: list[str] = absent(list)
    """Names of those who must act before the object goes away."""
    uid: str | None = None
    """Identity over all time, given by the server."""
    resource_version: str | None = None
    """Opaque revision of the last write, for concurrency control and watches."""
    generation: Int64 | None = None
    """Counter of changes to the desired state."""
    creation_timestamp: Time | None = None
    """When the server stored it first."""
    deletion_timestamp: Time | None = None
    """When it is to be gone; set by a graceful deletion."""
    deletion_grace_period_seconds: Int64 | None = None
    """Seconds that it has to end in order once deleted."""
    managed_fields: list[InstanceOf[dict[str, Any]]] = absent(list)
    """Who set which fields, kept by the server for server-side apply."""
    self_link: str | None = None
    """Unused; kept because old objects carry it."""


class Condition(Model):
    """One aspect of the observed state."""

    type: Annotated[str, StringConstraints(max_length=316, pattern=LABEL_KEY)]
    """Name of the aspect, unique in the list."""
    status: Status
    """Whether it holds."""
    observed_generation: Annotated[Int64, Ge(0)] | None = None
    """The generation of the object that was looked at."""
    last_transition_time: Time
    """When the status changed last."""
    reason: Annotated[str, StringConstraints(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """Machine-readable cause of the last change."""
    message: Annotated[str, MaxLen(32768)]
    """Explanation for people."""


class LabelSelectorRequirement(Model):
    """One demand on the labels of an object."""

    key: str
    """Label key in question."""
    operator: str
    """In, NotIn, Exists or DoesNotExist."""
    values: Annotated[list[str], ATOMIC] = absent(list)
    """Values for In and NotIn, empty for the other operators."""


class LabelSelector(Model):
    """A set of objects chosen by labels; all demands must hold, and none means every object."""

    atomic: ClassVar = True

    match_labels: dict[str, str] = absent(dict)
    """Labels that an object must have with exactly these values."""
    match_expressions: Annotated[list[LabelSelectorRequirement], ATOMIC] = absent(list)
    """Further demands on labels."""


class ApiObject(Model):
    """A kind: what can be sent to the API server. Subclasses give `api_version` and `kind` their only value."""

    api_version: str
    """Group and version of this representation."""
    kind: str
    """Kind of this object."""
    metadata: ObjectMeta = absent(ObjectMeta)
    """Standard object metadata."""

    def to_tree(self) -> Tree:
        """Return the JSON tree of what was set, with apiVersion and kind."""
        return {"apiVersion": self.api_version, "kind": self.kind, **super().to_tree()}


def find_condition(conditions: Sequence[Condition], type: str) -> Condition | None:
    """Return the condition of a type, or None."""
    return next((each for each in conditions if each.type == type), None)
