"""How pods are made and repaired, and how a status counts them."""

from __future__ import annotations

from kubemini.controllers.stateful_set import pods
from kubemini.controllers.stateful_set.status import StatusDraft
from tests.unit.statefulset.samples import JUST_READY, NOW, pod, stateful_set

CLAIMS = [{"metadata": {"name": "data"}, "spec": {}}]


def test_made() -> None:
    """A pod has its identity in name, labels, host name and subdomain; the rest is the template's, by identity."""
    owner = stateful_set()
    template = owner.spec["template"]
    made = pods.make(owner, 2, template, "web-abc")
    assert made["metadata"]["name"] == "web-2"
    assert made["metadata"]["generateName"] == "web-"
    assert made["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "web-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "web-abc",
    }
    assert (made["spec"]["hostname"], made["spec"]["subdomain"]) == ("web-2", "svc")
    assert made["spec"]["containers"] is template["spec"]["containers"]
    assert pods.identity_matches(owner, made)
    assert pods.storage_matches(owner, made)


def test_claims_replace_volumes_of_their_name() -> None:
    """Volumes of claims come first; a volume of the template with such a name is replaced."""
    owner = stateful_set(volumeClaimTemplates=CLAIMS)
    template = {"spec": {"containers": [], "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]}}
    made = pods.make(owner, 0, template, "r")
    assert made["spec"]["volumes"] == [{"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}}, {"name": "tmp", "emptyDir": {}}]


def test_repaired() -> None:
    """A stray pod that is adopted gets the labels of its name and the volumes of its ordinal; what fits is left alone."""
    owner = stateful_set(volumeClaimTemplates=CLAIMS)
    stray = {"metadata": {"name": "web-1", "labels": {"app": "web"}}, "spec": {"containers": [], "hostname": "other"}}
    found = pods.repaired(owner, stray)
    assert pods.identity_matches(owner, found)
    assert pods.storage_matches(owner, found)
    assert found["spec"]["hostname"] == "other"
    assert pods.repaired(owner, found) is found


def test_counts() -> None:
    """Terminating pods exist, and are ready while they are, but are of no revision; planned ones count nowhere."""
    draft = StatusDraft(1, "old", "new", 0)
    draft.count([pod(0, "old"), pod(1, "new", since=JUST_READY), pod(2, "old", going=True), None], 5, NOW)
    assert (draft.replicas, draft.ready, draft.available, draft.current, draft.updated) == (3, 3, 2, 1, 1)


def test_completion_wants_everything_updated_and_ready() -> None:
    """The update revision becomes current when all pods are of it and ready; never under OnDelete; at once without pods."""
    draft = StatusDraft(1, "old", "new", 0)
    draft.count([pod(0), pod(1)], 0, NOW)
    draft.complete(stateful_set(3))
    assert draft.current_revision == "old"
    draft.complete(stateful_set(2, updateStrategy={"type": "OnDelete"}))
    assert draft.current_revision == "old"
    draft.complete(stateful_set(2))
    assert (draft.current_revision, draft.current) == ("new", 2)
    empty = StatusDraft(1, "old", "new", 0)
    empty.complete(stateful_set(0))
    assert empty.current_revision == "new"


def test_rendered_as_go_does() -> None:
    """Zero counts are left out but for replicas and availableReplicas; what was written does not differ from itself."""
    draft = StatusDraft(2, "r", "r", 0)
    assert draft.render() == {
        "observedGeneration": 2,
        "replicas": 0,
        "currentRevision": "r",
        "updateRevision": "r",
        "collisionCount": 0,
        "availableReplicas": 0,
    }
    assert not draft.differs(draft.render())
    assert draft.differs({})
