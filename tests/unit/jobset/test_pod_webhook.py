"""The pod webhooks: priority label, leaders' affinities, followers' node selectors and refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.jobset.pod_webhook import mutate, validate
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, WebhookRequest
from tests.unit.jobset.test_validation import Objects

RACK = "example.com/rack"
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
DOMAIN = "jobset.sigs.k8s.io/"


def pod(
    index: int = 0, *, suffix: str = "abcde", node: str = "", owner: str = "job-uid", phase: str = "Pending", exclusive: bool = True, **spec: Any
) -> Tree:
    """Return a pod of Job js-w-0."""
    annotations = {DOMAIN + "jobset-name": "js", "batch.kubernetes.io/job-completion-index": str(index)}
    if exclusive:
        annotations[EXCLUSIVE] = RACK
    labels = {DOMAIN + "jobset-name": "js", DOMAIN + "replicatedjob-name": "w", DOMAIN + "job-index": "0", DOMAIN + "job-key": "k"}
    if node:
        spec["nodeName"] = node
    meta = {"name": f"js-w-0-{index}-{suffix}", "namespace": "default", "labels": labels, "annotations": annotations}
    owners = [{"kind": "Job", "name": "js-w-0", "uid": owner, "controller": True}] if owner else []
    return {"metadata": {**meta, "ownerReferences": owners}, "spec": {"priority": 7, **spec}, "status": {"phase": phase}}


def request(obj: Tree, *others: Tree, labels: Tree | None = None) -> WebhookRequest:
    """Return the creation of a pod beside other pods, with one node n-0."""
    node = {"metadata": {"name": "n-0", "labels": {RACK: "r0"} if labels is None else labels}}
    reader = Objects(("nodes", node), *(("pods", each) for each in others))
    return WebhookRequest("CREATE", "default", obj["metadata"]["name"], obj, None, Env(), FeatureGates(), reader)


def refusal(act: Callable[[WebhookRequest], object], asked: WebhookRequest) -> Denied:
    """Return how a request is refused."""
    with pytest.raises(Denied) as caught:
        act(asked)
    return caught.value


def admitted(obj: Tree, *others: Tree) -> Tree:
    """Return a pod as both webhooks let it pass."""
    new = mutate(request(obj, *others)) or obj
    validate(request(new, *others))
    return new


def test_other_pods_pass_untouched() -> None:
    """A pod of no JobSet, and one of the node-selector strategy, is left alone."""
    assert mutate(request({"metadata": {"name": "x"}, "spec": {}})) is None
    by_selector = pod()
    by_selector["metadata"]["annotations"]["alpha.jobset.sigs.k8s.io/node-selector"] = "true"
    assert mutate(request(by_selector)) is None
    validate(request(by_selector))


def test_the_label_selects_pods() -> None:
    """JobSet's webhooks are installed for pods with the label of a JobSet: one with the annotation alone is nobody's leader or follower."""
    for index in (0, 1):
        annotated = pod(index)
        del annotated["metadata"]["labels"][DOMAIN + "jobset-name"]
        assert mutate(request(annotated)) is None
        validate(request(annotated))


def test_every_pod_of_a_jobset_shows_its_priority() -> None:
    """The priority is a label whether placement is exclusive or not, so that exclusive leaders keep away from the others too."""
    plain = pod(1, exclusive=False)
    new = admitted(plain)
    assert new["metadata"]["labels"][DOMAIN + "priority"] == "7"
    assert new["spec"] is plain["spec"]
    assert DOMAIN + "priority" not in plain["metadata"]["labels"]


def test_a_leader_gets_affinities() -> None:
    """A leader goes with its own Job and away from other Jobs of its priority, in all namespaces, beside what it wants itself."""
    own = {"labelSelector": {}, "topologyKey": "zone"}
    affinity = admitted(pod(affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [own]}}))["spec"]["affinity"]
    first, second = affinity["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert first == own
    assert second == {
        "labelSelector": {"matchExpressions": [{"key": DOMAIN + "job-key", "operator": "In", "values": ["k"]}]},
        "topologyKey": RACK,
        "namespaceSelector": {},
    }
    (apart,) = affinity["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["labelSelector"]["matchExpressions"] == [
        {"key": DOMAIN + "job-key", "operator": "Exists"},
        {"key": DOMAIN + "job-key", "operator": "NotIn", "values": ["k"]},
        {"key": DOMAIN + "priority", "operator": "In", "values": ["7"]},
    ]


def test_a_follower_goes_where_its_leader_is() -> None:
    """A follower selects its leader's domain besides what it selects itself; followers of one template share the selector."""
    selector = {"disk": "ssd"}
    leader = pod(node="n-0", suffix="zzzzz")
    first, second = (admitted(pod(index, nodeSelector=selector), leader) for index in (1, 2))
    assert first["spec"]["nodeSelector"] == {"disk": "ssd", RACK: "r0"}
    assert first["spec"]["nodeSelector"] is second["spec"]["nodeSelector"]
    assert selector == {"disk": "ssd"}


