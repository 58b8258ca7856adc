"""The arithmetic of rollouts: limits, proportional scaling, revisions, and which pods go first."""

from typing import Any

import pytest

from kubemini.controllers.daemon_set.placing import Daemon, affinity, limits, target, tolerations
from kubemini.controllers.daemon_set.updating import replace, surge
from kubemini.controllers.deployment.amounts import fenceposts, max_unavailable, new_replicas, proportions
from kubemini.controllers.deployment.progress import has_progressed, has_timed_out, next_check, with_condition
from kubemini.controllers.deployment.revisions import annotated, find_new
from kubemini.controllers.disruption.budget import selector_text
from kubemini.controllers.job.pods import removal_rank
from kubemini.controllers.replica_set.pods import next_available, victims
from kubemini.runtime.env import to_stamp


def deployment(replicas: int, surge: int | str = "25%", unavailable: int | str = "25%", **status: Any) -> dict[str, Any]:
    """Return a rolling Deployment."""
    rolling = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {
        "metadata": {"name": "d"},
        "spec": {"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}},
        "status": status,
    }


def replica_set(name: str, replicas: int, *, most: int = 0, created: int = 0, **annotations: str) -> dict[str, Any]:
    """Return a ReplicaSet."""
    if most:
        annotations["deployment.kubernetes.io/max-replicas"] = str(most)
    return {"metadata": {"name": name, "creationTimestamp": to_stamp(created), "annotations": annotations}, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    "replicas, surge, unavailable, expected",
    [
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (10, 0, "5%", (0, 1)),
        (3, 0, "10%", (0, 1)),
        (4, 1, 0, (1, 0)),
        (4, "100%", "100%", (4, 4)),
    ],
)
def test_surge_rounds_up_and_unavailability_down(replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]) -> None:
    """And a rollout is never stuck by both being 0."""
    assert fenceposts(deployment(replicas, surge, unavailable)) == expected


def test_unavailability_is_bounded_by_size() -> None:
    """No more pods can be missing than there should be."""
    assert max_unavailable(deployment(2, 1, 5)) == 2
    assert max_unavailable(deployment(0)) == 0


def test_the_new_set_grows_into_the_room() -> None:
    """It takes what surge leaves, and no more than it wants."""
    wanted = deployment(10)
    assert new_replicas(wanted, [replica_set("old", 10)], 0) == 3
    assert new_replicas(wanted, [replica_set("old", 8), replica_set("new", 3)], 3) == 5
    assert new_replicas(wanted, [replica_set("old", 1), replica_set("new", 9)], 9) == 10
    assert new_replicas(wanted, [replica_set("old", 13)], 0) == 0


@pytest.mark.parametrize(
    "wanted, sets, expected",
    [
        # Scaling 10 to 15 in the middle of a rollout: 19 are allowed, shared as 8 : 5
        (deployment(15), [replica_set("old", 8, most=13), replica_set("new", 5, most=13, created=1)], {"old": 12, "new": 7}),
        # And back down to 5: 7 are allowed
        (deployment(5), [replica_set("old", 8, most=13), replica_set("new", 5, most=13, created=1)], {"old": 4, "new": 3}),
        (deployment(0), [replica_set("old", 8, most=13), replica_set("new", 5, most=13, created=1)], {"old": 0, "new": 0}),
        # Equal sizes: what is left over goes to the newer one when growing
        (deployment(5, 0, 1), [replica_set("old", 2, most=4), replica_set("new", 2, most=4, created=1)], {"old": 2, "new": 3}),
    ],
)
def test_scaling_is_shared_in_proportion(wanted: dict[str, Any], sets: list[dict[str, Any]], expected: dict[str, int]) -> None:
    """Each ReplicaSet gets its share of the change, the largest what is left over; the sum is what is allowed."""
    found = {each["metadata"]["name"]: size for each, size in proportions(wanted, sets)}
    assert found == expected


