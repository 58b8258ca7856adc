"""JobSets as Kueue reads them."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.integrations.jobset import JobSetIntegration


def test_a_jobset_without_roles_asks_for_nothing() -> None:
    """A JobSet may have no replicated Jobs: it has no pod sets, nothing to give back, and is started and stopped like any other."""
    kind, empty = JobSetIntegration(), {"metadata": {"name": "js"}, "spec": {}}
    assert (kind.pod_sets(empty), kind.reclaimable(empty), kind.pods_ready(empty)) == ([], [], True)
    started: Tree = kind.start(empty, [])
    assert started["spec"]["suspend"] is False
    stopped = kind.stop(started, [])
    assert stopped is not None
    assert stopped[0]["spec"]["suspend"] is True
