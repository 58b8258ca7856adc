"""Client libraries for Python against a served cluster: create, read, watch, patch, delete, each in its own words."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.clients.conftest import PATIENCE, Server

pytestmark = pytest.mark.clients

KUBERNETES = """
import sys
from kubernetes import client, config, watch, dynamic
config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
name = "kubernetes"
made = core.create_namespaced_config_map("default", {"metadata": {"name": name, "labels": {"from": name}}, "data": {"a": "1"}})
assert core.read_namespaced_config_map(name, "default").data == {"a": "1"}
core.patch_namespaced_config_map(name, "default", {"data": {"b": "2"}})
made.data = {"a": "3"}
try:
    core.replace_namespaced_config_map(name, "default", made)
    raise SystemExit("a stale update went through")
except client.ApiException as problem:
    assert problem.status == 409, problem
events = []
listed = core.list_namespaced_config_map("default", label_selector=f"from={name}")
assert [item.metadata.name for item in listed.items] == [name]
for event in watch.Watch().stream(core.list_namespaced_config_map, "default", label_selector=f"from={name}", timeout_seconds=20):
    events.append(event["type"])
    if event["type"] == "ADDED":
        core.delete_namespaced_config_map(name, "default")
    if event["type"] == "DELETED":
        break
assert events == ["ADDED", "DELETED"], events
jobs = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="jobset.x-k8s.io/v1alpha2", kind="JobSet")
assert jobs.get(namespace="default").items == []
print("done")
"""

KUBERNETES_ASYNCIO = """
import asyncio, sys
from kubernetes_asyncio import client, config, watch
async def main():
    await config.load_kube_config(sys.argv[1])
    async with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        name = "kubernetes-asyncio"
        await core.create_namespaced_config_map("default", {"metadata": {"name": name, "labels": {"from": name}}, "data": {"a": "1"}})
        events = []
        async with watch.Watch().stream(core.list_namespaced_config_map, "default", label_selector=f"from={name}", timeout_seconds=20) as stream:
            async for event in stream:
                events.append(event["type"])
                if event["type"] == "ADDED":
                    await core.delete_namespaced_config_map(name, "default")
                if event["type"] == "DELETED":
                    break
        assert events == ["ADDED", "DELETED"], events
    print("done")
asyncio.run(main())
"""

KR8S = """
import sys, kr8s
from kr8s.objects import ConfigMap, Pod
api = kr8s.api(kubeconfig=sys.argv[1])
name = "kr8s"
made = ConfigMap({"metadata": {"name": name, "namespace": "default"}, "data": {"a": "1"}}, api=api)
made.create()
assert made.exists()
made.patch({"data": {"b": "2"}})
assert dict(ConfigMap.get(name, namespace="default", api=api).data) == {"a": "1", "b": "2"}
made.label(of=name)
assert [each.name for each in api.get("configmaps", namespace="default", label_selector={"of": name})] == [name]
made.delete()
assert not made.exists()
print("done")
"""

LIGHTKUBE = """
import sys
from lightkube import Client, KubeConfig
from lightkube.core.exceptions import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap
client = Client(config=KubeConfig.from_file(sys.argv[1]), namespace="default", field_manager="lightkube")
name = "lightkube"
client.create(ConfigMap(metadata=ObjectMeta(name=name, labels={"from": name}), data={"a": "1"}))
client.patch(ConfigMap, name, {"data": {"b": "2"}})
applied = client.apply(ConfigMap(metadata=ObjectMeta(name=name), data={"c": "3"}), force=True)
assert applied.data == {"a": "1", "b": "2", "c": "3"}, applied.data
assert [each.metadata.name for each in client.list(ConfigMap, labels={"from": name})] == [name]
for kind, obj in client.watch(ConfigMap, labels={"from": name}):
    if kind == "ADDED":
        client.delete(ConfigMap, name)
    if kind == "DELETED":
        break
try:
    client.get(ConfigMap, name)
    raise SystemExit("it is still there")
except ApiError as problem:
    assert problem.status.code == 404
print("done")
"""

KOPF = """
import sys, threading, time
import kopf
from kubernetes import client, config
config.load_kube_config(sys.argv[1])
seen = []

@kopf.on.create("configmaps", labels={"operated": "yes"})
def made(name, patch, **_):
    seen.append(("made", name))
    patch.metadata.annotations["example.com/seen"] = "yes"

@kopf.on.delete("configmaps", labels={"operated": "yes"})
def gone(name, **_):
    seen.append(("gone", name))

core = client.CoreV1Api()
ready, stop = threading.Event(), threading.Event()

def operate():
    import asyncio
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.run_until_complete(kopf.operator(namespaces=["default"], ready_flag=ready, stop_flag=stop, standalone=True))

thread = threading.Thread(target=operate, daemon=True)
thread.start()
assert ready.wait(30)
core.create_namespaced_config_map("default", {"metadata": {"name": "operated", "labels": {"operated": "yes"}}, "data": {}})
deadline = time.monotonic() + 30
while "example.com/seen" not in (core.read_namespaced_config_map("operated", "default").metadata.annotations or {}):
    assert time.monotonic() < deadline, seen
    time.sleep(0.1)
core.delete_namespaced_config_map("operated", "default")
while ("gone", "operated") not in seen:
    assert time.monotonic() < deadline, seen
    time.sleep(0.1)
stop.set()
thread.join(20)
print("done")
"""


@pytest.mark.parametrize(
    "package, program",
    [
        ("kubernetes", KUBERNETES),
        ("kubernetes_asyncio", KUBERNETES_ASYNCIO),
        ("kr8s", KR8S),
        ("lightkube", LIGHTKUBE),
        ("kopf", KOPF),
    ],
)
def test_library(server: Server, tmp_path: Path, package: str, program: str) -> None:
    """A program written with the library runs to its end, in a process of its own."""
    pytest.importorskip(package, reason="install kubemini[clients]")
    done: subprocess.CompletedProcess[Any] = subprocess.run(
        [sys.executable, "-c", program, str(server.kubeconfig)],
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        cwd=tmp_path,
        env={**os.environ, "KUBECONFIG": str(server.kubeconfig)},
        check=False,
    )
    assert done.stdout.endswith("done\n"), done.stdout + done.stderr