def test_a_set_that_is_new_again_keeps_its_numbers() -> None:
    """Rolling back gives the old ReplicaSet the next revision and notes what it was; annotations come from the Deployment."""
    owner = {
        "metadata": {"annotations": {"note": "n", "deployment.kubernetes.io/revision": "7", "kubectl.kubernetes.io/last-applied-configuration": "x"}}
    }
    first = annotated(owner, {}, 1)
    assert first == {"note": "n", "deployment.kubernetes.io/revision": "1"}
    assert annotated(owner, first, 1) is first
    second = annotated(owner, first, 3)
    third = annotated(owner, second, 5)
    assert third == {"note": "n", "deployment.kubernetes.io/revision": "5", "deployment.kubernetes.io/revision-history": "1,3"}


def test_the_new_set_is_found_by_its_template() -> None:
    """Whatever its hash label says; of several the oldest."""

    def with_template(name: str, image: str, created: int) -> dict[str, Any]:
        labels = {"a": "b", "pod-template-hash": name}
        return {
            "metadata": {"name": name, "creationTimestamp": to_stamp(created)},
            "spec": {"template": {"metadata": {"labels": labels}, "spec": {"containers": [{"image": image}]}}},
        }

    owner = {"spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"image": "x"}]}}}}
    found = find_new(owner, [with_template("late", "x", 5), with_template("other", "y", 0), with_template("early", "x", 1)])
    assert found is not None
    assert found["metadata"]["name"] == "early"
    assert find_new(owner, [with_template("other", "y", 0)]) is None


def test_progress_is_any_step_nearer() -> None:
    """More new, ready or available pods, or fewer old ones."""
    before = {"replicas": 10, "updatedReplicas": 3, "readyReplicas": 8}
    assert has_progressed(before, {**before, "updatedReplicas": 4})
    assert has_progressed(before, {**before, "replicas": 9})
    assert has_progressed(before, {**before, "readyReplicas": 9})
    assert not has_progressed(before, {**before, "readyReplicas": 7, "replicas": 11})


def test_deadlines_count_from_the_last_update() -> None:
    """A rollout times out after so long without progress; a finished one never does, and one that did stays so."""
    owner = {"spec": {"progressDeadlineSeconds": 10}}
    running = {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "lastUpdateTime": to_stamp(100)}
    assert not has_timed_out(owner, [running], 110.0)
    assert has_timed_out(owner, [running], 111.0)
    assert not has_timed_out(owner, [{**running, "reason": "NewReplicaSetAvailable"}], 1000.0)
    assert has_timed_out(owner, [{**running, "reason": "ProgressDeadlineExceeded"}], 0.0)


@pytest.mark.parametrize(
    "reason, again",
    [
        ("ReplicaSetUpdated", 91.0),
        ("DeploymentResumed", 91.0),
        ("DeploymentPaused", None),
        ("NewReplicaSetAvailable", None),
        ("ProgressDeadlineExceeded", None),
    ],
)
def test_a_rollout_is_looked_at_when_its_deadline_is_over(reason: str, again: float | None) -> None:
    """A finished or paused one has none, and one past it has no other: nobody looks again and again."""
    owner = {"metadata": {"generation": 1}, "spec": {"replicas": 1, "progressDeadlineSeconds": 100}}
    condition = {"type": "Progressing", "status": "True", "reason": reason, "lastUpdateTime": to_stamp(10)}
    status = {"replicas": 1, "updatedReplicas": 1, "unavailableReplicas": 1, "conditions": [condition]}
    assert next_check(owner, status, 20.0) == again


def test_conditions_change_with_status_or_reason_only() -> None:
    """The time of transition moves with the status only."""
    old = {"type": "A", "status": "True", "reason": "X", "message": "m", "lastTransitionTime": "t0"}
    assert with_condition([old], {**old, "message": "other", "lastTransitionTime": "t1"}) == [old]
    assert with_condition([old], {**old, "reason": "Y", "lastTransitionTime": "t1"})[0]["lastTransitionTime"] == "t0"
    assert with_condition([old], {**old, "status": "False", "lastTransitionTime": "t1"})[0]["lastTransitionTime"] == "t1"


# ----------------------------------------------------------------------------------------------- which pods go first


def pod(
    name: str, *, node: str = "n", phase: str = "Running", ready: float | None = 1.0, cost: str = "", restarts: int = 0, created: float = 0.0
) -> dict[str, Any]:
    """Return a pod; `ready` is since when it is."""
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": to_stamp(ready)}] if ready is not None else []
    annotations = {"controller.kubernetes.io/pod-deletion-cost": cost} if cost else {}
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": to_stamp(created), "annotations": annotations},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": conditions, "containerStatuses": [{"restartCount": restarts}]},
    }


