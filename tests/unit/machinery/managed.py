"""One object under field managers, as a server would keep it: applied to, updated, decoded after each write."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.apply import ApplySchema, BuiltinApplySchema, BuiltinShapes, Reset, apply, track_update
from kubemini.machinery.schema.builtin import BuiltinSchemas

SCHEMAS = BuiltinSchemas()
SHAPES = BuiltinShapes(SCHEMAS)
MAIN = Reset("status")
STATUS = Reset("spec", "metadata.deletionTimestamp", "metadata.ownerReferences")


def builtin(group: str, version: str, kind: str) -> BuiltinApplySchema:
    """Return the apply schema of a built-in kind."""
    info = SCHEMAS.type_of(group, version, kind)
    assert info is not None
    return BuiltinApplySchema(SHAPES, {f"{group}/{version}" if group else version: info})


class Managed:
    """An object and its managers; `clock` counts seconds, one a write."""

    def __init__(self, group: str, version: str, kind: str, *, schema: ApplySchema | None = None) -> None:
        self.api_version = f"{group}/{version}" if group else version
        self.kind = kind
        self.schema = schema or builtin(group, version, kind)
        self.codec = None if schema is not None else SCHEMAS.codec(group, version, kind)
        self.live: Tree | None = None
        self.clock = 0

    def stamp(self) -> str:
        """Return the next second."""
        self.clock += 1
        return f"2026-01-01T00:{self.clock // 60:02}:{self.clock % 60:02}Z"

    def apply(self, manager: str, body: Tree, *, force: bool = False, subresource: str = "") -> Tree:
        """Apply a configuration (without apiVersion and kind) and return the object."""
        config = {"apiVersion": self.api_version, "kind": self.kind, **body}
        applied = apply(
            self.live,
            config,
            manager=manager,
            force=force,
            api_version=self.api_version,
            kind=self.kind,
            time=self.stamp(),
            schema=self.schema,
            subresource=subresource,
            reset=STATUS if subresource == "status" else MAIN,
        )
        return self._keep(applied.tree, applied.managed_fields)

    def write(self, manager: str, body: Tree, *, subresource: str = "") -> Tree:
        """Create or replace the object as a plain writer and return it."""
        new = self._decoded({"apiVersion": self.api_version, "kind": self.kind, **body})
        entries = track_update(
            self.live,
            new,
            manager=manager,
            api_version=self.api_version,
            time=self.stamp(),
            schema=self.schema,
            subresource=subresource,
            reset=STATUS if subresource == "status" else MAIN,
        )
        if self.live is not None:
            # As the server does: the main resource keeps the stored status, the status subresource the rest.
            mine, theirs = (self.live, new) if subresource == "status" else (new, self.live)
            new = {**mine, **({"status": theirs["status"]} if "status" in theirs else {})}
        return self._keep(new, entries)

    def change(self, manager: str, *, subresource: str = "", **parts: Any) -> Tree:
        """Replace top-level parts of the object as a plain writer and return it."""
        assert self.live is not None
        return self.write(manager, {**self.live, **parts}, subresource=subresource)

    def owned(self, manager: str, operation: str = "Apply", subresource: str = "") -> Any:
        """Return the fieldsV1 of a manager's entry, None without one."""
        for each in self.entries:
            if (each["manager"], each["operation"], each.get("subresource", "")) == (manager, operation, subresource):
                return each["fieldsV1"]
        return None

    @property
    def entries(self) -> list[Tree]:
        """The managedFields."""
        found: list[Tree] = ((self.live or {}).get("metadata") or {}).get("managedFields") or []
        return found

    @property
    def names(self) -> list[str]:
        """The managers in the order of their entries."""
        return [each["manager"] for each in self.entries]

    def _keep(self, tree: Tree, entries: list[Tree] | None) -> Tree:
        meta = {key: value for key, value in (tree.get("metadata") or {}).items() if key != "managedFields"}
        self.live = self._decoded({**tree, "metadata": {**meta, **({"managedFields": entries} if entries else {})}})
        return self.live

    def _decoded(self, tree: Tree) -> Tree:
        return tree if self.codec is None else self.codec.decode(tree).tree
