"""The REST semantics of one collection, against a model: versions, conflicts, watches, for every sequence of requests."""

import asyncio
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubemini.machinery.errors import AlreadyExists, Conflict, NotFound
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.runtime.env import Env
from kubemini.server.kinds import builtin_registry
from kubemini.server.options import ListOptions, Patch
from kubemini.server.requests import ApiServer
from kubemini.server.setup import api_server
from kubemini.store import Store

NAMES = st.sampled_from("abc")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES, st.integers(0, 2)),
        st.tuples(st.just("update"), NAMES, st.integers(0, 2)),
        st.tuples(st.just("stale"), NAMES, st.integers(0, 2)),
        st.tuples(st.just("patch"), NAMES, st.integers(0, 2)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
    ),
    max_size=25,
)


def fresh() -> ApiServer:
    """Return a server with one namespace."""
    store = Store(debug=True)
    server = api_server(store, builtin_registry("1.36"), Env(seed=1, clock=lambda: 1_767_225_600.0), builtin_schemas("1.36"))
    store.table("namespaces").create(
        "d", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "d", "uid": "u"}, "status": {"phase": "Active"}}
    )
    return server


def body(name: str, value: int, **meta: Any) -> dict[str, Any]:
    """Return a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "d", **meta}, "data": {"v": str(value)}}


@given(STEPS)
def test_model(steps: list[tuple[str, str, int]]) -> None:
    """Every write gets a higher version; stale updates and lost names have no effect; what changes nothing writes nothing; replayed events give the list."""
    asyncio.run(_played(steps))


async def _played(steps: list[tuple[str, str, int]]) -> None:
    server = fresh()
    served = server.resolve("", "v1", "configmaps")
    model: dict[str, int] = {}
    uids: set[str] = set()
    start = server.watch(served, "d", ListOptions(resource_version=str(server.store.revision)))
    for action, name, value in steps:
        before = server.store.revision
        changed = await _step(server, served, action, name, value, model, uids)
        assert (server.store.revision > before) is changed
    replayed: dict[str, int] = {}
    last = 0
    for event in start.cursor.poll():
        revision = int(event.record.obj["metadata"]["resourceVersion"])
        assert revision > last
        last = revision
        key = event.record.obj["metadata"]["name"]
        assert (event.type == "ADDED") is (key not in replayed)
        if event.type == "DELETED":
            del replayed[key]
        else:
            replayed[key] = int(event.record.obj["data"]["v"])
    listed = {record.obj["metadata"]["name"]: int(record.obj["data"]["v"]) for record in server.list(served, "d").records}
    assert listed == replayed == model
    server.store.check()


async def _step(server: ApiServer, served: Any, action: str, name: str, value: int, model: dict[str, int], uids: set[str]) -> bool:
    """Do one request on server and model; return whether it must have written."""
    known = model.get(name)
    try:
        if action == "create":
            made = await server.create(served, "d", body(name, value))
            uid = made.obj["metadata"]["uid"]
            assert uid not in uids
            uids.add(uid)
        elif action == "update":
            live = server.get(served, "d", name).obj
            await server.update(served, "d", name, body(name, value, resourceVersion=live["metadata"]["resourceVersion"]))
        elif action == "stale":
            await server.update(served, "d", name, body(name, value, resourceVersion="1"))
        elif action == "patch":
            await server.patch(served, "d", name, Patch("merge", {"data": {"v": str(value)}}))
        else:
            await server.delete(served, "d", name)
    except AlreadyExists:
        assert action == "create"
        assert known is not None
        return False
    except NotFound:
        assert action != "create"
        assert known is None
        return False
    except Conflict:
        assert action == "stale"
        assert known is not None
        return False
    assert action != "stale"
    if action == "delete":
        del model[name]
        return True
    model[name] = value
    return known != value
