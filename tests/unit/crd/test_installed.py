"""A served cluster lists the definitions of the kinds we own, as a cluster on which their operators are installed."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.operators import OWNED_KINDS
from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from kubemini.api.resources import JOB_SETS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import NotFound
from kubemini.runtime.env import EPOCH, Env
from kubemini.server.kinds.crd.installed import installed
from kubemini.server.kinds.crd.validation import validate_crd
from kubemini.serving import ServedCluster

STAMP = "2026-01-01T00:00:00Z"
CRDS = [*installed(Env(seed=1, clock=lambda: EPOCH), STAMP)]


def parts(schema: Any) -> list[Tree]:
    """Return every object in a tree."""
    if isinstance(schema, dict):
        return [schema, *(each for value in schema.values() for each in parts(value))]
    return [each for value in schema for each in parts(value)] if isinstance(schema, list) else []


def test_every_kind_has_its_definition() -> None:
    """There is one for each kind that we own, under the names that it is served by, established from the start."""
    assert [crd["metadata"]["name"] for crd in CRDS] == [f"{kind.plural}.{kind.group}" for kind in OWNED_KINDS]
    for crd in CRDS:
        assert crd["status"]["acceptedNames"] == crd["spec"]["names"]
        assert [(each["type"], each["status"]) for each in crd["status"]["conditions"]] == [("NamesAccepted", "True"), ("Established", "True")]
        assert {each["lastTransitionTime"] for each in crd["status"]["conditions"]} == {STAMP}
        assert crd["status"]["storedVersions"] == [each["name"] for each in crd["spec"]["versions"] if each["storage"]]


@pytest.mark.parametrize("crd", CRDS, ids=lambda crd: crd["metadata"]["name"])
def test_definitions_are_valid(crd: Tree) -> None:
    """Each passes the server's own rules, so that a user can label it; built-in types are spelled out."""
    assert [str(problem) for problem in validate_crd(crd)] == []
    assert [part for part in parts(crd) if isinstance(part.get("$ref"), str)] == []


def test_conversion_is_kueues() -> None:
    """Kueue's webhook converts the kinds that upstream patches so; others need none."""
    found = {crd["spec"]["names"]["plural"]: crd["spec"]["conversion"]["strategy"] for crd in CRDS}
    assert sorted(name for name, strategy in found.items() if strategy == "Webhook") == [
        "clusterqueues",
        "cohorts",
        "localqueues",
        "multikueueclusters",
        "workloads",
    ]


async def test_made_when_somebody_asks() -> None:
    """An idle cluster has spelled out none; whoever asks for one, over HTTP or in process, finds all, as old as the cluster."""
    import httpx

    async with ServedCluster(tls=False, controllers="customresources", seed=1) as cluster:
        assert len(cluster.store.table(DEFINITIONS.storage)) == 0
        async with httpx.AsyncClient(base_url=cluster.listener.url) as client:
            listed = (await client.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")).json()["items"]
            assert len(listed) == len(CRDS)
    async with ServedCluster(tls=False, controllers="customresources", seed=1) as cluster:
        assert (await cluster.get("crd/jobsets.jobset.x-k8s.io"))["metadata"]["generation"] == 1


async def test_operators_manifest_is_applied_without_conflict() -> None:
    """Somebody else's version of a definition replaces what we say, and the kind is served as before."""
    async with ServedCluster(tls=False, controllers="customresources", seed=1) as cluster:
        crd = await cluster.get("crd/jobsets.jobset.x-k8s.io")
        before = cluster.server.registry.by_kind("jobset.x-k8s.io/v1alpha2", "JobSet")
        version = {**crd["spec"]["versions"][0], "additionalPrinterColumns": [], "schema": {"openAPIV3Schema": {"type": "object"}}}
        theirs = {
            "apiVersion": crd["apiVersion"],
            "kind": crd["kind"],
            "metadata": {"name": crd["metadata"]["name"]},
            "spec": {key: value for key, value in crd["spec"].items() if key != "conversion"} | {"versions": [version]},
        }
        applied = await cluster.client.apply(DEFINITIONS, theirs, manager="kubectl", force=False)
        assert applied["spec"]["versions"] == [{key: value for key, value in version.items() if value != []}]
        assert cluster.server.registry.by_kind("jobset.x-k8s.io/v1alpha2", "JobSet") is before


async def test_a_kind_of_ours_goes_and_comes_with_its_definition() -> None:
    """Deleting the definition deletes its objects and ends the kind; creating it again brings it back, empty."""
    async with ServedCluster(tls=False, controllers="customresources", seed=1) as cluster:
        job_set: Tree = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "train", "namespace": "default"}}
        template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}}
        await cluster.client.create(JOB_SETS, {**job_set, "spec": {"replicatedJobs": [{"name": "a", "template": template}]}})
        crd = await cluster.get("crd/jobsets.jobset.x-k8s.io")
        await cluster.delete("crd/jobsets.jobset.x-k8s.io")
        await cluster.wait("crd/jobsets.jobset.x-k8s.io", "delete")
        with pytest.raises(NotFound):
            await cluster.client.list(JOB_SETS)
        await cluster.client.create(
            DEFINITIONS, {"apiVersion": crd["apiVersion"], "kind": crd["kind"], "metadata": {"name": crd["metadata"]["name"]}, "spec": crd["spec"]}
        )
        await cluster.wait("crd/jobsets.jobset.x-k8s.io", "condition=Established")
        assert list(await cluster.client.list(JOB_SETS)) == []
