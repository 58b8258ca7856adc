"""Binding and eviction: what is posted to a pod."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Conflict, NotFound, ServerError, TooManyRequests
from kubemini.server.subresources.eviction import judge, with_disruption
from tests.unit.workloads.bench import Bench

READY = {"type": "Ready", "status": "True"}


def pod(**spec: Any) -> Tree:
    """Return a small pod."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": "a"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **spec},
    }


def binding(node: str = "n", **metadata: Any) -> Tree:
    """Return a Binding to a node."""
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p", **metadata}, "target": {"kind": "Node", "name": node}}


# ------------------------------------------------------------------------------------------------ binding


def test_binding_assigns_the_node(bench: Bench) -> None:
    """A binding sets node and PodScheduled, merges its annotations, leaves the generation, and answers 201 Success."""
    bench.create(pod())
    answer = bench.act("Pod", "p", "binding", binding(annotations={"x": "y"}))
    assert (answer.code, answer.obj["status"]) == (201, "Success")
    bound = bench.get("Pod", "p")
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["annotations"]["x"] == "y"
    assert bound["metadata"]["generation"] == 1
    (condition,) = bound["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["lastTransitionTime"]) == ("PodScheduled", "True", "2026-01-01T00:00:00Z")


def test_a_bound_pod_has_the_topology_of_its_node(bench: Bench) -> None:
    """Zone and region of the node become labels of the pod; other labels of the node do not."""
    labels = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "rack": "7"}
    bench.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "labels": labels}})
    bench.create(pod())
    bench.act("Pod", "p", "binding", binding())
    assert bench.get("Pod", "p")["metadata"]["labels"] == {"app": "a", "topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r"}


def test_binding_resolves_the_scheduled_condition(bench: Bench) -> None:
    """PodScheduled=False is replaced in place, and a nomination is cleared."""
    bench.create(pod())
    waiting = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    bench.patch("Pod", "p", {"status": {"conditions": [waiting, READY], "nominatedNodeName": "m"}}, subresource="status")
    bench.act("Pod", "p", "binding", binding())
    status = bench.get("Pod", "p")["status"]
    assert [(each["type"], each["status"]) for each in status["conditions"]] == [("PodScheduled", "True"), ("Ready", "True")]
    assert "reason" not in status["conditions"][0]
    assert "nominatedNodeName" not in status


@pytest.mark.parametrize(
    "body,error,text",
    [
        (binding() | {"metadata": {"name": "q"}}, BadRequest, "name in URL does not match name in Binding object"),
        (
            binding() | {"target": {"kind": "Pod", "name": "n"}},
            ServerError,
            'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"',
        ),
        (binding() | {"target": {}}, ServerError, "target.name: Required value"),
        (binding(uid="x"), Conflict, "Precondition failed: UID in precondition: x, UID in object meta: "),
    ],
)
def test_malformed_bindings_are_refused(bench: Bench, body: Tree, error: type[Exception], text: str) -> None:
    """A binding names its pod and a node; a wrong target is a bare 500, as upstream."""
    bench.create(pod())
    with pytest.raises(error) as problem:
        bench.act("Pod", "p", "binding", body)
    assert text in str(problem.value)


def test_a_pod_is_bound_once(bench: Bench) -> None:
    """A bound pod, a gated one and a missing one cannot be bound."""
    with pytest.raises(NotFound):
        bench.act("Pod", "p", "binding", binding())
    bench.create(pod(schedulingGates=[{"name": "x.io/g"}]))
    with pytest.raises(Conflict, match=r'on pods/binding "p": pod p has non-empty \.spec\.schedulingGates$'):
        bench.act("Pod", "p", "binding", binding())
    bench.patch("Pod", "p", {"spec": {"schedulingGates": None}})
    bench.act("Pod", "p", "binding", binding())
    with pytest.raises(Conflict, match='pod p is already assigned to node "n"'):
        bench.act("Pod", "p", "binding", binding("m"))


def test_a_dying_pod_is_not_bound(bench: Bench) -> None:
    """A pod under deletion cannot be bound."""
    bench.create({**pod(), "metadata": {"name": "p", "finalizers": ["x.io/f"]}})
    bench.delete("Pod", "p")
    with pytest.raises(Conflict, match="pod p is being deleted, cannot be assigned to a host"):
        bench.act("Pod", "p", "binding", binding())


# ------------------------------------------------------------------------------------------------ eviction


def running(bench: Bench, *, ready: bool = True) -> Tree:
    """Create a pod that runs on a node."""
    bench.create(pod(nodeName="n", terminationGracePeriodSeconds=30))
    return bench.patch("Pod", "p", {"status": {"phase": "Running", "conditions": [READY] if ready else []}}, subresource="status")


def budget(bench: Bench, name: str = "b", *, policy: str = "", **status: Any) -> None:
    """Create a budget for the pod, with a status that is up to date."""
    spec: Tree = {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    bench.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name}, "spec": spec})
    bench.patch("PodDisruptionBudget", name, {"status": {"observedGeneration": 1, **status}}, subresource="status")


