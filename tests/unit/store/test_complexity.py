"""What store operations cost, counted in objects looked at, not in seconds: doubling the population must not double what should stay the same."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.store import Store


def filled(count: int) -> Store:
    """Return a store with one object in ten of color red."""
    store = Store(history=16)
    table = store.table("things")
    table.add_index("color", lambda tree: (tree["metadata"]["color"],))
    for number in range(count):
        table.create(f"ns-{number % 7}/n-{number:06}", {"metadata": {"color": "red" if number % 10 == 0 else "blue"}, "number": number})
    return store


@pytest.mark.parametrize("count", [200, 400, 800])
def test_an_indexed_list_costs_its_matches(count: int) -> None:
    """A list through an index looks at the matches only."""
    table = filled(count).table("things")
    looked: list[int] = []

    def predicate(tree: dict[str, Any]) -> bool:
        looked.append(tree["number"])
        return True

    found = table.list(predicate=predicate, index=("color", "red")).records
    assert len(found) == len(looked) == count // 10


@pytest.mark.parametrize("count", [200, 400, 800])
def test_a_page_costs_its_size(count: int) -> None:
    """A page of ten looks at eleven objects, wherever it starts and however many there are."""
    table = filled(count).table("things")
    looked: list[int] = []

    def predicate(tree: dict[str, Any]) -> bool:
        looked.append(tree["number"])
        return True

    page = table.list(start="ns-3/", limit=10, predicate=predicate)
    assert len(page.records) == 10
    assert len(looked) == 11


@pytest.mark.parametrize("watchers", [1, 2, 64])
def test_a_burst_wakes_each_idle_watcher_once(watchers: int) -> None:
    """However many commits a burst has, a watcher that has not read yet is woken once."""
    store = filled(10)
    table = store.table("things")
    woken: list[int] = []
    watches = [table.watch() for _ in range(watchers)]
    for number, watch in enumerate(watches):
        watch.on_ready(lambda number=number: woken.append(number))  # type: ignore[misc]
    for number in range(50):
        table.create(f"z/{number}", {"metadata": {"color": "red"}, "number": number})
    assert sorted(woken) == list(range(watchers))
    assert all(watch.ready for watch in watches)


@pytest.mark.parametrize("count", [200, 400, 800])
def test_a_past_list_costs_the_changes_since(count: int) -> None:
    """History stays bounded by its limit, not by the population or the number of writes."""
    store = filled(count)
    table = store.table("things")
    assert table.log.end - table.log.base <= 16 + 8 + 16
    at = store.revision
    table.update("ns-0/n-000000", {"metadata": {"color": "green"}, "number": -1})
    assert len(table.list(at=at).records) == count
    assert table.get("ns-0/n-000000") is not None


def test_encoding_happens_once_per_revision() -> None:
    """Every reader of a revision gets the very same bytes."""
    table = filled(10).table("things")
    record = table.list().records[0]
    assert record.bytes is record.bytes
    change = table.log.since(table.log.base)[-1]
    assert change.new is not None
    assert change.new.bytes is table.records[change.key].bytes


def test_unchanged_parts_are_shared_between_revisions() -> None:
    """A commit copies the way to metadata.resourceVersion and shares everything else."""
    table = Store().table("things")
    spec = {"containers": [{"name": "c"}]}
    first = table.create("a/x", {"metadata": {"name": "x"}, "spec": spec})
    second = table.update("a/x", {**first.obj, "status": {"phase": "Running"}})
    assert first.obj["spec"] is second.obj["spec"] is spec
    assert first.obj["metadata"] is not second.obj["metadata"]