@pytest.mark.parametrize(
    "leaders",
    [
        [],
        [pod()],
        [pod(node="n-0", phase="Failed")],
        [pod(node="n-0", phase="Succeeded")],
        [{**pod(node="n-0"), "metadata": {**pod(node="n-0")["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}],
        [pod(node="n-0"), pod(node="n-0", suffix="other")],
        [pod(node="n-0", owner="another-job")],
        [pod(node="n-0", exclusive=False)],
    ],
)
def test_followers_wait_for_one_living_bound_leader(leaders: list[Tree]) -> None:
    """Without exactly one leader of the same Job that lives and is bound, a follower is refused: it got no node selector."""
    follower = mutate(request(pod(1), *leaders))
    assert follower is not None
    assert refusal(validate, request(follower, *leaders)).message == "follower pod node selector not set"


@pytest.mark.parametrize(
    "leaders, message",
    [
        ([], "expected 1 leader pod (js-w-0-0), but got 0. this is an expected, transient error"),
        ([pod(node="n-0"), pod(suffix="other")], "expected 1 leader pod (js-w-0-0), but got 2. this is an expected, transient error"),
        ([pod()], "leader pod not yet scheduled, not creating follower pod. this is an expected, transient error"),
        ([pod(node="n-0", owner="b")], "follower pod owner UID (job-uid) != leader pod owner UID (b)"),
    ],
)
def test_reasons_of_a_refusal(leaders: list[Tree], message: str) -> None:
    """A follower that brings its own selector for the topology is told what is the matter with its leader; it is Forbidden, not wrong."""
    denied = refusal(validate, request(pod(1, nodeSelector={RACK: "r0"}), *leaders))
    assert (denied.message, denied.code, denied.reason) == (message, 403, "Forbidden")


def test_a_selector_of_another_kind_is_not_enough() -> None:
    """The selector must be for the topology."""
    message = refusal(validate, request(pod(1, nodeSelector={"disk": "ssd"}))).message
    assert message == f"follower pod node selector for topology domain not found. missing selector: {RACK}"


def test_an_ended_leader_beside_the_new_one_is_ignored() -> None:
    """After a retry within the Job the failed leader stays; the living one counts."""
    new = admitted(pod(1), pod(node="gone", suffix="older", phase="Failed"), pod(node="n-0", suffix="newer"))
    assert new["spec"]["nodeSelector"] == {RACK: "r0"}


def test_no_empty_selector() -> None:
    """When the leader's node is gone, or names no domain, the follower is refused; its selector never gets an empty value."""
    denied = refusal(mutate, request(pod(1), pod(node="gone")))
    assert (denied.message, denied.code) == ('Node "gone" not found', 404)
    assert refusal(mutate, request(pod(1), pod(node="n-0"), labels={})).message == f"node does not have topology label: {RACK}"


def test_similar_names_do_not_lead() -> None:
    """A pod whose name only starts like the leader's is none."""
    other = pod(node="n-0")
    other["metadata"] = {**other["metadata"], "name": "js-w-0-0-1-abcde"}
    follower = mutate(request(pod(1), other))
    assert follower is not None
    assert "nodeSelector" not in follower["spec"]
