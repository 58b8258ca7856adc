"""What is read out of Workloads: usage, names, order."""

from __future__ import annotations

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.integrations.pods import role_hash
from kubemini.controllers.kueue.integrations.podsets import equivalent
from kubemini.controllers.kueue.workloads import reserved_usage, workload_name


def admitted(spec_count: int, count: int, cpu: str, done: int) -> Tree:
    """Return a Workload that holds quota for `count` of its pods, `done` of which need it no more."""
    template = {"metadata": {}, "spec": {"containers": [{"name": "c"}]}}
    return {
        "metadata": {"name": "w", "namespace": "ns"},
        "spec": {"podSets": [{"name": "main", "count": spec_count, "template": template}], "queueName": "lq"},
        "status": {
            "conditions": [{"type": "QuotaReserved", "status": "True"}, {"type": "Admitted", "status": "True"}],
            "admission": {
                "clusterQueue": "cq",
                "podSetAssignments": [{"name": "main", "count": count, "flavors": {"cpu": "f"}, "resourceUsage": {"cpu": cpu}}],
            },
            "reclaimablePods": [{"name": "main", "count": done}],
        },
    }


@pytest.mark.parametrize("workload, cpu", [(admitted(4, 4, "4", 1), 3000), (admitted(4, 1, "1", 3), 1000), (admitted(4, 4, "4", 4), 0)])
def test_pods_that_are_done_are_counted_off_once(workload: Tree, cpu: int) -> None:
    """A Workload that was admitted again after some of its pods were done holds quota for the rest, not for the rest less those again."""
    assert reserved_usage(workload) == {("f", "cpu"): cpu}


def test_a_job_admitted_again_with_pods_done_is_still_its_workloads_job() -> None:
    """The job runs with all its parallelism: fewer pods in the admission do not make it another job (it was stopped and started for ever)."""
    workload = admitted(4, 1, "1", 3)
    assert equivalent(workload["spec"]["podSets"], workload, {}, suspended=False)


def test_a_recreated_job_never_has_the_name_of_the_old_ones_workload() -> None:
    """The owner's uid is part of the name; names are cut to what fits."""
    assert workload_name("Job", "batch", "a", "1") != workload_name("Job", "batch", "a", "2")
    assert len(workload_name("Job", "batch", "a" * 300, "1")) == 253


def test_role_hash_is_the_one_of_a_real_cluster() -> None:
    """The hash of a pod with one container of one cpu, as recorded on a real control plane."""
    tolerations = [
        {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "priority": 0, "tolerations": tolerations}
    assert role_hash(spec) == "4b0469f7"
