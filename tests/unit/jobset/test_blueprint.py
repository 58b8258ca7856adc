"""How child Jobs are made: names, keys, what is shared, volumes, the node-selector strategy."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.jobset import networking, volumes
from kubemini.controllers.jobset.blueprint import Blueprint
from tests.unit.jobset.samples import UID, jobset, role, view

DOMAIN = "jobset.sigs.k8s.io/"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
BY_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"


def made(*roles: Tree, of: str = "w", index: int = 0, **more: Any) -> Tree:
    """Return one Job of a JobSet."""
    js = view(*roles, **more)
    found = js.role(of)
    assert found is not None
    return Blueprint.of(js, found).make(index, attempt=js.restarts, suspended=js.suspended)


def test_keys_of_a_job() -> None:
    """A Job carries its place in the role, the group and the whole; labels and annotations of Job and template agree."""
    job = made(role("a", 2, groupName="x"), role("b", 3), role("c", 4, groupName="x"), of="c", index=1, status={"restarts": 5})
    keys = {
        "jobset-name": "js",
        "jobset-uid": UID,
        "replicatedjob-name": "c",
        "replicatedjob-replicas": "4",
        "global-replicas": "9",
        "job-index": "1",
        "job-global-index": "6",
        "job-key": sha1(b"default/js-c-1").hexdigest(),
        "group-name": "x",
        "group-replicas": "6",
        "job-group-index": "3",
        "restart-attempt": "5",
    }
    labels = job["metadata"]["labels"]
    assert labels == {DOMAIN + key: value for key, value in keys.items()}
    assert job["metadata"]["annotations"] == labels
    assert job["spec"]["template"]["metadata"] == {"labels": labels, "annotations": labels}
    assert job["metadata"]["name"] == "js-c-1"


def test_own_labels_of_the_templates_stay() -> None:
    """Labels and annotations of the role's templates are kept, on their own level; the JobSet's keys win."""
    tree = role(meta={"labels": {"app": "x", DOMAIN + "job-index": "9"}, "annotations": {"note": "n"}}, annotations={"of": "job"})
    job = made(tree)
    template = job["spec"]["template"]["metadata"]
    assert (template["labels"]["app"], template["labels"][DOMAIN + "job-index"], template["annotations"]["note"]) == ("x", "0", "n")
    assert "of" not in template["annotations"]
    assert job["metadata"]["annotations"]["of"] == "job"
    assert "app" not in job["metadata"]["labels"]


def test_single_attempts_are_shown_with_the_gate_only() -> None:
    """The restart attempt of a single Job is a key only where the gate gives it."""
    js = view()
    blueprint = Blueprint.of(js, js.roles[0])
    key = DOMAIN + "job-restart-attempt"
    assert key not in blueprint.make(0, attempt=0, suspended=False)["metadata"]["labels"]
    job = blueprint.make(0, attempt=0, suspended=False, job_attempt=2)
    assert job["metadata"]["labels"][key] == job["spec"]["template"]["metadata"]["annotations"][key] == "2"


def test_jobs_of_a_role_share_their_pod_spec() -> None:
    """All Jobs of a role hold the very same pod spec, and making one leaves the JobSet as it is."""
    js = view(role(replicas=3))
    before = repr(js.tree)
    blueprint = Blueprint.of(js, js.roles[0])
    specs = [blueprint.make(index, attempt=0, suspended=False)["spec"]["template"]["spec"] for index in range(3)]
    assert specs[0] is specs[1] is specs[2]
    assert repr(js.tree) == before


def test_suspension_is_always_explicit() -> None:
    """A Job says whether it is suspended, either way, whatever the template says."""
    assert made(role(suspend=True))["spec"]["suspend"] is False
    assert made(role(), suspend=True)["spec"]["suspend"] is True


def test_subdomain() -> None:
    """With DNS the pods' subdomain is the Service; without, or with the network removed, it is the template's own."""
    assert made(role())["spec"]["template"]["spec"]["subdomain"] == "js"
    assert made(role(), network={"enableDNSHostnames": True, "subdomain": "mesh"})["spec"]["template"]["spec"]["subdomain"] == "mesh"
    assert "subdomain" not in made(role(), network={"enableDNSHostnames": False})["spec"]["template"]["spec"]
    assert made(role(pod={"subdomain": "own"}), network=None)["spec"]["template"]["spec"]["subdomain"] == "own"


def test_coordinator() -> None:
    """The coordinator's address is a key of every Job."""
    job = made(
        role("w"),
        role("driver", 2, completions=2),
        coordinator={"replicatedJob": "driver", "jobIndex": 1, "podIndex": 1},
        network={"subdomain": "mesh"},
    )
    assert job["metadata"]["labels"][DOMAIN + "coordinator"] == "js-driver-1-1.mesh"
    assert networking.coordinator({}, "js") == ""


