"""Objects that lack nearly everything are told what they lack, kind by kind; none of them is too much for a plugin, a webhook or a controller."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from kubemini.serving import ServedCluster

HOLLOW: list[dict[str, Any]] = [
    {},
    {"spec": None},
    {"spec": {}},
    {"metadata": {"labels": None, "annotations": None}},
    {"data": None, "rules": None, "webhooks": [{}], "subjects": [{}], "endpoints": [{}], "subsets": [{}]},
    {"spec": {"template": None, "selector": {}}},
    {"spec": {"template": {"spec": {"containers": []}}, "selector": {"matchLabels": {}}}},
    {
        "spec": {
            "replicatedJobs": [{}],
            "leaderWorkerTemplate": {},
            "resourceGroups": [{}],
            "jobTemplate": {},
            "podSets": [{}],
            "rules": [{}],
            "ports": [{}],
        }
    },
    {"spec": {"levels": [{}], "versions": [{}], "replicatedJobs": [{"template": {"spec": {"template": {}}}}]}},
]


@pytest.fixture
async def everything() -> AsyncIterator[httpx.AsyncClient]:
    """A cluster with every controller, and with GPU nodes, whose taints bring a plugin of their own."""
    async with ServedCluster(tls=False, fleet="h100-2racks", seed=1) as served, httpx.AsyncClient(base_url=served.listener.url) as client:
        yield client
        assert [(name, key) for name, key, _ in served.failures] == []


async def kinds(http: httpx.AsyncClient) -> list[tuple[str, str, str]]:
    """Return (collection, apiVersion, kind) of everything that can be created."""
    groups = ["v1", *(each["groupVersion"] for group in (await http.get("/apis")).json()["groups"] for each in group["versions"])]
    found = []
    for group in groups:
        base = f"/api/{group}" if group == "v1" else f"/apis/{group}"
        for each in (await http.get(base)).json()["resources"]:
            if "/" not in each["name"] and "create" in each["verbs"] and each["name"] != "bindings":  # upstream answers 500 to a hollow Binding
                found.append((f"{base}/namespaces/default/{each['name']}" if each["namespaced"] else f"{base}/{each['name']}", group, each["kind"]))
    return found


async def test_hollow_objects(everything: httpx.AsyncClient) -> None:
    """Whatever is missing or null: the answer is the object or a Status that is no internal error, and no controller stumbles over what was stored."""
    broken = []
    for path, group, kind in await kinds(everything):
        for number, hollow in enumerate(HOLLOW):
            body = {"apiVersion": group, "kind": kind, **hollow, "metadata": {**hollow.get("metadata", {}), "name": f"hollow-{number}"}}
            answer = await everything.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
            if answer.status_code >= 500:
                broken.append((kind, hollow, answer.json()["message"]))
            elif answer.status_code == 201 and kind not in ("Node", "Namespace"):
                patched = await everything.patch(
                    f"{path}/hollow-{number}", json={"spec": None}, headers={"Content-Type": "application/merge-patch+json"}
                )
                if patched.status_code >= 500:
                    broken.append((kind, {"patch": {"spec": None}}, patched.json()["message"]))
    assert broken == []


async def test_bodies_without_a_kind(http: httpx.AsyncClient) -> None:
    """A body need not say its kind, in no version of a kind: the path tells."""
    for version in ("v1beta1", "v1beta2"):
        path = f"/apis/kueue.x-k8s.io/{version}/resourceflavors"
        made = await http.post(path, json={"metadata": {"name": version}})
        assert (made.status_code, made.json()["kind"], made.json()["apiVersion"]) == (201, "ResourceFlavor", f"kueue.x-k8s.io/{version}")
        body = {"metadata": {"name": version, "labels": {"a": "b"}, "resourceVersion": made.json()["metadata"]["resourceVersion"]}}
        put = await http.put(f"{path}/{version}", json=body)
        assert (put.status_code, put.json()["metadata"]["labels"]) == (200, {"a": "b"})
