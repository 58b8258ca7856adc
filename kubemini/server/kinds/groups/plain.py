"""A strategy made of flags and rules, for kinds that need no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.strategy import Strategy, Table, WriteContext


def nothing(_new: Tree) -> Errors:
    """Check nothing."""
    yield from ()


def no_change(_new: Tree, _old: Tree) -> Errors:
    """Allow every change."""
    yield from ()


class PlainStrategy(Strategy):
    """The rules of a kind as values: what a valid object is (`check`), what may change (`change`), and how it behaves."""

    def __init__(
        self,
        *,
        table: Table | None = None,
        check: Callable[[Tree], Errors] = nothing,
        change: Callable[[Tree, Tree], Errors] = no_change,
        name_rule: Callable[..., str | None] = names.dns1123_subdomain,
        status: Tree | None = None,
        generation: bool = False,
        unconditional: bool = True,
        create_on_update: bool = False,
        returns_deleted: bool = False,
        spec_keys: tuple[str, ...] = ("spec",),
        fields: Mapping[str, Callable[[Tree], str]] | None = None,
    ) -> None:
        """`status` is the status of a new object; None = the kind has none. `spec_keys` are the fields whose change counts as a generation."""
        self.table = table
        self.has_status = status is not None
        self.has_generation = generation
        self.unconditional_update = unconditional
        self.create_on_update = create_on_update
        self.returns_deleted = returns_deleted
        self.fields = fields or {}
        self._check = check
        self._change = change
        self._name_rule = name_rule
        self._status: Any = status
        self._spec_keys = spec_keys

    def validate_name(self, name: str, *, prefix: bool = False) -> str | None:
        """Ask the kind's rule."""
        return self._name_rule(name, prefix=prefix)

    def initial_status(self, obj: Tree) -> Tree | None:
        """Return the empty status: an empty object where nothing is known yet, as upstream prints one."""
        found: Tree | None = self._status
        return found

    def spec_changed(self, new: Tree, old: Tree) -> bool:
        """Compare the fields that make up the spec."""
        return any(new.get(key) != old.get(key) for key in self._spec_keys)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the object."""
        return list(self._check(obj))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the object and the change."""
        return [*self._check(new), *self._change(new, old)]