@pytest.mark.parametrize(
    "pods",
    [
        [pod("a", node=""), pod("b", phase="Pending", ready=None)],
        [pod("a", phase="Pending", ready=None, cost="100"), pod("b", ready=None)],
        [pod("a", ready=None, cost="1000"), pod("b", cost="-5")],
        [pod("a", cost="-5"), pod("b")],
        [pod("b", cost="+1"), pod("c", cost="2")],
        [pod("a", ready=9_000.0, created=8_999.0), pod("b", ready=10.0, created=9.0)],
        [pod("a", restarts=3), pod("b", restarts=1)],
        [pod("a", created=9_000.0), pod("b", created=9.0)],
    ],
)
def test_what_is_of_least_use_goes_first(pods: list[dict[str, Any]]) -> None:
    """Unplaced, pending, unready, cheap, young, often restarted, in this order of importance: the first of each pair goes."""
    names = [each["metadata"]["name"] for each in victims(pods[::-1], pods, 1, 10_000.0)]
    assert names == [pods[0]["metadata"]["name"]]


def test_the_container_restarted_most_counts_then_the_sidecar() -> None:
    """Not the sum of restarts; init containers that end do not count."""

    def restarted(name: str, *counts: int, sidecar: int = 0, init: int = 0) -> dict[str, Any]:
        made = pod(name)
        inits = [{"name": "s", "restartPolicy": "Always"}, {"name": "i"}]
        statuses = [{"name": "s", "restartCount": sidecar}, {"name": "i", "restartCount": init}]
        status = {**made["status"], "containerStatuses": [{"restartCount": count} for count in counts], "initContainerStatuses": statuses}
        return {**made, "spec": {**made["spec"], "initContainers": inits}, "status": status}

    for first, second in (
        (restarted("b", 3, 0), restarted("a", 2, 2)),
        (restarted("b", 2), restarted("a", 1, sidecar=9)),
        (restarted("b", 1, sidecar=2), restarted("a", 1, sidecar=1, init=9)),
    ):
        assert victims([second, first], [], 1, 10_000.0) == [first]
        assert min([second, first], key=removal_rank) == first


def test_pods_of_one_workload_on_one_node_go_first() -> None:
    """Where the whole workload has more pods on a node, one of those goes."""
    own = [pod("a", node="n1"), pod("b", node="n2")]
    assert [each["metadata"]["name"] for each in victims(own, [*own, pod("x", node="n2")], 1, 10_000.0)] == ["b"]


def test_pods_turn_available_by_themselves() -> None:
    """The wait is until the first of the Ready pods is old enough."""
    assert next_available([pod("a", ready=100.0), pod("b", ready=103.0), pod("c", ready=None)], 10, 105.0) == pytest.approx(5)
    assert next_available([pod("a", ready=100.0)], 10, 110.0) is None
    assert next_available([pod("a", ready=100.0)], 0, 100.0) is None


# ----------------------------------------------------------------------------------------------- daemons


def daemon_pod(name: str, hashed: str, *, ready: bool = True) -> dict[str, Any]:
    """Return a pod of a DaemonSet's template."""
    return {**pod(name, ready=1.0 if ready else None), "metadata": {"name": name, "labels": {"controller-revision-hash": hashed}}}


DAEMON = Daemon.of(
    {
        "metadata": {"name": "d", "namespace": "x", "uid": "u"},
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "spec": {"template": {"spec": {"nodeSelector": {"gpu": "yes"}, "containers": []}}},
    },
    "new",
)


def available(each: dict[str, Any]) -> bool:
    """Tell whether a pod is Ready."""
    return bool(each["status"]["conditions"])


