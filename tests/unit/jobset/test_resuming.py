"""What reaches a child Job when it is resumed."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.jobset.resuming import resumed
from kubemini.controllers.jobset.view import Role
from tests.unit.jobset.samples import job, role


def suspended(template: Tree) -> Tree:
    """Return a suspended Job with a pod template."""
    return job(suspend=True, spec={"template": template})


def test_nothing_new_leaves_the_template_itself() -> None:
    """Where the template says what the Job has, the very same template stays: a write that changes suspend alone is always allowed."""
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"nodeSelector": {"a": "b"}, "containers": []}}
    before = suspended(template)
    after = resumed(before, Role(role(meta={"labels": {"app": "x"}}, pod={"nodeSelector": {"a": "b"}})))
    assert after["spec"]["suspend"] is False
    assert after["spec"]["template"] is template
    assert before["spec"]["suspend"] is True


def test_labels_annotations_and_tolerations_are_merged() -> None:
    """What others added stays, the template wins, and nothing comes twice."""
    before = suspended(
        {
            "metadata": {"labels": {"app": "old", "controller-uid": "u"}, "annotations": {"mine": "1"}},
            "spec": {"tolerations": [{"key": "a", "operator": "Exists"}]},
        }
    )
    pod = {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]}
    template = resumed(before, Role(role(meta={"labels": {"app": "new", "team": "red"}, "annotations": {"note": "n"}}, pod=pod)))["spec"]["template"]
    assert template["metadata"] == {"labels": {"app": "new", "controller-uid": "u", "team": "red"}, "annotations": {"mine": "1", "note": "n"}}
    assert [each["key"] for each in template["spec"]["tolerations"]] == ["a", "b"]


def test_selectors_and_gates_of_an_earlier_admission_go() -> None:
    """A node selector or scheduling gate that the template no longer has would keep the pods pending for ever."""
    before = suspended({"metadata": {}, "spec": {"nodeSelector": {"pool": "a", "zone": "z"}, "schedulingGates": [{"name": "quota"}]}})
    spec = resumed(before, Role(role(pod={"nodeSelector": {"pool": "b"}})))["spec"]["template"]["spec"]
    assert spec == {"nodeSelector": {"pool": "b"}}
    gated = resumed(before, Role(role(pod={"schedulingGates": [{"name": "topology"}]})))["spec"]["template"]["spec"]
    assert gated == {"schedulingGates": [{"name": "topology"}]}


def test_the_jobs_own_nodes_stay() -> None:
    """The selector of the node-selector strategy belongs to the Job, not to the template."""
    key = "alpha.jobset.sigs.k8s.io/namespaced-job"
    before = suspended({"metadata": {}, "spec": {"nodeSelector": {key: "default_js-w-0", "pool": "a"}}})
    assert resumed(before, Role(role()))["spec"]["template"]["spec"] == {"nodeSelector": {key: "default_js-w-0"}}
