"""An established definition becomes a kind of the registry, in the same step, and goes with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.runtime.env import EPOCH, Env
from kubemini.server.kinds.crd import CustomKinds, is_established, kinds_of
from kubemini.server.kinds.crd.serving import STORAGE
from kubemini.server.registry import Registry
from kubemini.server.strategy import WriteContext
from kubemini.store import Store
from tests.unit.crd.definitions import definition, established, spec_of, version
from tests.unit.crd.test_strategy import Nothing

CTX = WriteContext(Env(seed=1, clock=lambda: EPOCH), Nothing())
SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector"}
TERMINATING = {"type": "Terminating", "status": "True", "reason": "InstanceDeletionPending", "message": ""}


def test_only_what_is_established_and_served() -> None:
    """A definition whose names are not accepted, or of which no version is served, brings no kind."""
    crd = definition()
    assert not is_established(crd)
    assert kinds_of(crd) == []
    assert len(kinds_of(established(crd))) == 1
    assert kinds_of(established(definition(version(served=False)))) == []


def test_names_scope_and_versions() -> None:
    """The kind has the accepted names, and the versions of which one is stored."""
    crd = established(
        definition(
            version("v1beta1", storage=False, deprecated=True),
            version("v1"),
            scope="Cluster",
            names={"plural": "gears", "singular": "gr", "kind": "Gear", "listKind": "Pile", "shortNames": ["g"], "categories": ["all"]},
        )
    )
    (kind,) = kinds_of(crd)
    assert (kind.group, kind.plural, kind.singular, kind.kind, kind.list_kind) == ("example.com", "gears", "gr", "Gear", "Pile")
    assert (kind.short_names, kind.categories, kind.namespaced, kind.custom) == (("g",), ("all",), False, True)
    assert ([each.name for each in kind.versions], kind.storage_version) == (["v1beta1", "v1"], "v1")
    assert [each.deprecation for each in kind.versions] == ["example.com/v1beta1 Gear is deprecated", ""]


def test_subresources_and_fields() -> None:
    """Status, scale, columns and selectable fields are as the version says."""
    schema = spec_of({"size": {"type": "integer"}, "color": {"type": "string"}})
    column = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
    parts: dict[str, Any] = {"subresources": {"status": {}, "scale": SCALE}, "selectableFields": [{"jsonPath": ".spec.color"}]}
    (kind,) = kinds_of(established(definition(version(schema=schema, additionalPrinterColumns=[column], **parts))))
    assert [(each.name, each.kind, each.group, each.version) for each in kind.subresources] == [
        ("status", "Gear", "", ""),
        ("scale", "Scale", "autoscaling", "v1"),
    ]
    assert kind.strategy.has_status
    assert list(kind.strategy.fields) == ["spec.color"]
    table = kind.versions[0].table
    assert table is not None
    assert [each.name for each in table.columns] == ["Name", "Size"]
    (plain,) = kinds_of(established(definition()))
    assert (plain.subresources, plain.strategy.has_status) == ((), False)


def test_objects_follow_the_schema() -> None:
    """Objects are pruned and defaulted by the schema of their version; without one, they keep everything."""
    schema = spec_of({"size": {"type": "integer", "default": 3}})
    (kind,) = kinds_of(established(definition(version(schema=schema))))
    gear: Tree = {"apiVersion": "example.com/v1", "kind": "Gear", "metadata": {"name": "g"}, "spec": {"odd": 1}}
    assert kind.versions[0].codec.decode(gear).tree["spec"] == {"size": 3}
    (free,) = kinds_of(established(definition(version(schema={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))))
    assert free.versions[0].codec.decode(gear).tree is gear


@pytest.mark.parametrize(
    "gear, wanted",
    [
        ({"spec": {"size": 3}}, []),
        ({}, []),
        ({"spec": {"size": -1}}, [".spec.size: Invalid value: -1: should be a non-negative integer"]),
        ({"spec": {"size": 2**31}}, [".spec.size: Invalid value: 2147483648: should be less than or equal to 2147483647"]),
        ({"spec": {"size": "x"}}, [".spec.size: Invalid value: 0: .spec.size accessor error: x is of the type string, expected int64"]),
    ],
)
def test_scales_are_whole_numbers(gear: Tree, wanted: list[str]) -> None:
    """What /scale shows as replicas is a small whole number."""
    (kind,) = kinds_of(established(definition(version(subresources={"scale": SCALE}))))
    assert [str(error) for error in kind.strategy.validate_create({"metadata": {"name": "g"}, **gear}, CTX)] == wanted


def test_nothing_new_while_it_terminates() -> None:
    """Objects of a definition that terminates are still served, but none is made."""
    (kind,) = kinds_of(established(definition(), TERMINATING))
    with pytest.raises(Forbidden) as refused:
        kind.strategy.prepare_for_create({"metadata": {"name": "g"}}, CTX)
    assert refused.value.message == 'gears.example.com "g" is forbidden: create not allowed while custom resource definition is terminating'


# ---------------------------------------------------------------------------------------------------------- the registry


class Served:
    """A registry that follows the definitions in a store."""

    def __init__(self, *crds: Tree, registry: Registry | None = None) -> None:
        self.registry = registry if registry is not None else Registry()
        self.store = Store()
        for crd in crds:
            self.put(crd)
        CustomKinds(self.registry, self.store)

    def put(self, crd: Tree) -> None:
        """Commit a definition."""
        table = self.store.table(STORAGE)
        name = crd["metadata"]["name"]
        if table.get(name) is None:
            table.create(name, crd)
        else:
            table.update(name, crd)

    def versions(self) -> list[str]:
        """Return what is served."""
        return [f"{kind.plural}.{kind.group}/{each.name}" for kind in self.registry for each in kind.versions if each.served]


def test_the_registry_follows_the_store() -> None:
    """A kind is there once its definition says Established, at once; versions come and go with updates; a deletion takes it away."""
    served = Served()
    served.put(definition())
    assert served.versions() == []
    served.put(established(definition()))
    assert served.versions() == ["gears.example.com/v1"]
    served.put(established(definition(version("v1"), version("v2", storage=False))))
    assert served.versions() == ["gears.example.com/v1", "gears.example.com/v2"]
    served.store.table(STORAGE).delete("gears.example.com")
    assert served.versions() == []


def test_what_is_stored_already_is_served() -> None:
    """A server that starts on a full store serves the kinds of its definitions."""
    assert Served(established(definition())).versions() == ["gears.example.com/v1"]


def test_other_changes_leave_the_kind_alone() -> None:
    """Labels and conditions of a definition do not make a new kind, so caches of documents stay good."""
    served = Served(established(definition()))
    (before,) = served.registry
    generation = served.registry.generation
    served.put(established(definition(meta={"labels": {"a": "b"}}), {"type": "Other", "status": "True"}))
    assert list(served.registry) == [before]
    assert served.registry.generation == generation


def test_kinds_of_ours_are_not_replaced() -> None:
    """A definition of a custom kind that the server brings itself changes nothing of it; the kind goes with its definition, and comes back as ours."""
    (ours,) = kinds_of(established(definition()))
    served = Served(registry=Registry([ours]))
    served.put(established(definition(version("v9"))))
    assert list(served.registry) == [ours]
    served.store.table(STORAGE).delete("gears.example.com")
    assert list(served.registry) == []
    served.put(established(definition(version("v9"))))
    assert list(served.registry) == [ours]


def test_nothing_new_of_ours_while_its_definition_terminates() -> None:
    """A custom kind that the server brings itself closes with its definition as any other."""
    (ours,) = kinds_of(established(definition()))
    served = Served(registry=Registry([ours]))
    served.put(established(definition(), TERMINATING))
    (closing,) = served.registry
    with pytest.raises(Forbidden) as refused:
        closing.strategy.prepare_for_create({"metadata": {"name": "g"}}, CTX)
    assert refused.value.message == 'gears.example.com "g" is forbidden: create not allowed while custom resource definition is terminating'
    assert ours.strategy.prepare_for_create({"metadata": {"name": "g"}}, CTX)


def test_built_in_kinds_stay() -> None:
    """A definition with the name of a built-in kind brings nothing and takes nothing away."""
    (kind,) = kinds_of(established(definition()))
    built_in = replace(kind, custom=False)
    served = Served(registry=Registry([built_in]))
    served.put(established(definition(version("v9"))))
    served.store.table(STORAGE).delete("gears.example.com")
    assert list(served.registry) == [built_in]
