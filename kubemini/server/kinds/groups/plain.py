"""A strategy made of flags and rules, for kinds that need no more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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


def twice(check: Callable[[Tree], Errors]) -> Callable[[Tree, Tree], Errors]:
    """Return the check of an update that upstream makes two times over: each fault is two causes."""

    def update(new: Tree, _old: Tree) -> Errors:
        yield from check(new)
        yield from check(new)

    return update


class PlainStrategy(Strategy):
    """The rules of a kind as values: what a valid object is (`check`), what may change (`change`), and how it behaves."""

    def __init__(
        self,
        *,
        table: Table | None = None,
        check: Callable[[Tree], Errors] = nothing,
        change: Callable[[Tree, Tree], Errors] = no_change,
        update: Callable[[Tree, Tree], Errors] | None = None,
        warn: Callable[[Tree], Iterable[str]] | None = None,
        status_check: Callable[[Tree], Errors] = nothing,
        name_rule: Callable[..., str | None] = names.dns1123_subdomain,
        status: Tree | None = None,
        generation: bool = False,
        unconditional: bool = True,
        create_on_update: bool = False,
        returns_deleted: bool = False,
        spec_keys: tuple[str, ...] = ("spec",),
        fields: Mapping[str, Callable[[Tree], str]] | None = None,
    ) -> None:
        """`update` is all that is checked of an update, instead of `check` and `change`; `warn` finds what to advise on in a new or changed object.

        `status` is the status of a new object; None = the kind has none. `spec_keys` are the fields whose change counts as a generation.
        """
        self.table = table
        self.has_status = status is not None
        self.has_generation = generation
        self.unconditional_update = unconditional
        self.create_on_update = create_on_update
        self.returns_deleted = returns_deleted
        self.fields = fields or {}
        self._check = check
        self._change = change
        self._update = update
        self._warn = warn
        self._status_check = status_check
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
        return [*self._check(new), *self._change(new, old)] if self._update is None else list(self._update(new, old))

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the status."""
        return list(self._status_check(new))

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Advise on what is legal, but odd."""
        return [] if self._warn is None else list(self._warn(new))
