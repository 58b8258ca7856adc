"""APIs that a controller serves itself, as an aggregated API server does: it says what there is, and answers the reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from kubemini.api.trees import Tree

GET: Final = ("get",)


@dataclass(frozen=True, slots=True)
class AggregatedResource:
    """A resource of such an API; one without `verbs` only stands above its subresources."""

    plural: str
    singular: str
    namespaced: bool
    kind: str
    verbs: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    """What can be read below an object, of the same kind."""


@dataclass(frozen=True, slots=True)
class AggregatedRequest:
    """A read of a subresource."""

    version: str
    plural: str
    namespace: str
    name: str
    subresource: str
    query: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AggregatedApi:
    """A group with its versions (the preferred one first), and who answers: `read` returns the tree or raises an `ApiStatus`."""

    group: str
    versions: tuple[str, ...]
    resources: tuple[AggregatedResource, ...]
    read: Callable[[AggregatedRequest], Tree]

    def find(self, plural: str, subresource: str) -> AggregatedResource | None:
        """Return the resource that has a subresource, or None."""
        return next((each for each in self.resources if each.plural == plural and subresource in each.subresources), None)