def evict(bench: Bench, **options: Any) -> Tree:
    """Evict the pod."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}, **({"deleteOptions": options} if options else {})}
    return bench.act("Pod", "p", "eviction", body).obj


def test_eviction_marks_and_deletes(bench: Bench) -> None:
    """Without a budget the pod gets the DisruptionTarget condition and is deleted gracefully."""
    running(bench)
    answer = evict(bench, gracePeriodSeconds=5)
    assert (answer["status"], answer["code"]) == ("Success", 201)
    gone = bench.get("Pod", "p")
    assert gone["metadata"]["deletionGracePeriodSeconds"] == 5
    condition = gone["status"]["conditions"][-1]
    assert (condition["type"], condition["reason"], condition["message"]) == ("DisruptionTarget", "EvictionByEvictionAPI", "Eviction API: evicting")


def test_a_budget_pays_for_an_eviction(bench: Bench) -> None:
    """An eviction takes one disruption, notes the pod, and says so in the condition when it was the last."""
    running(bench)
    budget(bench, disruptionsAllowed=1, currentHealthy=2, desiredHealthy=1, expectedPods=2)
    evict(bench)
    status = bench.get("PodDisruptionBudget", "b")["status"]
    assert (status["disruptionsAllowed"], status["disruptedPods"]) == (0, {"p": "2026-01-01T00:00:00Z"})
    (condition,) = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("DisruptionAllowed", "False", "InsufficientPods")
    assert "deletionTimestamp" in bench.get("Pod", "p")["metadata"]


def test_an_exhausted_budget_refuses(bench: Bench) -> None:
    """Without a disruption to give the answer is 429 with the budget as cause, and without a time to wait, so that clients do not wait by themselves."""
    running(bench)
    budget(bench, disruptionsAllowed=0, currentHealthy=1, desiredHealthy=1)
    with pytest.raises(TooManyRequests) as problem:
        evict(bench)
    assert problem.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    causes = [{"reason": "DisruptionBudget", "message": "The disruption budget b needs 1 healthy pods and has 1 currently"}]
    assert problem.value.details == {"causes": causes}
    assert "deletionTimestamp" not in bench.get("Pod", "p")["metadata"]


def test_a_budget_that_lags_asks_to_wait(bench: Bench) -> None:
    """While the controller has not seen the budget's spec, the answer is 429 with ten seconds to wait."""
    running(bench)
    budget(bench, disruptionsAllowed=1, observedGeneration=0)
    with pytest.raises(TooManyRequests) as problem:
        evict(bench)
    assert problem.value.retry_after == 10
    assert problem.value.details["causes"][0]["message"] == "The disruption budget b is still being processed by the server."


def test_two_budgets_are_one_too_many(bench: Bench) -> None:
    """A pod that two budgets select cannot be evicted."""
    running(bench)
    budget(bench, "b", disruptionsAllowed=1)
    budget(bench, "c", disruptionsAllowed=1)
    with pytest.raises(ServerError, match="This pod has more than one PodDisruptionBudget"):
        evict(bench)


@pytest.mark.parametrize(
    "policy,healthy,evicted",
    [("", 1, True), ("", 0, False), ("IfHealthyBudget", 0, False), ("AlwaysAllow", 0, True)],
)
def test_unready_pods_go_by_policy(bench: Bench, policy: str, healthy: int, evicted: bool) -> None:
    """An unready pod of an exhausted budget goes where the healthy ones suffice, or the policy always allows it; it costs no disruption."""
    running(bench, ready=False)
    budget(bench, policy=policy, disruptionsAllowed=0, currentHealthy=healthy, desiredHealthy=1)
    if not evicted:
        with pytest.raises(TooManyRequests):
            evict(bench)
        return
    evict(bench)
    assert "disruptedPods" not in bench.get("PodDisruptionBudget", "b")["status"]


@pytest.mark.parametrize("phase", ["Pending", "Succeeded", "Failed"])
def test_pods_that_do_not_run_need_no_budget(bench: Bench, phase: str) -> None:
    """A pending or finished pod is evicted whatever its budget says."""
    verdict = judge({"metadata": {"labels": {"app": "a"}}, "status": {"phase": phase}}, [{"spec": {"selector": {}}}])
    assert verdict.budget is None


def test_a_dry_eviction_changes_nothing(bench: Bench) -> None:
    """A dry run asks the budget and the preconditions, and writes nothing."""
    running(bench)
    budget(bench, disruptionsAllowed=1)
    before = bench.api.store.revision
    evict(bench, dryRun=["All"])
    assert bench.api.store.revision == before


def test_preconditions_are_checked_before_the_pod_is_marked(bench: Bench) -> None:
    """An eviction of another pod of that name is refused, and the pod is left as it is."""
    running(bench)
    with pytest.raises(Conflict, match=r"on Pod \"p\": the UID in the precondition \(x\) does not match the UID in record"):
        evict(bench, preconditions={"uid": "x"})
    assert [each["type"] for each in bench.get("Pod", "p")["status"]["conditions"]] == ["Ready"]


def test_the_name_must_agree(bench: Bench) -> None:
    """The name in the body is the name in the URL."""
    running(bench)
    with pytest.raises(BadRequest, match="name in URL does not match name in Eviction object"):
        bench.act("Pod", "p", "eviction", {"metadata": {"name": "q"}})


def test_the_other_disruptions_stay() -> None:
    """Taking a disruption keeps what other evictions noted, and the condition while some are left."""
    before = {"disruptionsAllowed": 2, "disruptedPods": {"o": "t"}, "conditions": [], "observedGeneration": 1}
    after = with_disruption({"metadata": {"name": "b", "generation": 1}, "status": before}, "p", "s")["status"]
    assert after == {**before, "disruptionsAllowed": 1, "disruptedPods": {"o": "t", "p": "s"}}
