"""The newer dialect of events: what is one series, and when it is written."""

from __future__ import annotations

import asyncio

from kubemini import SimCluster
from kubemini.api.resources import CONFIG_MAPS, EVENTS
from kubemini.api.trees import Tree
from kubemini.runtime.recorder import SERIES_SECONDS, Recorder, shortened
from kubemini.sim.cluster import simulate


async def _seen(cluster: SimCluster) -> list[tuple[str, int | None]]:
    """Return (text, count of the series) of the events so far, in their order."""
    found = [each for each in await cluster.client.list(EVENTS) if each.get("reportingComponent") == "tester"]
    return [(each["message"], (each.get("series") or {}).get("count")) for each in sorted(found, key=lambda each: each["eventTime"])]


async def _thing(cluster: SimCluster) -> Tree:
    return await cluster.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "thing", "namespace": "default"}})


def test_words_do_not_make_another_event() -> None:
    """About one version of an object, an action and a reason are one event, whatever the text; another action, reason, type, version or relative is another."""

    async def scenario(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client, cluster.env, "tester")
        thing = await _thing(cluster)
        recorder.acted(thing, "Normal", "Deleted", "deleted a", action="Delete")
        recorder.acted(thing, "Normal", "Deleted", "deleted b", action="Delete")
        recorder.acted(thing, "Normal", "Deleted", "by hand", action="Remove")
        recorder.acted(thing, "Normal", "Gone", "gone", action="Delete")
        recorder.acted(thing, "Warning", "Deleted", "trouble", action="Delete")
        recorder.acted(thing, "Normal", "Deleted", "for another", action="Delete", related=thing)
        newer = await cluster.client.patch(CONFIG_MAPS, "thing", {"data": {"a": "b"}}, namespace="default")
        recorder.acted(newer, "Normal", "Deleted", "deleted c", action="Delete")
        await recorder.drained()
        assert sorted(await _seen(cluster)) == [
            ("by hand", None),
            ("deleted a", 2),
            ("deleted c", None),
            ("for another", None),
            ("gone", None),
            ("trouble", None),
        ]

    simulate(scenario)


def test_a_text_that_is_too_long_is_not_said() -> None:
    """The API takes 1024 bytes of text, and a refused event is not tried again; who wants to be heard shortens it."""

    async def scenario(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client, cluster.env, "tester")
        thing = await _thing(cluster)
        texts = ["a" * 1024, "b" * 1025, "é" * 513, shortened("c" * 1025)]
        for number, text in enumerate(texts):
            recorder.acted(thing, "Warning", f"Reason{number}", text, action="Try")
        await recorder.drained()
        assert sorted(text for text, _ in await _seen(cluster)) == ["a" * 1024, "c" * 1020 + " ..."]

    simulate(scenario)


def test_a_text_of_the_older_dialect_is_of_any_length() -> None:
    """The API does not limit what the older kind of event says, and nothing of it is cut."""

    async def scenario(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client, cluster.env, "tester")
        recorder.event(await _thing(cluster), "Warning", "Long", "a" * 3000)
        await recorder.drained()
        assert [text for text, _ in await _seen(cluster)] == ["a" * 3000]

    simulate(scenario)


def test_a_series_is_written_at_its_beginning_and_its_end() -> None:
    """The second time makes a series of two; further ones show when it is over, six minutes after the last."""

    async def scenario(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client, cluster.env, "tester")
        thing = await _thing(cluster)

        async def say(text: str, reason: str = "Tried") -> None:
            recorder.acted(thing, "Normal", reason, text, action="Try")
            await recorder.drained()

        for text in ("one", "two", "three", "four"):
            await say(text)
        assert await _seen(cluster) == [("one", 2)]
        await asyncio.sleep(SERIES_SECONDS + 1)
        await say("five")
        assert await _seen(cluster) == [("one", 4), ("five", None)]

    simulate(scenario)


def test_a_long_series_is_written_every_half_hour() -> None:
    """A series that goes on for longer shows how often it was by then."""

    async def scenario(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client, cluster.env, "tester")
        thing = await _thing(cluster)
        counts: list[int | None] = []
        for _ in range(9):
            recorder.acted(thing, "Normal", "Tried", "again", action="Try")
            await recorder.drained()
            counts.append((await _seen(cluster))[0][1])
            await asyncio.sleep(300)
        assert counts == [None, 2, 2, 2, 2, 2, 2, 8, 8]

    simulate(scenario)


async def _counted(cluster: SimCluster) -> list[tuple[str, int]]:
    """Return (text, count) of the events of the older dialect, by name: in the order in which they came."""
    found = [each for each in await cluster.client.list(EVENTS) if each["source"] == {"component": "tester"}]
    return [(each["message"], each["count"]) for each in sorted(found, key=lambda each: each["metadata"]["name"])]


def test_the_tenth_text_for_one_reason_is_combined_with_all_that_follow() -> None:
    """Nine texts for a reason stand for themselves; then one event has the last text and the number of them. Another reason is not touched."""

    async def scenario(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client, cluster.env, "tester")
        thing = await _thing(cluster)
        for number in range(12):
            recorder.event(thing, "Normal", "Made", f"made {number}")
        recorder.event(thing, "Normal", "Kept", "kept")
        await recorder.drained()
        assert await _counted(cluster) == [
            *((f"made {number}", 1) for number in range(9)),
            ("(combined from similar events): made 11", 3),
            ("kept", 1),
        ]
        (combined,) = (each for each in await cluster.client.list(EVENTS) if each["message"].startswith("(combined"))
        assert (combined["reportingComponent"], combined["reason"]) == ("", "Made")

    simulate(scenario)


def test_what_one_object_may_say_is_limited() -> None:
    """After 25 writes about an object the source is silent, but goes on counting; five minutes later it may write once more."""

    async def scenario(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client, cluster.env, "tester")
        thing = await _thing(cluster)
        for _ in range(30):
            recorder.event(thing, "Normal", "Tried", "again")
        await recorder.drained()
        assert await _counted(cluster) == [("again", 25)]
        await asyncio.sleep(301)
        recorder.event(thing, "Normal", "Tried", "again")
        await recorder.drained()
        assert await _counted(cluster) == [("again", 31)]

    simulate(scenario)


def test_an_event_that_expired_comes_back_with_its_count() -> None:
    """What is counted up and no longer there is made again: the count and the first time go on."""

    async def scenario(cluster: SimCluster) -> None:
        recorder = Recorder(cluster.client, cluster.env, "tester")
        thing = await _thing(cluster)
        recorder.event(thing, "Normal", "Tried", "again")
        await recorder.drained()
        (before,) = await cluster.client.list(EVENTS)
        await cluster.client.delete(EVENTS, before["metadata"]["name"], namespace="default")
        await asyncio.sleep(60)
        recorder.event(thing, "Normal", "Tried", "again")
        await recorder.drained()
        (after,) = await cluster.client.list(EVENTS)
        assert (after["metadata"]["name"], after["count"], after["firstTimestamp"]) == (before["metadata"]["name"], 2, before["firstTimestamp"])
        assert after["lastTimestamp"] > after["firstTimestamp"]

    simulate(scenario)
