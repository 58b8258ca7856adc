"""`Cluster` as Python users have it: manifests, waiting, wrong use."""

from __future__ import annotations

from pathlib import Path

import pytest

import kubemini
from kubemini.cluster import Cluster
from kubemini.machinery.errors import ConfigError, Invalid, NotFound
from kubemini.manifests import load
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.waiting import parse

CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: v}\n"


def test_manifests_load_from_anything(tmp_path: Path) -> None:
    """Text, files, folders, mappings, models and lists of them are one flat list of objects."""
    (tmp_path / "b.yaml").write_text(CONFIG_MAP.replace("name: a", "name: b"))
    (tmp_path / "c.json").write_text(
        '{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]}'
    )
    (tmp_path / "ignored.txt").write_text("no manifest")
    found = load([CONFIG_MAP, tmp_path, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}}])
    assert [obj["metadata"]["name"] for obj in found] == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "manifest, message",
    [
        ("a: [", "the manifest: "),
        ("- 1", "expected an object with apiVersion, kind and metadata"),
        ("kind: Pod", "apiVersion is missing"),
        ("apiVersion: v1", "kind is missing"),
        ("missing.yaml", "missing.yaml: cannot be read"),
        (7, "expected YAML text, a path, a mapping or a model"),
    ],
)
def test_unreadable_manifests_say_why(manifest: object, message: str) -> None:
    """Each kind of mistake names the document and the mend."""
    with pytest.raises(ConfigError, match=message):
        load(manifest)  # type: ignore[arg-type]


@pytest.mark.parametrize("wish", ["Ready", "condition=", "jsonpath=.status", "jsonpath={.a", "jsonpath={.a[}"])
def test_unclear_wishes_are_refused(wish: str) -> None:
    """A wish that cannot be read is an error at once, not a time-out later."""
    with pytest.raises(ConfigError, match="wait: "):
        parse(wish)


def test_wishes() -> None:
    """Conditions of an older generation do not count; values are compared as kubectl prints them."""
    pod = {
        "metadata": {"generation": 2},
        "status": {
            "phase": "Running",
            "n": 3,
            "on": True,
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}, {"type": "Bad", "status": "False"}],
        },
    }
    assert not parse("condition=Ready")(pod)
    assert parse("condition=bad=false")(pod)
    assert parse("jsonpath={.status.phase}=Running")(pod)
    assert parse("jsonpath={.status.n}=3")(pod)
    assert parse("jsonpath={.status.on}=true")(pod)
    assert parse("jsonpath={.status.phase}")(pod)
    assert not parse("jsonpath={.status.gone}")(pod)
    assert parse("delete")(None)
    assert not parse("create")(None)


async def using(cluster: SimCluster) -> None:
    """Apply twice, get, list, wait, delete."""
    await cluster.settle(60)
    await cluster.apply(CONFIG_MAP)
    first = await cluster.get("cm/a")
    again = (await cluster.apply(CONFIG_MAP.replace("v}", "w}")))[0]
    assert again["data"] == {"k": "w"}
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    assert [obj["metadata"]["name"] for obj in await cluster.list("configmaps", namespace="default")] == ["a", "kube-root-ca.crt"]
    with pytest.raises(TimeoutError, match="configmap/a was not delete within 5 s"):
        await cluster.wait("configmap/a", "delete", timeout=5)
    await cluster.delete("configmap/a")
    assert await cluster.wait("configmap/a", "delete") is None
    with pytest.raises(NotFound, match='configmaps "a" not found'):
        await cluster.get("cm/a")
    with pytest.raises(ConfigError, match="must be KIND/NAME"):
        await cluster.get("cm")
    with pytest.raises(ConfigError, match="serves no kind 'gizmo'"):
        await cluster.list("gizmo")
    with pytest.raises(ConfigError, match='no matches for kind "Gizmo"'):
        await cluster.apply("apiVersion: x.example.com/v1\nkind: Gizmo\nmetadata: {name: g}")
    with pytest.raises(Invalid, match=r"spec\.containers: Required value"):
        await cluster.apply("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {}")


