"""The trace of a run: one line per commit, the same bytes for the same seed in any process."""

from __future__ import annotations

from hashlib import blake2b

import orjson

from kubemini.runtime.env import Env
from kubemini.store import Change, Store


class Trace:
    """Records every commit of a store: virtual time, revision, verb, table, key and a digest of the object."""

    def __init__(self, store: Store, env: Env) -> None:
        self._env = env
        self.lines: list[bytes] = []
        before = store.observer

        def observe(table: str, change: Change) -> None:
            if before is not None:
                before(table, change)
            self._record(table, change)

        store.observer = observe

    def _record(self, table: str, change: Change) -> None:
        self.lines.append(line(self._env.now(), table, change))

    @property
    def bytes(self) -> bytes:
        """The whole trace."""
        return b"\n".join(self.lines)


def line(now: float, table: str, change: Change) -> bytes:
    """Return the line of a commit."""
    body = orjson.dumps(change.new.obj) if change.new is not None else b""
    digest = blake2b(body, digest_size=8).hexdigest()
    return f"{now:.6f} {change.revision} {verb(change)} {table} {change.key} {digest}".encode()


def verb(change: Change) -> str:
    """Return what a commit did: create, update or delete."""
    return "create" if change.old is None else "update" if change.new is not None else "delete"
