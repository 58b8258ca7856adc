"""Admission: what may change or refuse a write between decoding and the store.

Built-in plugins (`kubemini.server.plugins`), the webhooks of our own controllers and the user's webhook configurations are all
`Admission` objects in one ordered chain. Mutating ones run first, in order; then, after validation by the strategy,
every `validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubemini.api.trees import Tree
from kubemini.server.registry import Kind
from kubemini.server.strategy import WriteContext

Steps = tuple[list[Callable[["AdmissionRequest"], Tree | None]], list[Callable[["AdmissionRequest"], None]]]
"""What a kind of write goes through: those who may change it, those who may refuse it."""


@dataclass(slots=True)
class AdmissionRequest:
    """One write as admission sees it, in the storage version. `operation` is CREATE, UPDATE, DELETE or CONNECT."""

    kind: Kind
    operation: str
    namespace: str
    name: str
    obj: Tree | None
    old: Tree | None
    ctx: WriteContext
    subresource: str = ""
    options: Tree = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    """Texts for ``Warning`` headers; a plugin appends to it."""
    review: Any = None
    """The request as webhooks of our own controllers see it, made once for all of them."""
    steps: Steps | None = None
    """Who is concerned, once somebody has asked."""


class Admission:
    """One plugin or webhook. Override `mutate` (return the new tree, or None for no change) or `validate` (raise an `ApiStatus` to refuse)."""

    name = ""
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    resources: tuple[str, ...] = ()
    """Storage names (``pods``, ``jobs.batch``) this one is for; () = all."""
    subresources: tuple[str, ...] = ("",)
    """Subresources this one is for; "" is the object itself, ``*`` any."""

    @property
    def mutates(self) -> bool:
        """Whether `mutate` does anything; asked once for each kind of write."""
        return type(self).mutate is not Admission.mutate

    @property
    def validates(self) -> bool:
        """Whether `validate` does anything."""
        return type(self).validate is not Admission.validate

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return a changed object, or None to leave it."""
        return None

    def validate(self, request: AdmissionRequest) -> None:
        """Raise an `ApiStatus` where the write must not happen."""

    def read(self, request: AdmissionRequest) -> None:
        """Raise an `ApiStatus` where `mutate` cannot read the object. Asked only of one that turned out to be invalid: it is refused for this first."""


class AsyncAdmission:
    """Admission that has to wait for somebody (webhooks over HTTP, policies with remote parameters); run after the synchronous plugins."""

    def matches(self, request: AdmissionRequest) -> bool:
        """Tell whether this write concerns it; asked synchronously on every write, so it must be cheap."""
        return False

    async def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return a changed object, or None to leave it."""
        return None

    async def validate(self, request: AdmissionRequest) -> None:
        """Raise an `ApiStatus` where the write must not happen."""


class Chain:
    """The ordered plugins of a server, grouped by what they are for so that a write asks only those concerned."""

    def __init__(self, plugins: Sequence[Admission] = ()) -> None:
        self._plugins: list[Admission] = []
        self._cache: dict[tuple[str, str, str], Steps] = {}
        self.remote: list[AsyncAdmission] = []
        for plugin in plugins:
            self.add(plugin)

    def add(self, plugin: Admission) -> None:
        """Append a plugin."""
        self._plugins.append(plugin)
        self._cache.clear()

    def remove(self, plugin: Admission) -> None:
        """Take a plugin out again."""
        self._plugins.remove(plugin)
        self._cache.clear()

    def _for(self, request: AdmissionRequest) -> Steps:
        if request.steps is not None:
            return request.steps
        key = (request.kind.storage, request.operation, request.subresource)
        found = self._cache.get(key)
        if found is None:
            concerned = self._concerned(request)
            found = self._cache[key] = (
                [plugin.mutate for plugin in concerned if plugin.mutates],
                [plugin.validate for plugin in concerned if plugin.validates],
            )
        request.steps = found
        return found

    def _concerned(self, request: AdmissionRequest) -> list[Admission]:
        return [
            plugin
            for plugin in self._plugins
            if request.operation in plugin.operations
            and (not plugin.resources or request.kind.storage in plugin.resources)
            and (request.subresource in plugin.subresources or "*" in plugin.subresources)
        ]

    def mutate(self, request: AdmissionRequest) -> bool:
        """Run the mutating plugins in order; tell whether the object changed."""
        changed = False
        for mutate in self._for(request)[0]:
            new = mutate(request)
            if new is not None and new is not request.obj:
                request.obj = new
                changed = True
        return changed

    def read(self, request: AdmissionRequest) -> None:
        """Let the mutating plugins say, in order, whether they could read an invalid object at all."""
        for plugin in self._concerned(request):
            if plugin.mutates:
                plugin.read(request)

    def validate(self, request: AdmissionRequest) -> None:
        """Run the validating plugins in order."""
        for validate in self._for(request)[1]:
            validate(request)
