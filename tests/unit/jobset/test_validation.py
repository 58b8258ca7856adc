"""Refusals of new JobSets: every rule, in upstream's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.jobset.validation import problems_of, validate_create
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, WebhookRequest
from tests.unit.jobset.samples import jobset, role

INTERNAL = "<nil>: Internal error: "
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric "
    "character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


class Objects:
    """A reader over given objects."""

    def __init__(self, *objects: tuple[str, Tree]) -> None:
        self.objects = list(objects)

    def get(self, resource: str, namespace: str, name: str) -> Tree | None:
        """Return an object, or None."""
        return next((each for kind, each in self.objects if kind == resource and each["metadata"]["name"] == name), None)

    def list(self, resource: str, namespace: str = "") -> Sequence[Tree]:
        """Return all objects of a kind."""
        return [each for kind, each in self.objects if kind == resource]

    def starting(self, resource: str, namespace: str, prefix: str) -> Sequence[Tree]:
        """Return the objects whose names start so."""
        return [each for each in self.list(resource) if each["metadata"]["name"].startswith(prefix)]


def texts(js: Tree, reader: Objects | None = None, **gates: bool) -> list[str]:
    """Return what is wrong with a JobSet."""
    return [str(each) for each in problems_of(js, FeatureGates(gates), reader or Objects(), Env())]


def policy(*rules: Tree) -> dict[str, Any]:
    """Return a failure policy as an argument of `jobset`."""
    return {"failurePolicy": {"rules": [{"name": f"r{index}", "action": "FailJobSet", **rule} for index, rule in enumerate(rules)]}}


def test_a_sound_jobset_passes() -> None:
    """Nothing is wrong with an ordinary JobSet, nor with one without roles."""
    assert texts(jobset(role("a", 2), role("b", 0), **policy({"targetReplicatedJobs": ["a"]}))) == []
    assert texts({"metadata": {"name": "js"}, "spec": {"replicatedJobs": []}}) == []
    assert texts({"metadata": {"name": "js"}}) == []


@pytest.mark.parametrize(
    "js, expected",
    [
        (jobset(role(dependsOn=[{"name": "w", "status": "Ready"}])), "DependsOn can't be set for the first ReplicatedJob"),
        (jobset(role(), role("b", dependsOn=[{"name": "c", "status": "Ready"}])), "replicatedJob: b cannot depend on replicatedJob: c"),
        (jobset(role(parallelism=2**16, replicas=2**15)), "the product of replicas and parallelism must not exceed 2147483647 for replicatedJob 'w'"),
        (
            jobset(successPolicy={"operator": "All", "targetReplicatedJobs": ["x"]}),
            "invalid replicatedJob name 'x' does not appear in .spec.ReplicatedJobs",
        ),
        (
            jobset(failurePolicy={"restartStrategy": "InPlaceRestart"}),
            "InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is disabled",
        ),
        (
            jobset(**policy({"action": "RestartJob", "targetReplicatedJobs": ["x"]})),
            "RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed when RestartJob feature gate is disabled",
        ),
        (
            jobset(**policy({"targetReplicatedJobs": ["x"]})),
            "invalid replicatedJob name 'x' in failure policy does not appear in .spec.ReplicatedJobs",
        ),
        (
            jobset(**policy({"onJobFailureReasons": ["Odd"]})),
            "invalid job failure reason 'Odd' in failure policy is not a recognized job failure reason",
        ),
        (jobset(**policy({"name": "a"}, {"name": "a"})), "rule names are not unique, rules with indices [0 1] all have the same name 'a'"),
        (jobset(coordinator={"replicatedJob": "x"}), "coordinator replicatedJob x does not exist"),
        (jobset(coordinator={"replicatedJob": "w", "jobIndex": 1}), "coordinator job index 1 is invalid for replicatedJob w"),
        (jobset(coordinator={"replicatedJob": "w", "podIndex": 1}), "coordinator pod index 1 is invalid for replicatedJob w job index 0"),
        (
            jobset(role(completions=None), coordinator={"replicatedJob": "w"}),
            "job for coordinator pod must be indexed completion mode, and completions number must be set",
        ),
    ],
)
def test_problems_without_a_field(js: Tree, expected: str) -> None:
    """Problems that upstream raises as plain errors come without a path."""
    assert texts(js) == [INTERNAL + expected]


@pytest.mark.parametrize(
    "js, expected",
    [
        (jobset(network={"subdomain": "Bad_Sub"}), ["spec.network.subdomain", "spec.network.subdomain"]),
        (jobset(network={"subdomain": "s" * 64}), ["spec.network.subdomain"]),
        (jobset(managedBy="other"), ["spec.managedBy"]),
        (jobset(managedBy="acme.io/" + "x" * 63), ["spec.managedBy"]),
        (jobset(role(groupName="Bad_Group")), ["spec.replicatedJobs[0].groupName"]),
        (jobset(role("Upper")), ["spec.replicatedJobs[0].name", "spec.replicatedJobs[0].name"]),
        (jobset(role(), role("x" * 60), name="js"), ["spec.replicatedJobs[1].name", "spec.replicatedJobs[1].name"]),
    ],
)
def test_problems_of_fields(js: Tree, expected: list[str]) -> None:
    """Names and the like are told with their path."""
    assert [text.partition(":")[0] for text in texts(js)] == expected


def test_words_about_names() -> None:
    """Names that get too long are told in JobSet's own words, and wrong characters in the API's."""
    long = jobset(role("w", 1000, completions=100), name="n" * 49)
    job_name = "n" * 49 + "-w-999"
    message = "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"
    assert texts(long) == [f'spec.replicatedJobs[0].name: Invalid value: "{job_name}": {message}']
    assert texts(jobset(role(completions=None), name="a.b")) == [f'spec.replicatedJobs[0].name: Invalid value: "a.b-w-0": {LABEL}']
    assert "job names generated" in texts(jobset(name="n" * 61))[0]


def test_generated_names_are_as_long() -> None:
    """A JobSet that is still to be named is checked with a name of the length it will have."""
    js = jobset(role("worker", completions=None))
    js["metadata"] = {"generateName": "g" * 57 + "-", "namespace": "default"}
    assert "job names generated" in texts(js)[0]
    js["metadata"] = {"generateName": "short-", "namespace": "default"}
    assert texts(js) == []


def test_the_coordinator_must_fit_into_a_label() -> None:
    """An address of more than 63 characters is refused now, not when the first Job is made."""
    js = jobset(role("w"), network={"subdomain": "s" * 60}, coordinator={"replicatedJob": "w"})
    value = "js-w-0-0." + "s" * 60
    head = f'spec will lead to invalid label value "{value}" for coordinator label "jobset.sigs.k8s.io/coordinator" '
    assert texts(js) == [INTERNAL + head + "(long JobSet / ReplicatedJob / SubDomain name?): must be no more than 63 bytes"]


@pytest.mark.parametrize("name, length", [("", True), ("a" * 129, True), ("1a", False), ("a-b", False), ("a,", False)])
def test_rule_names(name: str, length: bool) -> None:
    """Rule names become condition reasons, and look like them."""
    found = texts(jobset(**policy({"name": name})))
    assert any("invalid failure policy rule name of length" in text for text in found) is length
    assert any("must start with an alphabetic character" in text for text in found) is (name != "a" * 129)


def test_single_restarts_have_a_list_per_role() -> None:
    """With the gate a role is at most as large as the list of restarts may get."""
    js = jobset(role(replicas=1025), **policy({"action": "RestartJob"}, {"action": "RestartJobAndIgnoreMaxRestarts"}))
    (text,) = texts(js, RestartJob=True)
    assert text.endswith("and a replicated job with replicas > 1024")


def test_in_place_restart_wants_jobs_that_never_fail() -> None:
    """With the gate each role needs the largest back-off limit, replacement after failure, and one fixed size."""
    js = jobset(role(completions=2), failurePolicy={"restartStrategy": "InPlaceRestart"})
    assert [text.split(": replicatedJob")[0] for text in texts(js, InPlaceRestart=True)] == [
        "spec.replicatedJobs[0].template.spec.backoffLimit: Invalid value: 0",
        "spec.replicatedJobs[0].template.spec.podReplacementPolicy: Invalid value: null",
        "spec.replicatedJobs[0].template.spec.completions: Invalid value: 2",
    ]
    good = jobset(role(backoffLimit=2147483647, podReplacementPolicy="Failed"), failurePolicy={"restartStrategy": "InPlaceRestart"})
    assert texts(good, InPlaceRestart=True) == []


def test_all_problems_in_one_refusal() -> None:
    """A refusal is an Invalid status with a cause for each problem."""
    js = jobset(role(dependsOn=[{"name": "x", "status": "Ready"}]))
    with pytest.raises(Denied) as caught:
        validate_create(WebhookRequest("CREATE", "default", "js", js, None, Env(), FeatureGates(), Objects()))
    denied = caught.value
    assert (denied.code, denied.reason) == (422, "Invalid")
    first, second = "DependsOn can't be set for the first ReplicatedJob", "replicatedJob: w cannot depend on replicatedJob: x"
    assert denied.message == f'JobSet.jobset.x-k8s.io "js" is invalid: [{INTERNAL}{first}, {INTERNAL}{second}]'
    assert denied.details is not None
    assert [cause["message"] for cause in denied.details["causes"]] == [f"Internal error: {first}", f"Internal error: {second}"]


# ----------------------------------------------------------------------------------------------- claims


def claims(*policies: tuple[str, str], mounted: tuple[str, ...] = ("data",), volumes: tuple[str, ...] = (), storage: str = "1Gi") -> Tree:
    """Return a JobSet with claim policies (name, retention)."""
    pod = {
        "containers": [{"name": "main", "image": "x", "volumeMounts": [{"name": name, "mountPath": f"/{name}"} for name in mounted]}],
        "volumes": [{"name": name, "emptyDir": {}} for name in volumes],
    }
    entries = [
        {
            "templates": [{"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}}],
            "retentionPolicy": {"whenDeleted": retention},
        }
        for name, retention in policies
    ]
    return jobset(role(pod=pod), volumeClaimPolicies=entries)


def test_claim_names_and_mounts() -> None:
    """Claim templates are unique, named soundly, mounted somewhere and no volume's namesake."""
    assert texts(claims(("data", "Delete"))) == []
    at = "spec.volumeClaimPolicies[1].template[0].name"
    assert texts(claims(("data", "Delete"), ("data", "Delete"))) == [
        f'{at}: Invalid value: "data": names must be unique for VolumeClaimPolicies template'
    ]
    (text,) = texts(claims(("data", "Delete"), mounted=()))
    assert text.endswith("replicatedJob containers don't have a matching volumeMount: data from VolumeClaimPolicies")
    (text,) = texts(claims(("data", "Delete"), volumes=("own", "data")))
    where = "spec.replicatedJobs[0].template.spec.template.spec.volumes[1].name"
    assert text == f'{where}: Invalid value: "data": volume name conflicts with VolumeClaimPolicy template name: data'
    long = "d" * 61
    assert any("VolumeClaimPolicies template name is too long" in text for text in texts(claims((long, "Delete"), mounted=(long,))))
    assert any("RFC 1123 subdomain" in text for text in texts(claims(("D_", "Delete"), mounted=("D_",))))


def existing(storage: str = "1024Mi", **spec: Any) -> Objects:
    """Return a reader that knows a bound claim of the name that will be asked for."""
    full = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}, "volumeName": "pv", "volumeMode": "Filesystem", **spec}
    return Objects(("persistentvolumeclaims", {"metadata": {"name": "data-js", "namespace": "default"}, "spec": full}))


def test_a_kept_claim_is_used_again() -> None:
    """A claim that exists may be used where it is one to keep and is as the template wants it; what the server filled in is no difference."""
    assert texts(claims(("data", "Retain")), existing()) == []
    at = "spec.volumeClaimPolicies[0]"
    assert texts(claims(("data", "Delete")), existing()) == [
        f'{at}.retentionPolicy.whenDeleted: Invalid value: "Delete": retentionPolicy must be retain when PVC exists'
    ]
    (text,) = texts(claims(("data", "Retain"), storage="2Gi"), existing())
    assert text.startswith(f"{at}.template[0].spec: Invalid value: ")
    assert text.endswith("spec does not match existing PVC data-js in namespace default")
