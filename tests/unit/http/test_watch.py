"""Watches over HTTP: where they start, what they send, how they end."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import httpx
import pytest

from kubemini.api.resources import CONFIG_MAPS
from kubemini.serving import ServedCluster

PATH = "/api/v1/namespaces/default/configmaps"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def config_map(name: str, **labels: str) -> dict[str, Any]:
    """Return a ConfigMap of the default namespace."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", "labels": labels}}


class Watched:
    """The events of a watch, one at a time."""

    def __init__(self, lines: AsyncIterator[str]) -> None:
        self._lines = lines

    async def next(self) -> tuple[str, dict[str, Any]]:
        """Return type and object of the next event."""
        event = json.loads(await anext(self._lines))
        return event["type"], event["object"]

    async def names(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        return [(kind, obj["metadata"].get("name", "")) for kind, obj in [await self.next() for _ in range(count)]]

    async def ended(self) -> bool:
        """Tell whether the stream ends here."""
        return await anext(self._lines, None) is None


async def test_initial_state_then_changes(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """Without a resourceVersion a watch tells of what is there, then of what happens."""
    await served.client.create(CONFIG_MAPS, config_map("a", x="1"))
    async with http.stream("GET", PATH, params={"watch": "true", "labelSelector": "x"}) as answer:
        watched = Watched(answer.aiter_lines())
        assert await watched.names(1) == [("ADDED", "a")]
        await served.client.create(CONFIG_MAPS, config_map("b", x="1"))
        await served.client.delete(CONFIG_MAPS, "a", namespace="default")
        assert await watched.names(2) == [("ADDED", "b"), ("DELETED", "a")]


async def test_leaving_a_selection_is_a_deletion(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """An object that a selector no longer takes is DELETED, in its previous state at the revision of the change; one that it takes again is ADDED."""
    await served.client.create(CONFIG_MAPS, config_map("a", x="1"))
    async with http.stream("GET", PATH, params={"watch": "1", "labelSelector": "x=1"}) as answer:
        watched = Watched(answer.aiter_lines())
        await watched.next()
        gone = await served.client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "2"}}}, namespace="default")
        kind, obj = await watched.next()
        assert (kind, obj["metadata"]["labels"], obj["metadata"]["resourceVersion"]) == ("DELETED", {"x": "1"}, gone["metadata"]["resourceVersion"])
        await served.client.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "1"}}}, namespace="default")
        assert await watched.names(1) == [("ADDED", "a")]


async def test_watch_list(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """An informer's watch gets what is there, then the bookmark that marks the end of it, though nothing is there."""
    query = {
        "watch": "true",
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "labelSelector": "x",
    }
    async with http.stream("GET", PATH, params=query) as answer:
        kind, obj = await Watched(answer.aiter_lines()).next()
    assert (kind, obj["kind"], obj["apiVersion"]) == ("BOOKMARK", "ConfigMap", "v1")
    assert obj["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert obj["metadata"]["resourceVersion"] == str(served.store.revision)


async def test_resumption_misses_nothing(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """A watch from the revision of a list tells of everything since, and of nothing before."""
    await served.client.create(CONFIG_MAPS, config_map("a"))
    revision = (await http.get(PATH)).json()["metadata"]["resourceVersion"]
    for name in ("b", "c"):
        await served.client.create(CONFIG_MAPS, config_map(name))
    async with http.stream("GET", PATH, params={"watch": "true", "resourceVersion": revision}) as answer:
        assert await Watched(answer.aiter_lines()).names(2) == [("ADDED", "b"), ("ADDED", "c")]


async def test_lost_history(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """A watch from before the history gets one ERROR event with code 410, and ends."""
    served.store.compact(served.store.revision)
    async with http.stream("GET", PATH, params={"watch": "true", "resourceVersion": "1"}) as answer:
        watched = Watched(answer.aiter_lines())
        kind, obj = await watched.next()
        assert (answer.status_code, kind, obj["code"], obj["reason"]) == (200, "ERROR", 410, "Expired")
        assert await watched.ended()


async def test_timeout(http: httpx.AsyncClient) -> None:
    """A watch ends by itself after its timeout."""
    async with http.stream("GET", PATH, params={"watch": "true", "timeoutSeconds": "1", "labelSelector": "x"}) as answer:
        assert await Watched(answer.aiter_lines()).ended()


async def test_stopping_the_server_ends_watches(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """When the server stops, open watches see their regular end."""
    async with http.stream("GET", PATH, params={"watch": "true", "labelSelector": "x"}) as answer:
        served.facade.close()
        assert await Watched(answer.aiter_lines()).ended()


async def test_tables(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """Events as Tables: the first names the columns, later ones leave them out."""
    for name in ("a", "b"):
        await served.client.create(CONFIG_MAPS, config_map(name, x="1"))
    async with http.stream("GET", PATH, params={"watch": "true", "labelSelector": "x"}, headers={"Accept": TABLE}) as answer:
        watched = Watched(answer.aiter_lines())
        first, second = (await watched.next())[1], (await watched.next())[1]
    assert [column["name"] for column in first["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert not second["columnDefinitions"]
    assert second["rows"][0]["cells"][0] == "b"


async def test_websocket(served: ServedCluster) -> None:
    """Over a WebSocket each event is one text message."""
    async with aiohttp.ClientSession() as session, session.ws_connect(f"{served.listener.url}{PATH}?watch=true&labelSelector=x") as socket:
        await served.client.create(CONFIG_MAPS, config_map("a", x="1"))
        event = json.loads(await socket.receive_str())
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")


@pytest.mark.parametrize(
    "query, code",
    [
        ({"sendInitialEvents": "true"}, 422),
        ({"resourceVersionMatch": "NotOlderThan"}, 422),
        ({"labelSelector": "a in"}, 400),
        ({"fieldSelector": "spec.x=1"}, 400),
        ({"resourceVersion": "x"}, 500),
        ({"timeoutSeconds": "x"}, 400),
    ],
)
async def test_refusals(http: httpx.AsyncClient, query: dict[str, str], code: int) -> None:
    """What is wrong with a request is told before the stream begins."""
    assert (await http.get(PATH, params={"watch": "true", **query})).status_code == code


async def test_negative_timeout(http: httpx.AsyncClient) -> None:
    """A watch that is over before it begins shows what is there and ends; it does not stay open."""
    answer = await http.get("/api/v1/namespaces/default/configmaps", params={"watch": "1", "timeoutSeconds": "-1"}, timeout=30)
    assert answer.status_code == 200
