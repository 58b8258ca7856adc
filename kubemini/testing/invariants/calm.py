"""That a cluster is calm: controllers do not write the same over and over."""

from __future__ import annotations

from collections.abc import Iterable

from kubemini.api.resources import CRON_JOBS
from kubemini.store import Change
from kubemini.testing.invariants.base import View


class Calm:
    """No object is written, and no owner given children, over and over: a life of some pods needs some hundred writes."""

    name = "calm"

    def __init__(self, writes: int = 250, children: int = 80) -> None:
        self._writes: dict[tuple[str, str], int] = {}
        self._children: dict[str, int] = {}
        self._limits = writes, children

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Count a write, and the children of an owner."""
        if table.startswith(("events", "leases")) or change.new is None:
            return
        key = (table, change.key)
        if table == CRON_JOBS.storage:  # it works by the clock
            return
        self._writes[key] = self._writes.get(key, 0) + 1
        if self._writes[key] > self._limits[0]:
            yield f"{change.key} was written {self._writes[key]} times"
        if change.old is None:
            for reference in change.new.obj["metadata"].get("ownerReferences") or ():
                if reference["kind"] == "CronJob":  # it is meant to
                    continue
                uid = reference["uid"]
                self._children[uid] = self._children.get(uid, 0) + 1
                if self._children[uid] > self._limits[1]:
                    yield f"{reference['kind']} {reference['name']} has had {self._children[uid]} children"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()