def test_using_a_cluster() -> None:
    """The verbs do what their names say, and what is wrong is said."""
    simulate(using, controllers="namespaces,service-accounts")


def test_unknown_controllers_are_refused() -> None:
    """A misspelt controller name is an error that lists the known ones."""
    with pytest.raises(ConfigError, match=r"unknown 'jobsets'; known are .*jobset"):
        Cluster(controllers="job,jobsets")


def test_public_names() -> None:
    """What the package promises at its top is there, and is the real thing; nothing else is."""
    assert kubemini.Cluster is Cluster
    assert kubemini.simulate is simulate
    assert all(hasattr(kubemini, name) for name in kubemini.__all__)
    assert set(kubemini.__all__) <= set(dir(kubemini))
    assert not hasattr(kubemini, "cluser")


WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i}]}
"""


def test_patch_and_scale() -> None:
    """Objects are changed by reference: a patch merges and deletes, a scale goes through the subresource."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(CONFIG_MAP)
        assert (await cluster.patch("cm/a", {"data": {"k": None, "n": "1"}}))["data"] == {"n": "1"}
        await cluster.apply(WEB)
        assert (await cluster.scale("deploy/web", 3))["kind"] == "Scale"
        await cluster.wait("deploy/web", "jsonpath={.status.readyReplicas}=3")
        with pytest.raises(NotFound):
            await cluster.scale("cm/a", 3)
        with pytest.raises(ConfigError, match="must be KIND/NAME"):
            await cluster.patch("a", {})

    simulate(scenario, fleet="cpu:1")


async def test_the_first_pod() -> None:
    """A pod can be created as soon as a cluster has started: the account that it runs as is there."""
    async with Cluster(seed=1) as cluster:
        (pod,) = await cluster.apply(
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        )
        assert pod["spec"]["serviceAccountName"] == "default"


def test_why_a_pod_waits() -> None:
    """The scheduler tells of its last decision about a pod: each node's refusal, or the node."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    big = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "500"}}}]}

    async def scenario(cluster: SimCluster) -> None:
        assert cluster.why("pod/p") is None
        await cluster.settle(30)
        await cluster.apply({**pod, "spec": big})
        await cluster.wait("pod/p", "condition=PodScheduled=False")
        why = cluster.why("pod/p")
        assert why is not None
        assert (why["node"], why["refusals"]) == (None, {"cpu-0": {"plugin": "NodeResourcesFit", "reasons": ["Insufficient cpu"]}})
        await cluster.apply({**pod, "metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        await cluster.wait("pod/q", "condition=Ready")
        fits = cluster.why("pod/q")
        assert fits is not None
        assert fits["node"] == "cpu-0"

    simulate(scenario, fleet=[{"name": "cpu-", "count": 1}])


def test_why_a_workload_waits() -> None:
    """Kueue tells of its last attempt: what each flavor was rejected by."""
    queues = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: f}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: cq}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lq}
spec: {clusterQueue: cq}
---
apiVersion: batch/v1
kind: Job
metadata: {name: j, labels: {kueue.x-k8s.io/queue-name: lq}}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: c, image: i, resources: {requests: {cpu: 2}}}]}
"""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(queues)
        await cluster.settle(60)
        (workload,) = await cluster.list("workload")
        why = cluster.why(f"workload/{workload['metadata']['name']}")
        assert why is not None
        assert [(each["flavor"], each["mode"]) for each in why["flavors"]] == [("f", "NO_FIT")]

    simulate(scenario)


async def test_disturbances_in_real_time() -> None:
    """A cluster in real time can be disturbed as one under virtual time can."""
    async with Cluster(fleet="cpu:1", seed=1) as cluster:
        spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
        await cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})
        await cluster.wait("pod/p", "condition=Ready", timeout=30)
        await cluster.fail_pod("default", "p", exit_code=3)
        pod = await cluster.wait("pod/p", "jsonpath={.status.phase}=Failed", timeout=30)
        assert pod is not None
        assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
        await cluster.delete_pod("default", "p")
        await cluster.wait("pod/p", "delete", timeout=30)
