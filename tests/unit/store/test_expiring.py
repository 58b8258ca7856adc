"""Records that live for a while after their last write, and the events that do."""

from __future__ import annotations

from kubemini.api.resources import EVENTS
from kubemini.serving import ServedCluster
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.store import ExpiringTable, Store, Watch


class Timed:
    """A table whose records live ten seconds, and its clock."""

    def __init__(self) -> None:
        self.now = 0.0
        self.store = Store()
        self.table = ExpiringTable(self.store, "events", 10.0, lambda: self.now)

    def put(self, key: str) -> None:
        """Write a record."""
        obj = {"metadata": {"name": key}}
        if self.table.records.get(key) is None:
            self.table.create(key, obj)
        else:
            self.table.update(key, obj)


def said(watch: Watch) -> list[tuple[str, str, int]]:
    """Return what a watch delivers: type, name, revision."""
    return [(each.type, each.record.key, each.record.revision) for each in watch.poll()]


def test_a_record_goes_a_while_after_its_last_write() -> None:
    """Each write begins the time anew; what is over is found by no read."""
    timed = Timed()
    timed.put("a")
    timed.now = 6
    timed.put("b")
    timed.put("a")
    timed.now = 15.9
    assert [record.key for record in timed.table.list().records] == ["a", "b"]
    timed.put("b")
    timed.now = 16
    assert timed.table.get("a") is None
    assert [record.key for record in timed.table.values()] == ["b"]
    assert len(timed.table) == 1
    timed.table.check()


def test_watchers_hear_of_it_as_of_a_deletion() -> None:
    """The end of a record is a deletion with a revision of its own, whoever brings it to light."""
    timed = Timed()
    timed.put("a")
    watch = timed.table.watch()
    timed.now = 10
    assert timed.table.due == 10
    timed.table.expire()
    assert said(watch) == [("DELETED", "a", timed.store.revision)]
    assert timed.table.due is None


def test_a_writer_may_use_a_name_again() -> None:
    """A name is free once its record is over."""
    timed = Timed()
    timed.put("a")
    timed.now = 10
    timed.table.create("a", {"metadata": {"name": "a"}})
    assert len(timed.table) == 1


def test_events_of_a_simulation_live_an_hour() -> None:
    """What was said is forgotten an hour later, without a timer that would keep a cluster from coming to rest."""

    async def scenario(cluster: SimCluster) -> tuple[int, bool, int]:
        await cluster.settle()
        reference = {"kind": "Pod", "namespace": "default", "name": "p"}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "involvedObject": reference}
        await cluster.client.create(EVENTS, event)
        before = len(await cluster.client.list(EVENTS, "default"))
        rests = await cluster.settle()
        await cluster.env.sleep(3600)
        return before, rests, len(await cluster.client.list(EVENTS, "default"))

    assert simulate(scenario, controllers=["namespaces"]) == (1, True, 0)


async def test_a_served_cluster_tells_watchers_in_time() -> None:
    """Nobody has to touch events for a watcher to hear that one is over."""
    async with ServedCluster(tls=False, controllers="namespaces", seed=1, event_ttl=0.01) as cluster:
        watch = cluster.events.watch()
        reference = {"kind": "Namespace", "name": "default"}
        event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "involvedObject": reference}
        await cluster.client.create(EVENTS, event)
        await cluster.wait("event/e", "delete")
        assert [each.type for each in watch.poll()] == ["ADDED", "DELETED"]
