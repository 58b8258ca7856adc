"""The kinds we own are served as custom resources of their CustomResourceDefinitions would be."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import orjson
import pytest

from kubemini.api.meta.v1 import ApiObject
from kubemini.api.operators import OWNED_KINDS
from kubemini.api.trees import Tree
from kubemini.server.kinds.custom import CustomStrategy, custom_table
from kubemini.server.kinds.owned import owned_kinds
from kubemini.server.registry import Registry

REGISTRY = Registry(owned_kinds())


def job_set(**parts: Any) -> Tree:
    """Return a JobSet of the year 1970."""
    return {"metadata": {"name": "train", "creationTimestamp": "1970-01-01T00:00:00Z"}, **parts}


@pytest.mark.parametrize(
    "api_version,kind,names",
    [
        ("jobset.x-k8s.io/v1alpha2", "JobSet", ("Name", "TerminalState", "Restarts", "Completed", "Suspended", "Age")),
        ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", ("Name", "Ready", "Desired", "Up-to-date", "Age")),
        ("disaggregatedset.x-k8s.io/v1", "DisaggregatedSet", ("Name", "Age")),
        ("kueue.x-k8s.io/v1beta2", "Workload", ("Name", "Queue", "Reserved in", "Admitted", "Finished", "Age")),
        ("kueue.x-k8s.io/v1beta1", "ClusterQueue", ("Name", "Cohort", "Strategy", "Pending Workloads", "Admitted Workloads")),
        ("kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", ("Name", "Value")),
        ("autoscaling.x-k8s.io/v1", "ProvisioningRequest", ("Name", "Age")),
    ],
)
def test_columns(api_version: str, kind: str, names: tuple[str, ...]) -> None:
    """`kubectl get` shows the declared columns, or Name and Age."""
    served = REGISTRY.by_kind(api_version, kind)
    assert served is not None
    assert served.version.table is not None
    assert tuple(column.name for column in served.version.table.columns) == names


def test_cells() -> None:
    """Cells are typed: texts printed, ages relative, what is absent null."""
    served = REGISTRY.by_kind("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert served is not None
    assert served.version.table is not None
    status = {"restarts": 2, "conditions": [{"type": "Completed", "status": "True"}]}
    assert served.version.table.row(job_set(spec={"suspend": False}, status=status), 330.0) == ["train", None, "2", "True", "false", "5m30s"]


@pytest.mark.parametrize(
    "kind,value,cell",
    [
        ("string", "a", "a"),
        ("string", [1, "b"], '[1,"b"]'),
        ("string", True, "true"),
        ("integer", 3, 3),
        ("integer", 3.9, 3),
        ("integer", "3", None),
        ("integer", True, None),
        ("number", 2, 2.0),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("date", "1970-01-01T00:00:00Z", "90s"),
        ("date", "soon", "<invalid>"),
        ("date", 5, None),
    ],
)
def test_cell_types(kind: str, value: Any, cell: Any) -> None:
    """A value of another type than its column's is a null cell."""
    table = custom_table([{"name": "X", "type": kind, "jsonPath": ".x"}])
    assert table.row({"metadata": {"name": "n"}, "x": value}, 90.0) == ["n", cell]


def test_generation() -> None:
    """Everything but metadata counts as a change of the desired state, and status where it is no subresource."""
    with_status, without = CustomStrategy(status=True), CustomStrategy(status=False)
    old = {"metadata": {"name": "a"}, "value": 1, "status": {"x": 1}}
    assert not with_status.spec_changed({**old, "metadata": {"name": "b"}, "status": {}}, old)
    assert without.spec_changed({**old, "status": {}}, old)
    assert with_status.spec_changed({**old, "value": 2}, old)
    assert with_status.spec_changed({key: value for key, value in old.items() if key != "value"}, old)


def test_kueue_is_stored_in_its_newest_version() -> None:
    """v1beta1 is converted, deprecated, and shares storage with v1beta2."""
    old, new = REGISTRY.by_kind("kueue.x-k8s.io/v1beta1", "ClusterQueue"), REGISTRY.by_kind("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    assert old is not None
    assert new is not None
    assert old.kind is new.kind
    assert new.stored_as_is
    assert old.to_storage({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "spec": {"cohort": "c"}}) == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "spec": {"cohortName": "c"},
    }
    assert old.version.deprecation == "This version is deprecated. Use v1beta2 instead."
    assert REGISTRY.preferred(new.kind).version.name == "v1beta2"


def test_workloads_are_selected_by_cluster_queue() -> None:
    """The selectable field of a Workload is its ClusterQueue, empty before admission."""
    served = REGISTRY.by_kind("kueue.x-k8s.io/v1beta2", "Workload")
    assert served is not None
    getter = served.kind.strategy.fields["status.admission.clusterQueue"]
    assert getter({"status": {"admission": {"clusterQueue": "cq"}}}) == "cq"
    assert getter({"metadata": {}}) == ""


def test_subresources() -> None:
    """Status and scale are served where the CRD declares them."""
    shown = {kind.kind: {each.name for each in kind.subresources} for kind in REGISTRY}
    assert shown["LeaderWorkerSet"] == {"status", "scale"}
    assert shown["JobSet"] == {"status"}
    assert shown["ResourceFlavor"] == set()


def recorded(conformance: Path) -> Iterator[Tree]:
    """Yield every object of ours that a real control plane has left behind, with a time where the record has none."""
    for path in sorted((conformance / "golden").rglob("*.json")):
        text = path.read_bytes().replace(b'"<time>"', b'"2026-01-01T00:00:00Z"')
        for obj in orjson.loads(text)["objects"]:
            if REGISTRY.by_kind(obj["apiVersion"], obj["kind"]) is not None:
                yield obj


def test_recorded_objects_stay_as_they_are(conformance: Path) -> None:
    """What a real control plane has stored is pruned and defaulted already, breaks no rule, and survives the way through its model."""
    seen: dict[str, int] = {}
    for obj in recorded(conformance):
        served = REGISTRY.by_kind(obj["apiVersion"], obj["kind"])
        assert served is not None
        codec = served.version.codec
        assert codec.decode(obj, validation="Strict").tree == obj
        if b'"<any>"' not in orjson.dumps(obj):  # a value that differed between two runs
            assert codec.validate(obj) == []
            assert model_of(obj).model_validate(obj).to_tree() == obj
            seen[obj["kind"]] = seen.get(obj["kind"], 0) + 1
    assert seen.keys() >= {"JobSet", "LeaderWorkerSet", "ClusterQueue", "LocalQueue", "ResourceFlavor", "Topology", "Workload"}


def model_of(obj: Tree) -> type[ApiObject]:
    """Return the model of an object."""
    group, _, version = obj["apiVersion"].partition("/")
    kind = next(each for each in OWNED_KINDS if each.group == group and each.kind == obj["kind"])
    module, _, name = next(each.model for each in kind.versions if each.name == version).partition(":")
    model: type[ApiObject] = getattr(import_module(module), name)
    return model
