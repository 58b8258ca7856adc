"""The store beside a naive model: every interleaving of writes, watches, slow watchers, compaction and resumption.

The catalogue is etcd's own table of watch bugs: lost, duplicated and reordered events, progress that runs ahead, deletions dropped by compaction, watches opened at
the compacted revision, watches in the future.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from kubemini.store import Compacted, FutureRevision, KeyExists, KeyMissing, RevisionMismatch, Store, Watch

KEYS = st.sampled_from(["a/x", "a/y", "a-b/x", "b/x", "b/y"])
LABELS = st.sampled_from(["", "red", "blue"])
PREFIXES = st.sampled_from(["", "a/", "b/"])


def obj(label: str, payload: int) -> dict[str, Any]:
    """Return an object with one label and a payload."""
    return {"metadata": {"labels": {"color": label} if label else {}}, "payload": payload}


def color(tree: dict[str, Any]) -> str:
    """Return the label."""
    found: str = tree["metadata"]["labels"].get("color", "")
    return found


@dataclass
class ModelWatch:
    """What a watch should deliver, computed from the whole history."""

    watch: Watch
    since: int
    prefix: str
    label: str
    seen: list[tuple[str, str, int]] = field(default_factory=list)
    lost: bool = False


class StoreMachine(RuleBasedStateMachine):
    """The real store beside a list of all changes ever made."""

    watches = Bundle("watches")

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(history=6, debug=True)
        self.table = self.store.table("things")
        self.other = self.store.table("others")
        self.table.add_index("color", lambda tree: (color(tree),))
        self.live: dict[str, tuple[dict[str, Any], int]] = {}
        self.history: list[tuple[int, str, dict[str, Any] | None, dict[str, Any] | None]] = []
        self.first = self.store.revision
        self.payload = 0

    def _next(self) -> int:
        self.payload += 1
        return self.payload

    def _log(self, key: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        self.history.append((self.store.revision, key, old, new))

    # ------------------------------------------------------------------ writes

    @rule(key=KEYS, label=LABELS)
    def create(self, key: str, label: str) -> None:
        """A create succeeds exactly when the key is free."""
        tree = obj(label, self._next())
        if key in self.live:
            with pytest.raises(KeyExists):
                self.table.create(key, tree)
            return
        before = self.store.revision
        record = self.table.create(key, tree)
        assert record.revision == self.store.revision == before + 1
        self.live[key] = (record.obj, record.revision)
        self._log(key, None, record.obj)

    @rule(key=KEYS, label=LABELS, stale=st.booleans())
    def update(self, key: str, label: str, *, stale: bool) -> None:
        """An update needs a live key and the revision that it names."""
        tree = obj(label, self._next())
        if key not in self.live:
            with pytest.raises(KeyMissing):
                self.table.update(key, tree)
            return
        old, revision = self.live[key]
        before = self.store.revision
        if stale:
            with pytest.raises(RevisionMismatch):
                self.table.update(key, tree, revision - 1)
            assert self.store.revision == before
            return
        record = self.table.update(key, tree, revision)
        self.live[key] = (record.obj, record.revision)
        self._log(key, old, record.obj)

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        """A deletion is a revision of its own and shows the last state."""
        if key not in self.live:
            with pytest.raises(KeyMissing):
                self.table.delete(key)
            return
        old, _ = self.live.pop(key)
        gone = self.table.delete(key)
        assert gone.revision == self.store.revision
        assert gone.obj["payload"] == old["payload"]
        assert gone.obj["metadata"]["resourceVersion"] == str(gone.revision)
        self._log(key, old, None)

    @rule()
    def write_elsewhere(self) -> None:
        """Other tables share the counter and disturb nothing."""
        self.other.create(f"o/{self._next()}", obj("", 0))

    @rule(back=st.integers(0, 5))
    def compact(self, back: int) -> None:
        """History up to a revision is forgotten; the live objects stay."""
        self.store.compact(max(self.first, self.store.revision - back))

    # ------------------------------------------------------------------ watches

    @rule(target=watches, back=st.integers(-2, 8), prefix=PREFIXES, label=LABELS)
    def open(self, back: int, prefix: str, label: str) -> ModelWatch | None:
        """A watch opens at any revision that is not compacted, in the future too; an older one is refused, never silently moved."""
        since = self.store.revision - back
        predicate = (lambda tree: color(tree) == label) if label else None
        try:
            watch = self.table.watch(since, prefix=prefix, predicate=predicate)
        except Compacted as gone:
            assert since < self.table.log.compacted
            assert gone.oldest == self.table.log.compacted + 1  # noqa: PT017  both outcomes are right, each in its case
            return None
        assert since >= self.table.log.compacted or since > self.store.revision
        return ModelWatch(watch, since, prefix, label)

    @rule(opened=watches, limit=st.sampled_from([0, 1, 2]))
    def poll(self, opened: ModelWatch | None, limit: int) -> None:
        """What was delivered so far is a prefix of what the whole history says, in order, each once."""
        if opened is None or opened.lost:
            return
        try:
            events = opened.watch.poll(limit)
        except Compacted:
            opened.lost = True
            return
        opened.seen += [(event.type, event.record.key, event.record.revision) for event in events]
        wanted = self.expected(opened)
        assert opened.seen == wanted[: len(opened.seen)]
        # Progress never runs ahead of what was delivered
        assert all(revision > opened.watch.revision for _, _, revision in wanted[len(opened.seen) :])
        if not opened.watch.ready:
            assert opened.seen == wanted

    @rule(opened=consumes(watches))
    def close(self, opened: ModelWatch | None) -> None:
        """A closed watch is never called back."""
        if opened is not None:
            opened.watch.on_ready(lambda: None) if not opened.watch.ready else None
            opened.watch.close()

    def expected(self, opened: ModelWatch) -> list[tuple[str, str, int]]:
        """Return the events of the whole history for a watch, by the definition of selector transitions."""
        found = []
        for revision, key, old, new in self.history:
            if revision <= opened.since or not key.startswith(opened.prefix):
                continue
            before = old is not None and (not opened.label or color(old) == opened.label)
            after = new is not None and (not opened.label or color(new) == opened.label)
            if after:
                found.append(("MODIFIED" if before else "ADDED", key, revision))
            elif before:
                found.append(("DELETED", key, revision))
        return found

    # ------------------------------------------------------------------ reads

    @rule(prefix=PREFIXES, label=LABELS, limit=st.integers(1, 3))
    def page_through(self, prefix: str, label: str, limit: int) -> None:
        """The pages of a limited list are the unlimited list, whatever is written between them."""
        at = self.store.revision
        predicate = (lambda tree: color(tree) == label) if label else None
        index = ("color", label) if label else None
        whole = [record.key for record in self.table.list(prefix, predicate=predicate, index=index).records]
        assert whole == sorted(key for key, (tree, _) in self.live.items() if key.startswith(prefix) and (not label or color(tree) == label))
        collected: list[str] = []
        start = ""
        for turn in range(8):
            try:
                page = self.table.list(prefix, start=start, limit=limit, predicate=predicate, at=at)
            except Compacted:
                assert at < self.table.log.compacted
                return
            collected += [record.key for record in page.records]
            if not page.next_key:
                break
            start = page.next_key
            self.other.create(f"p/{self._next()}", obj("", turn))
            if turn == 0 and "a/x" in self.live:
                self.delete("a/x")
        assert collected == whole

    @rule(back=st.integers(0, 6))
    def past(self, back: int) -> None:
        """A list at a past revision is the state of that time."""
        at = self.store.revision - back
        if at < self.first:
            return
        try:
            records = self.table.list(at=at).records
        except Compacted:
            assert at < self.table.log.compacted
            return
        state: dict[str, int] = {}
        for revision, key, _, new in self.history:
            if revision <= at:
                if new is None:
                    state.pop(key, None)
                else:
                    state[key] = new["payload"]
        assert {record.key: record.obj["payload"] for record in records} == state
        assert [record.key for record in records] == sorted(state)

    @rule()
    def future(self) -> None:
        """A list in the future is refused."""
        with pytest.raises(FutureRevision):
            self.table.list(at=self.store.revision + 1)

    @invariant()
    def sound(self) -> None:
        """The store's own checks hold after every step."""
        self.store.check()


TestStore = StoreMachine.TestCase


def test_mutation_is_noticed() -> None:
    """The debug mode names a tree that was mutated after its commit."""
    store = Store(debug=True)
    record = store.table("things").create("a/x", obj("red", 1))
    record.obj["payload"] = 2
    with pytest.raises(AssertionError, match=r"a/x: the tree of revision \d+ was mutated"):
        store.check()
