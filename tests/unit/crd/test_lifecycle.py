"""A definition in a running cluster: established, used, and cleared away with its objects."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS as DEFINITIONS
from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden, Invalid, NotFound
from kubemini.sim.cluster import SimCluster, simulate
from tests.unit.crd.definitions import definition, spec_of, version

GEARS = Resource("example.com", "v1", "gears", "Gear")
SIZED = spec_of({"size": {"type": "integer", "default": 3, "minimum": 1}})
BARE = {"plural": "gears", "kind": "Gear"}


def posted(*versions: Tree, **more: Any) -> Tree:
    """Return a definition as a client posts it."""
    more.setdefault("names", BARE)
    crd = definition(*(versions or (version(schema=SIZED),)), **more)
    del crd["status"]
    return crd


def gear(name: str = "g", *, finalizers: tuple[str, ...] = (), **spec: Any) -> Tree:
    """Return an object."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Gear",
        "metadata": {"name": name, "namespace": "default", "finalizers": list(finalizers)},
        "spec": spec,
    }


async def install(cluster: SimCluster, crd: Tree) -> Tree:
    """Create a definition and return it as it is when nothing moves any more."""
    await cluster.client.create(DEFINITIONS, crd)
    await cluster.settle()
    return await cluster.client.get(DEFINITIONS, crd["metadata"]["name"])


def conditions(crd: Tree) -> dict[str, tuple[str, str]]:
    """Return conditions as type → (status, reason)."""
    return {each["type"]: (each["status"], each["reason"]) for each in crd["status"]["conditions"]}


def played(scenario: Any) -> None:
    """Run a scenario on a cluster with this controller alone."""
    simulate(scenario, controllers=["customresources"])


def test_a_definition_is_established_and_its_kind_used() -> None:
    """The kind is served as soon as the definition says so, with its schema."""

    async def scenario(cluster: SimCluster) -> None:
        with pytest.raises(NotFound):
            await cluster.client.list(GEARS)
        crd = await install(cluster, posted())
        assert crd["spec"]["names"] == crd["status"]["acceptedNames"] == {**BARE, "singular": "gear", "listKind": "GearList"}
        assert conditions(crd) == {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}
        assert (crd["status"]["storedVersions"], crd["metadata"]["generation"]) == (["v1"], 1)
        made = await cluster.client.create(GEARS, gear())
        assert made["spec"] == {"size": 3}
        with pytest.raises(Invalid) as refused:
            await cluster.client.create(GEARS, gear("other", size=0))
        assert refused.value.message == (
            'Gear.example.com "other" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1'
        )

    played(scenario)


def test_a_conflict_ends_with_its_cause() -> None:
    """The second definition with a kind waits until the first is gone."""

    async def scenario(cluster: SimCluster) -> None:
        await install(cluster, posted())
        late = await install(cluster, posted(name="cogs.example.com", names={"plural": "cogs", "kind": "Gear"}))
        assert conditions(late) == {"NamesAccepted": ("False", "ListKindConflict"), "Established": ("False", "NotAccepted")}
        await cluster.client.delete(DEFINITIONS, "gears.example.com")
        await cluster.settle()
        late = await cluster.client.get(DEFINITIONS, "cogs.example.com")
        assert conditions(late) == {"NamesAccepted": ("True", "NoConflicts"), "Established": ("True", "InitialNamesAccepted")}

    played(scenario)


def test_one_object_in_two_versions() -> None:
    """A stored object is served in each version with only its apiVersion changed."""

    async def scenario(cluster: SimCluster) -> None:
        await install(cluster, posted(version(schema=SIZED), version("v1beta1", SIZED, storage=False)))
        await cluster.client.create(GEARS, gear(size=4))
        other = await cluster.client.get(Resource("example.com", "v1beta1", "gears", "Gear"), "g", "default")
        assert (other["apiVersion"], other["spec"]) == ("example.com/v1beta1", {"size": 4})

    played(scenario)


def test_a_deleted_definition_takes_its_objects_along() -> None:
    """Objects go first; one with a finalizer holds the definition, which says so and admits no new ones."""

    async def scenario(cluster: SimCluster) -> None:
        await install(cluster, posted())
        await cluster.client.create(GEARS, gear("held", finalizers=("example.com/hold",)))
        await cluster.client.create(GEARS, gear("free"))
        await cluster.client.delete(DEFINITIONS, "gears.example.com")
        await cluster.settle()
        crd = await cluster.client.get(DEFINITIONS, "gears.example.com")
        assert conditions(crd)["Terminating"] == ("True", "InstanceDeletionInProgress")
        assert [each["metadata"]["name"] for each in await cluster.client.list(GEARS)] == ["held"]
        with pytest.raises(Forbidden):
            await cluster.client.create(GEARS, gear("new"))
        await cluster.client.patch(GEARS, "held", {"metadata": {"finalizers": None}}, namespace="default")
        await cluster.settle()
        for resource, name, namespace in ((DEFINITIONS, "gears.example.com", ""), (GEARS, "held", "default")):
            with pytest.raises(NotFound):
                await cluster.client.get(resource, name, namespace)

    played(scenario)


def test_a_definition_comes_back() -> None:
    """After a deletion the same definition can be made again, with another schema, and nothing of the old objects is there."""

    async def scenario(cluster: SimCluster) -> None:
        await install(cluster, posted())
        await cluster.client.create(GEARS, gear())
        await cluster.client.delete(DEFINITIONS, "gears.example.com")
        await cluster.settle()
        await install(cluster, posted(version(schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True})))
        assert list(await cluster.client.list(GEARS)) == []
        assert (await cluster.client.create(GEARS, gear(odd=1)))["spec"] == {"odd": 1}

    played(scenario)


def test_a_definition_that_never_was_goes_at_once() -> None:
    """Without accepted names there can be no objects to wait for."""

    async def scenario(cluster: SimCluster) -> None:
        await install(cluster, posted())
        await install(cluster, posted(name="cogs.example.com", names={"plural": "cogs", "kind": "Gear"}))
        await cluster.client.delete(DEFINITIONS, "cogs.example.com")
        await cluster.settle()
        assert [each["metadata"]["name"] for each in await cluster.client.list(DEFINITIONS)] == ["gears.example.com"]

    played(scenario)