def test_replacing_keeps_enough_available() -> None:
    """Unavailable old pods go at once and count, as do unavailable new ones; of the others as many as the limit leaves."""
    by_node = {
        "a": [daemon_pod("a", "old")],
        "b": [daemon_pod("b", "old", ready=False)],
        "c": [daemon_pod("c", "new", ready=False)],
        "d": [daemon_pod("d", "old")],
        "e": [daemon_pod("e", "old")],
    }
    assert [each["metadata"]["name"] for each in replace(DAEMON, by_node, 1, available).delete] == ["b"]
    assert [each["metadata"]["name"] for each in replace(DAEMON, by_node, 2, available).delete] == ["b"]
    assert [each["metadata"]["name"] for each in replace(DAEMON, by_node, 3, available).delete] == ["b", "a"]


def test_surging_puts_new_beside_old() -> None:
    """New pods are made beside old ones up to the limit, and beside those that do not serve; an old one goes when its successor is available."""
    by_node = {
        "a": [daemon_pod("a", "old")],
        "b": [daemon_pod("b", "old", ready=False)],
        "c": [daemon_pod("c", "old"), daemon_pod("c2", "new", ready=False)],
        "d": [daemon_pod("d", "old"), daemon_pod("d2", "new")],
        "e": [daemon_pod("e", "old")],
    }
    found = surge(DAEMON, by_node, 2, set(by_node), available)
    assert [each["metadata"]["name"] for each in found.delete] == ["d"]
    assert found.create == ["b", "a"]


def test_surging_leaves_nodes_that_are_no_longer_wanted() -> None:
    """No pod is made there: an old one that does not serve goes at once, one that serves when enough others do."""
    by_node = {"a": [daemon_pod("a", "old")], "b": [daemon_pod("b", "old", ready=False)], "c": [daemon_pod("c", "new", ready=False)]}
    early = surge(DAEMON, by_node, 1, {"c"}, available)
    assert ([each["metadata"]["name"] for each in early.delete], early.create) == (["b"], [])
    late = surge(DAEMON, {**by_node, "c": [daemon_pod("c", "new")]}, 1, {"c"}, available)
    assert ([each["metadata"]["name"] for each in late.delete], late.create) == (["b", "a"], [])


def test_daemons_fit_by_selector_and_taints() -> None:
    """A pod is made where selector and taints allow; one that is there stays unless a NoExecute taint drives it out."""

    def node(labels: dict[str, str], *taints: tuple[str, str]) -> dict[str, Any]:
        return {"metadata": {"name": "n", "labels": labels}, "spec": {"taints": [{"key": key, "effect": effect} for key, effect in taints]}}

    assert DAEMON.runs_on(node({"gpu": "yes"}, ("node.kubernetes.io/unschedulable", "NoSchedule"))) == (True, True)
    assert DAEMON.runs_on(node({})) == (False, False)
    assert DAEMON.runs_on(node({"gpu": "yes"}, ("x", "NoSchedule"))) == (False, True)
    assert DAEMON.runs_on(node({"gpu": "yes"}, ("x", "NoExecute"))) == (False, False)
    assert DAEMON.runs_on(node({"gpu": "yes"}, ("x", "PreferNoSchedule"))) == (True, True)


def test_daemon_pods_are_tied_to_their_node() -> None:
    """The required node affinity of the template is replaced, the rest stays; the pod tells its node before it is placed."""
    spec = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}, "podAffinity": {"x": 1}}}
    tied = affinity(spec, "n-1")
    assert tied["podAffinity"] == {"x": 1}
    assert target({"spec": {"affinity": tied}}) == "n-1"
    assert [each["key"].rpartition("/")[2] for each in tolerations({"hostNetwork": True})] == [
        "not-ready",
        "unreachable",
        "disk-pressure",
        "memory-pressure",
        "pid-pressure",
        "unschedulable",
        "network-unavailable",
    ]


@pytest.mark.parametrize(
    "rolling, expected",
    [({}, (0, 1)), ({"maxUnavailable": "10%"}, (0, 1)), ({"maxUnavailable": "30%"}, (0, 3)), ({"maxSurge": "25%", "maxUnavailable": 0}, (3, 0))],
)
def test_daemon_limits_round_up(rolling: dict[str, Any], expected: tuple[int, int]) -> None:
    """Of ten nodes."""
    assert limits({"spec": {"updateStrategy": {"rollingUpdate": rolling}}}, 10) == expected


def test_selectors_print_as_go_objects() -> None:
    """As the event about unmanaged pods shows them."""
    assert (
        selector_text({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["x", "y"]}]})
        == "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}"
    )
