"""Values in refusals: a whole replicated job or claim is shown as Go writes its structs, field by field in their order."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.jobset.printing import printed_claim_spec, printed_roles
from kubemini.controllers.jobset.update_validation import problems_of
from kubemini.machinery.errors import invalid
from kubemini.runtime.gates import FeatureGates
from tests.unit.jobset.samples import jobset

POD = {"restartPolicy": "Never", "containers": [{"image": "pause", "name": "main", "resources": {"requests": {"memory": "1Gi", "cpu": "1000m"}}}]}
ROLE: Tree = {
    "replicas": 2,
    "dependsOn": [{"status": "Ready", "name": "a"}],
    "template": {
        "spec": {
            "template": {"spec": POD, "metadata": {"labels": {"z": "1", "a": "2"}}},
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "completions": 3,
            "parallelism": 3,
            "podFailurePolicy": {"rules": [{"onExitCodes": {"values": [1], "operator": "In"}, "action": "FailJob"}]},
        }
    },
    "groupName": "default",
    "name": "w",
}
SHOWN = (
    '{"name":"w","groupName":"default","template":{"metadata":{},"spec":{"parallelism":3,"completions":3,'
    '"podFailurePolicy":{"rules":[{"action":"FailJob","onExitCodes":{"operator":"In","values":[1]}}]},"backoffLimit":0,'
    '"template":{"metadata":{"labels":{"a":"2","z":"1"}},"spec":{"containers":[{"name":"main","image":"pause",'
    '"resources":{"requests":{"cpu":"1","memory":"1Gi"}}}],"restartPolicy":"Never"}},"completionMode":"Indexed"}},'
    '"replicas":2,"dependsOn":[{"name":"a","status":"Ready"}]}'
)
EMPTY = '{"name":"b","template":{"metadata":{},"spec":{"template":{"metadata":{},"spec":{"containers":null}}}}}'


def test_replicated_jobs() -> None:
    """Fields come in the order of the Go types, maps sorted, quantities canonical; zeros that Go omits are missing, structs that it always writes are there."""
    assert invalid("f", printed_roles([ROLE, {"name": "b", "replicas": 0}]), "no").body == f"Invalid value: [{SHOWN},{EMPTY}]: no"


def test_a_refused_update_shows_what_was_wanted() -> None:
    """The refusal of a change shows all replicated jobs as they would be."""
    old = jobset(ROLE)
    new = {**old, "spec": {**old["spec"], "replicatedJobs": [{**ROLE, "replicas": 3}]}}
    (problem,) = problems_of(new, old, FeatureGates({}))
    shown = SHOWN.replace('"replicas":2', '"replicas":3')
    assert str(problem) == f"spec.replicatedJobs: Invalid value: [{shown}]: field is immutable"


def test_claims() -> None:
    """A claim's spec is shown in the order of its Go type."""
    template = {
        "metadata": {"name": "data"},
        "spec": {"storageClassName": "s", "resources": {"requests": {"storage": "1024Mi"}}, "accessModes": ["ReadWriteOnce"]},
    }
    shown = '{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}},"storageClassName":"s"}'
    assert invalid("f", printed_claim_spec(template)).body == f"Invalid value: {shown}"