def test_exclusive_annotations() -> None:
    """Exclusive placement is an annotation, never a label; the role's own wins; the other one comes from the level that has the first."""
    job = made(role(), annotations={EXCLUSIVE: "rack", BY_SELECTOR: "true"})
    assert job["metadata"]["annotations"][EXCLUSIVE] == job["spec"]["template"]["metadata"]["annotations"][EXCLUSIVE] == "rack"
    assert EXCLUSIVE not in job["metadata"]["labels"]
    assert (
        made(role(annotations={EXCLUSIVE: "host"}), annotations={EXCLUSIVE: "rack"})["spec"]["template"]["metadata"]["annotations"][EXCLUSIVE]
        == "host"
    )
    assert BY_SELECTOR not in made(role(), annotations={BY_SELECTOR: "true"})["metadata"]["annotations"]


def test_node_selector_strategy() -> None:
    """Under the node-selector strategy each Job is bound to the nodes labelled for it, and tolerates their taint."""
    job = made(
        role(pod={"nodeSelector": {"a": "b"}, "tolerations": [{"key": "x", "operator": "Exists"}]}),
        annotations={EXCLUSIVE: "rack", BY_SELECTOR: "true"},
    )
    spec = job["spec"]["template"]["spec"]
    assert spec["nodeSelector"] == {"a": "b", "alpha.jobset.sigs.k8s.io/namespaced-job": "default_js-w-0"}
    assert [each["key"] for each in spec["tolerations"]] == ["x", "alpha.jobset.sigs.k8s.io/no-schedule"]


def test_owner() -> None:
    """The JobSet controls its Jobs and its foreground deletion waits for them."""
    (reference,) = made(role())["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "name": "js",
        "uid": UID,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def test_service() -> None:
    """The Service is headless, selects all pods of the JobSet and publishes unready ones unless told not to."""
    service = networking.service(jobset(network={"enableDNSHostnames": True, "subdomain": "mesh"}))
    assert service["metadata"]["name"] == "mesh"
    assert service["spec"] == {"clusterIP": "None", "selector": {DOMAIN + "jobset-name": "js"}, "publishNotReadyAddresses": True}
    assert networking.service(jobset(network={"publishNotReadyAddresses": False}))["spec"]["publishNotReadyAddresses"] is False


CLAIMS: dict[str, Any] = {
    "volumeClaimPolicies": [
        {
            "templates": [{"metadata": {"name": "data", "labels": {"app": "x"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
            "retentionPolicy": {"whenDeleted": "Delete"},
        },
        {"templates": [{"metadata": {"name": "keep", "annotations": {"n": "1"}}, "spec": {}}], "retentionPolicy": {"whenDeleted": "Retain"}},
    ]
}


def test_claims() -> None:
    """Claims are named after template and JobSet; those to be deleted are owned, those to be kept are not."""
    js = jobset(**CLAIMS)
    data, keep = (claim for policy in js["spec"]["volumeClaimPolicies"] for claim in volumes.claims(js, policy))
    assert data["metadata"]["name"] == "data-js"
    assert data["metadata"]["labels"] == {"app": "x", DOMAIN + "jobset-name": "js"}
    assert data["metadata"]["ownerReferences"][0]["uid"] == UID
    assert keep["metadata"] == {"name": "keep-js", "namespace": "default", "labels": {DOMAIN + "jobset-name": "js"}, "annotations": {"n": "1"}}


def test_volumes_go_where_they_are_mounted() -> None:
    """A Job gets a volume for each claim that one of its containers mounts, after its own volumes."""
    mount = {"name": "data", "mountPath": "/d"}
    pod = {"initContainers": [{"name": "i", "image": "x", "volumeMounts": [mount]}], "volumes": [{"name": "own", "emptyDir": {}}]}
    found = made(role(pod=pod), **CLAIMS)["spec"]["template"]["spec"]["volumes"]
    assert [each["name"] for each in found] == ["own", "data"]
    assert found[1]["persistentVolumeClaim"]["claimName"] == "data-js"
    assert "volumes" not in made(role(), **CLAIMS)["spec"]["template"]["spec"]
