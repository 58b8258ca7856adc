"""One revision of one object: the immutable tree and, once somebody asks, its encoded bytes."""

from __future__ import annotations

from typing import Any

import orjson

Tree = dict[str, Any]


class Record:
    """A committed tree. `create_revision` is the revision of its first commit, `revision` of this one."""

    __slots__ = ("_bytes", "create_revision", "fingerprint", "key", "obj", "revision")

    def __init__(self, key: str, obj: Tree, revision: int, create_revision: int) -> None:
        self.key = key
        self.obj = obj
        self.revision = revision
        self.create_revision = create_revision
        self._bytes: bytes | None = None
        self.fingerprint = 0

    @property
    def bytes(self) -> bytes:
        """The JSON encoding; computed once per revision and shared by every reader."""
        encoded = self._bytes
        if encoded is None:
            encoded = self._bytes = orjson.dumps(self.obj)
        return encoded

    def stamped(self, revision: int) -> Tree:
        """Return the tree with another resourceVersion (a DELETED event shows the last state at the deletion's revision)."""
        return {**self.obj, "metadata": {**self.obj["metadata"], "resourceVersion": str(revision)}}

    def __repr__(self) -> str:
        return f"Record({self.key!r}, revision={self.revision})"
