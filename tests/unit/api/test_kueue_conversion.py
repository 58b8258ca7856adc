"""v1beta1 and v1beta2 of Kueue's kinds turn into each other as upstream's conversion webhook turns them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kubemini.api.kueue import KINDS
from kubemini.api.kueue.conversion import V1BETA1, V1BETA2, to_v1beta1, to_v1beta2
from kubemini.api.trees import Tree


def obj(version: str, kind: str, **parts: Any) -> Tree:
    """Return an object of a kind in a version."""
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **parts}


BOTH_WAYS = [
    ("ClusterQueue", {"spec": {"cohort": "c", "stopPolicy": "None"}}, {"spec": {"cohortName": "c", "stopPolicy": "None"}}),
    ("ClusterQueue", {"status": {"fairSharing": {"weightedShare": 1}}}, {"status": {"fairSharing": {"weightedShare": 1}}}),
    ("LocalQueue", {"status": {"flavorUsage": [{"name": "f"}]}}, {"status": {"flavorsUsage": [{"name": "f"}]}}),
    (
        "Workload",
        {"spec": {"priority": 1, "priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass"}},
        {"spec": {"priority": 1, "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"}}},
    ),
    (
        "Workload",
        {"spec": {"priorityClassName": "high", "priorityClassSource": "scheduling.k8s.io/priorityclass"}},
        {"spec": {"priorityClassRef": {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}}},
    ),
    ("Workload", {"status": {"accumulatedPastExexcutionTimeSeconds": 5}}, {"status": {"accumulatedPastExecutionTimeSeconds": 5}}),
    (
        "Workload",
        {"status": {"admission": {"podSetAssignments": [{"topologyAssignment": {"levels": ["l"], "domains": [{"values": ["a"], "count": 2}]}}]}}},
        {
            "status": {
                "admission": {
                    "podSetAssignments": [
                        {
                            "topologyAssignment": {
                                "levels": ["l"],
                                "slices": [{"domainCount": 1, "valuesPerLevel": [{"universal": "a"}], "podCounts": {"universal": 2}}],
                            }
                        }
                    ]
                }
            }
        },
    ),
    (
        "MultiKueueCluster",
        {"spec": {"kubeConfig": {"location": "s", "locationType": "Secret"}}},
        {"spec": {"clusterSource": {"kubeConfig": {"location": "s", "locationType": "Secret"}}}},
    ),
    ("Topology", {"spec": {"levels": [{"nodeLabel": "l"}]}}, {"spec": {"levels": [{"nodeLabel": "l"}]}}),
]


@pytest.mark.parametrize("kind,old,new", BOTH_WAYS)
def test_both_ways(kind: str, old: Tree, new: Tree) -> None:
    """What both versions can say goes there and back."""
    first, second = obj(V1BETA1, kind, **old), obj(V1BETA2, kind, **new)
    assert to_v1beta2(first) == second
    assert to_v1beta1(second) == first


@pytest.mark.parametrize(
    "kind,old,new",
    [
        (
            "ClusterQueue",
            {"spec": {"admissionChecks": ["a", "b"]}},
            {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "a"}, {"name": "b"}]}}},
        ),
        ("ClusterQueue", {"spec": {"admissionChecks": []}}, {"spec": {}}),
        (
            "ClusterQueue",
            {"spec": {"flavorFungibility": {"whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt"}}},
            {"spec": {"flavorFungibility": {"whenCanBorrow": "MayStopSearch", "whenCanPreempt": "MayStopSearch"}}},
        ),
        ("ClusterQueue", {"status": {"pendingWorkloads": 1, "pendingWorkloadsStatus": {"lastChangeTime": "t"}}}, {"status": {"pendingWorkloads": 1}}),
        (
            "Cohort",
            {"status": {"fairSharing": {"weightedShare": 1, "admissionFairSharingStatus": {}}}},
            {"status": {"fairSharing": {"weightedShare": 1}}},
        ),
        ("LocalQueue", {"status": {"flavors": [{"name": "f"}]}}, {"status": {}}),
        ("AdmissionCheck", {"spec": {"controllerName": "c", "retryDelayMinutes": 15}}, {"spec": {"controllerName": "c"}}),
        ("Workload", {"spec": {"priorityClassName": "high", "priorityClassSource": ""}}, {"spec": {}}),
        (
            "MultiKueueCluster",
            {"spec": {"kubeConfig": {"location": "", "locationType": "Secret"}, "clusterProfileRef": {"name": "p"}}},
            {"spec": {"clusterSource": {"clusterProfileRef": {"name": "p"}}}},
        ),
    ],
)
def test_only_up(kind: str, old: Tree, new: Tree) -> None:
    """What v1beta2 no longer says is dropped or said in its new form."""
    assert to_v1beta2(obj(V1BETA1, kind, **old)) == obj(V1BETA2, kind, **new)


@pytest.mark.parametrize(
    "kind,new,old",
    [
        ("ClusterQueue", {"spec": {"concurrentAdmissionPolicy": {"migration": {}}}}, {"spec": {}}),
        ("MultiKueueConfig", {"spec": {"clusters": ["a"], "quotaManagement": "Manual"}}, {"spec": {"clusters": ["a"]}}),
        ("Workload", {"spec": {"preemptionGates": [{"name": "g"}]}, "status": {"preemptionGates": []}}, {"spec": {}, "status": {}}),
        (
            "Workload",
            {"spec": {"podSets": [{"topologyRequest": {"required": "r", "podsetSliceRequiredTopologyConstraints": []}}, {"name": "b"}]}},
            {"spec": {"podSets": [{"topologyRequest": {"required": "r"}}, {"name": "b"}]}},
        ),
        (
            "MultiKueueCluster",
            {"spec": {"clusterSource": {"clusterProfileRef": {"name": "p"}}}},
            {"spec": {"kubeConfig": {"location": "", "locationType": ""}, "clusterProfileRef": {"name": "p"}}},
        ),
    ],
)
def test_only_down(kind: str, new: Tree, old: Tree) -> None:
    """What v1beta1 cannot say is dropped."""
    assert to_v1beta1(obj(V1BETA2, kind, **new)) == obj(V1BETA1, kind, **old)


@pytest.mark.parametrize("kind,old,new", BOTH_WAYS)
def test_pure(kind: str, old: Tree, new: Tree) -> None:
    """A conversion leaves its argument alone, and shares the metadata with it."""
    for convert, tree in ((to_v1beta2, obj(V1BETA1, kind, **old)), (to_v1beta1, obj(V1BETA2, kind, **new))):
        before = copy.deepcopy(tree)
        assert convert(tree)["metadata"] is tree["metadata"]
        assert tree == before


@pytest.mark.parametrize("kind", [each.kind for each in KINDS])
def test_objects_without_spec(kind: str) -> None:
    """An object without spec and status only changes its version."""
    assert to_v1beta2(obj(V1BETA1, kind)) == obj(V1BETA2, kind)
    assert to_v1beta1(obj(V1BETA2, kind)) == obj(V1BETA1, kind)
