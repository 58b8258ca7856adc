"""What the documents are made from: kinds as the API server describes them, seen from here only as far as needed.

`kubemini.server.registry` satisfies these protocols; machinery must not import it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

from kubemini.api.trees import Tree


class SchemaSource(Protocol):
    """A codec, of which only the schema matters here."""

    def openapi(self) -> Tree:
        """Return the OpenAPI v3 schema of the kind."""
        ...


@runtime_checkable
class Referring(Protocol):
    """A codec whose schema holds ``$ref``."""

    @property
    def definitions(self) -> Mapping[str, Tree]:
        """What the references mean, by name without ``#/definitions/``."""
        ...


class ServedVersion(Protocol):
    """One version of a kind."""

    @property
    def name(self) -> str:
        """``v1beta1``."""
        ...

    @property
    def codec(self) -> SchemaSource:
        """Where its schema comes from."""
        ...

    @property
    def served(self) -> bool:
        """Whether clients may use it."""
        ...


class ServedSubresource(Protocol):
    """One subresource."""

    @property
    def name(self) -> str:
        """``scale``."""
        ...

    @property
    def kind(self) -> str:
        """The kind of its body: ``Scale``."""
        ...

    @property
    def verbs(self) -> tuple[str, ...]:
        """What may be done with it."""
        ...

    @property
    def group(self) -> str:
        """The group of `kind` where `version` is set."""
        ...

    @property
    def version(self) -> str:
        """The version of `kind`, "" = that of the parent."""
        ...


class ServedKind(Hashable, Protocol):
    """One resource, equal only to itself."""

    @property
    def group(self) -> str:
        """The API group, "" for core."""
        ...

    @property
    def kind(self) -> str:
        """``Pod``."""
        ...

    @property
    def list_kind(self) -> str:
        """``PodList``."""
        ...

    @property
    def plural(self) -> str:
        """``pods``."""
        ...

    @property
    def namespaced(self) -> bool:
        """Whether its objects are in namespaces."""
        ...

    @property
    def custom(self) -> bool:
        """Whether it is defined by a CRD, or behaves like that."""
        ...

    @property
    def verbs(self) -> tuple[str, ...]:
        """What may be done with it."""
        ...

    @property
    def versions(self) -> Sequence[ServedVersion]:
        """Its versions."""
        ...

    @property
    def subresources(self) -> Sequence[ServedSubresource]:
        """Its subresources."""
        ...


class ServedKinds(Protocol):
    """All kinds served at a moment."""

    def __iter__(self) -> Iterator[ServedKind]:
        """Iterate over the kinds."""
        ...


def group_version_path(group: str, version: str) -> str:
    """Return how documents name a group and version: ``api/v1``, ``apis/batch/v1``."""
    return f"apis/{group}/{version}" if group else f"api/{version}"
