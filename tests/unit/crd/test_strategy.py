"""What the server itself does with a definition: names filled in, its status kept, warnings, and the finalizer of a deletion."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.runtime.env import EPOCH, Env
from kubemini.server.kinds.crd import CrdStrategy
from kubemini.server.strategy import WriteContext
from tests.unit.crd.definitions import definition, established, spec_of, version

STRATEGY = CrdStrategy()
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


class Nothing:
    """A reader of an empty cluster."""

    def get(self, resource: str, namespace: str, name: str) -> Tree | None:
        """Find nothing."""
        return None

    def list(self, resource: str, namespace: str = "") -> Sequence[Tree]:
        """Find nothing."""
        return ()

    def starting(self, resource: str, namespace: str, prefix: str) -> Sequence[Tree]:
        """Find nothing."""
        return ()


CTX = WriteContext(Env(seed=1, clock=lambda: EPOCH), Nothing())


def test_names_are_filled_in() -> None:
    """The singular is the kind in lower case and the list kind ends in List, unless stated."""
    bare = definition(names={"plural": "gears", "kind": "GearBox"})
    assert STRATEGY.default(bare, CTX)["spec"]["names"] == {"plural": "gears", "kind": "GearBox", "singular": "gearbox", "listKind": "GearBoxList"}
    stated = definition(names={"plural": "gears", "kind": "GearBox", "singular": "gb", "listKind": "Boxes"})
    assert STRATEGY.default(stated, CTX) is stated


def test_status_of_a_new_definition() -> None:
    """Nothing is accepted yet, and the storage version counts as stored."""
    crd = definition(version("v1", storage=False), version("v2"))
    assert STRATEGY.initial_status(crd) == {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": ["v2"]}


def test_a_new_storage_version_is_noted() -> None:
    """When another version becomes the storage version, both count as stored; otherwise nothing changes."""
    old = definition(version("v1"), version("v2", storage=False))
    new = {**old, "spec": {**old["spec"], "versions": [version("v1", storage=False), version("v2")]}}
    assert STRATEGY.prepare_for_update(new, old, CTX)["status"]["storedVersions"] == ["v1", "v2"]
    assert STRATEGY.prepare_for_update(old, old, CTX) is old


def test_warnings_of_formats_and_sets() -> None:
    """Formats without meaning and sets of objects are warned of when they appear, not again and again."""
    things = {"type": "array", "items": {"type": "object", "x-kubernetes-map-type": "atomic"}, "x-kubernetes-list-type": "set"}
    crd = definition(version(schema=spec_of({"a": {"type": "string", "format": "odd"}, "b": {"type": "string", "format": "date-time"}, "c": things})))
    wanted = [
        'unrecognized format "odd"',
        'x-kubernetes-list-type: set for items of type "object" is not supported by server-side apply or CEL validation rules',
    ]
    assert STRATEGY.warnings(crd, None, CTX) == wanted
    other = {**crd, "spec": {**crd["spec"], "scope": "Cluster"}}
    assert STRATEGY.warnings(other, crd, CTX) == []
    assert STRATEGY.warnings(crd, definition(), CTX) == wanted


def test_a_deletion_brings_the_finalizer() -> None:
    """A deleted definition waits for its objects: it gets the finalizer and says that it terminates, once."""
    crd = established(definition(meta={"finalizers": ["example.com/mine"]}))
    going = STRATEGY.terminating(crd, CTX)
    assert going is not None
    assert going["metadata"]["finalizers"] == ["example.com/mine", FINALIZER]
    assert [each["type"] for each in going["status"]["conditions"]] == ["NamesAccepted", "Established", "Terminating"]
    assert (going["status"]["conditions"][2]["status"], going["status"]["conditions"][2]["reason"]) == ("True", "InstanceDeletionPending")
    marked = {**going, "metadata": {**going["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert STRATEGY.terminating(marked, CTX) is None


def test_a_kind_is_held_to_what_is_established() -> None:
    """Scope may change as long as no object can have been made."""
    old = definition()
    new = {**old, "spec": {**old["spec"], "scope": "Cluster"}}
    assert STRATEGY.validate_update(new, old, CTX) == []
    assert [error.field for error in STRATEGY.validate_update({**new, "status": established(old)["status"]}, established(old), CTX)] == ["spec.scope"]
