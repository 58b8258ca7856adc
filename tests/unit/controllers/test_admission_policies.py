"""ValidatingAdmissionPolicies: what their status says about their expressions."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import VALIDATING_ADMISSION_POLICIES, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.admission_policies.checking import warnings
from kubemini.controllers.admission_policies.matching import GroupVersionKind, kinds_of
from kubemini.controllers.admission_policies.object_types import ObjectTypes
from kubemini.runtime.informer import Informer
from kubemini.sim.cluster import SimCluster, simulate

JOB = GroupVersionKind("batch", "v1", "Job")
SERVED = (
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("batch", "v1", "jobs", "Job"),
    Resource("batch", "v1", "jobs/status", "Job"),
    Resource("", "v1", "pods", "Pod"),
)
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
"""


def types() -> ObjectTypes:
    """Return the built-in types."""
    return ObjectTypes("1.36", Informer(Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")))


def policy(*expressions: str, **spec: Any) -> Tree:
    """Return the spec of a policy with some rules."""
    return {"validations": [{"expression": each} for each in expressions], **spec}


@pytest.mark.parametrize(
    "rule, kinds",
    [
        (("batch", "v1", "jobs"), ["batch/v1, Kind=Job"]),
        (("", "v1", "pods"), ["/v1, Kind=Pod"]),
        (("*", "v1", "pods"), []),
        (("", "*", "pods"), []),
        (("", "v1", "*"), []),
        (("batch", "v1", "jobs/status"), []),
        (("batch", "v2", "jobs"), []),
    ],
)
def test_kinds_are_those_that_rules_name(rule: tuple[str, str, str], kinds: list[str]) -> None:
    """Wildcards, subresources and what is not served name none."""
    group, version, resource = rule
    constraints = {"resourceRules": [{"apiGroups": [group], "apiVersions": [version], "resources": [resource]}]}
    assert [str(each) for each in kinds_of({"matchConstraints": constraints}, SERVED)] == kinds


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.template.spec.containers.all(c, has(c.image) && c.image.startsWith('registry.example.com/'))",
        "object.metadata.labels.all(k, k != 'x') && object.metadata.creationTimestamp < timestamp('2030-01-01T00:00:00Z')",
        "oldObject == null || object.spec.parallelism >= oldObject.spec.parallelism",
        "request.operation == 'CREATE' || params.anything == 1 || namespaceObject.metadata.name == 'x'",
        "authorizer.group('').resource('pods').check('get').allowed()",
    ],
)
def test_what_fits_the_schema_is_not_warned_about(expression: str) -> None:
    """Fields, nested lists, maps and times of a built-in kind are known; the rest is as it comes."""
    assert warnings(policy(expression), [JOB], types()) == []


def test_faults_are_told_by_expression_and_kind() -> None:
    """Each wrong expression has one warning, with the faults of every kind, pointers included."""
    pod = GroupVersionKind("", "v1", "Pod")
    found = warnings(policy("object.spec.parallelism > 1", "object.spec.nope == 1"), [pod, JOB], types())
    assert [each["fieldRef"] for each in found] == ["spec.validations[0].expression", "spec.validations[1].expression"]
    assert found[0]["warning"] == (
        "/v1, Kind=Pod: ERROR: <input>:1:12: undefined field 'parallelism'\n | object.spec.parallelism > 1\n | ...........^\n"
    )
    assert found[1]["warning"].split("\n\n")[1].startswith("batch/v1, Kind=Job: ERROR: <input>:1:12: undefined field 'nope'")


def test_variables_have_the_types_of_their_expressions() -> None:
    """A variable of a number cannot be compared with text, and one that is not declared is undefined."""
    spec = policy("variables.size == 'x'", "variables.other > 1", "variables.twice > 1")
    spec["variables"] = [{"name": "size", "expression": "object.spec.parallelism"}, {"name": "twice", "expression": "variables.size * 2"}]
    found = [each["warning"] for each in warnings(spec, [JOB], types())]
    assert "found no matching overload for '_==_' applied to '(int, string)'" in found[0]
    assert "undefined field 'other'" in found[1]
    assert len(found) == 2


def test_quantities_have_no_type() -> None:
    """They are text or a number, so expressions cannot name them; the real server says so of its own samples."""
    expression = "object.spec.template.spec.containers.all(c, has(c.resources.requests))"
    (found,) = warnings(policy(expression), [JOB], types())
    assert "ERROR: <input>:1:48: undefined field 'requests'" in found["warning"]


def test_a_kind_without_an_end_is_not_checked() -> None:
    """The schema of a definition holds schemas within schemas."""
    kind = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
    assert warnings(policy("object.nope"), [kind], types()) == []


def test_the_status_follows_the_spec() -> None:
    """Every generation is checked once, built-in and custom kinds alike."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply(WIDGETS)
        await cluster.settle(5)
        rules = [{"apiGroups": ["example.com"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["widgets"]}]
        spec = policy("object.spec.sise > 1", matchConstraints={"resourceRules": rules})
        await cluster.client.create(VALIDATING_ADMISSION_POLICIES, {"metadata": {"name": "p"}, "spec": spec})
        await cluster.settle(5)
        status = (await cluster.client.get(VALIDATING_ADMISSION_POLICIES, "p"))["status"]
        assert status["observedGeneration"] == 1
        (warning,) = status["typeChecking"]["expressionWarnings"]
        assert "example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field 'sise'" in warning["warning"]
        await cluster.client.patch(
            VALIDATING_ADMISSION_POLICIES, "p", {"spec": {"validations": [{"expression": "object.spec.size > 1 && object.metadata.namespace != ''"}]}}
        )
        await cluster.settle(5)
        assert (await cluster.client.get(VALIDATING_ADMISSION_POLICIES, "p"))["status"] == {"observedGeneration": 2, "typeChecking": {}}

    simulate(scenario, seed=1, fleet="none")
