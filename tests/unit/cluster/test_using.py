"""`Cluster` as Python users have it: manifests, waiting, wrong use."""

from __future__ import annotations

from pathlib import Path

import pytest

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
