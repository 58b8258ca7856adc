"""What pods of groups are told: labels, variables, affinities, subgroups, TPU processes; and restarts."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.lws import restarting, tpu
from kubemini.controllers.lws.pod_webhook import mutate, sub_group_of
from kubemini.controllers.lws.view import LwsView
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, WebhookRequest

P = "leaderworkerset.sigs.k8s.io/"


def admitted(pod: Tree, *, gang: bool = False) -> Tree:
    """Return a pod as the webhook leaves it."""
    request = WebhookRequest("CREATE", "default", pod["metadata"]["name"], pod, None, Env(), FeatureGates(), None)  # type: ignore[arg-type]
    found = mutate(request, gang=gang)
    return pod if found is None else found


def leader(*, size: int = 2, annotations: Tree | None = None, containers: list[Tree] | None = None) -> Tree:
    """Return a leader pod as its StatefulSet makes it."""
    meta = {"name": "llm-1", "namespace": "default", "labels": {P + "name": "llm", P + "worker-index": "0", P + "template-revision-hash": "k"}}
    meta["annotations"] = {P + "size": str(size), **(annotations or {})}
    return {"metadata": meta, "spec": {"subdomain": "llm", "containers": containers or [{"name": "c"}]}}


def worker(index: int, *, size: int = 2, annotations: Tree | None = None, containers: list[Tree] | None = None) -> Tree:
    """Return a worker pod as its StatefulSet makes it."""
    meta = {"name": f"llm-1-{index}", "namespace": "default", "labels": {P + "name": "llm", P + "group-index": "1", P + "group-key": "g"}}
    meta["annotations"] = {P + "size": str(size), P + "leader-name": "llm-1", **(annotations or {})}
    return {"metadata": meta, "spec": {"subdomain": "llm", "containers": containers or [{"name": "c"}]}}


def env(pod: Tree, container: int = 0) -> dict[str, str]:
    """Return a container's variables."""
    return {each["name"]: each.get("value", "") for each in pod["spec"]["containers"][container].get("env") or ()}


def test_a_leader_learns_its_group() -> None:
    """Index, key and variables follow from the name; nothing given is changed in place."""
    before = leader()
    pod = admitted(before)
    labels = pod["metadata"]["labels"]
    assert labels[P + "group-index"] == "1"
    assert labels[P + "group-key"] == sha1(b"default/llm-1").hexdigest()
    assert [each["name"] for each in pod["spec"]["containers"][0]["env"]] == ["LWS_LEADER_ADDRESS", "LWS_GROUP_SIZE", "LWS_WORKER_INDEX"]
    assert env(pod) == {"LWS_LEADER_ADDRESS": "llm-1.llm.default", "LWS_GROUP_SIZE": "2", "LWS_WORKER_INDEX": "0"}
    assert P + "group-index" not in before["metadata"]["labels"]


def test_a_service_of_its_own() -> None:
    """With UniquePerReplica a leader's subdomain is its name."""
    pod = admitted(leader(annotations={P + "subdomainPolicy": "UniquePerReplica"}))
    assert pod["spec"]["subdomain"] == "llm-1"
    assert env(pod)["LWS_LEADER_ADDRESS"] == "llm-1.llm-1.default"


def test_user_variables() -> None:
    """Ours win, theirs follow in order, each name once; init containers get them too."""
    given = [{"name": "B", "value": "1"}, {"name": "LWS_GROUP_SIZE", "value": "9"}, {"name": "B", "value": "2"}, {"name": "A", "value": "3"}]
    pod = leader(containers=[{"name": "c", "env": given}])
    pod["spec"]["initContainers"] = [{"name": "i"}]
    found = admitted(pod)
    assert [(each["name"], each.get("value")) for each in found["spec"]["containers"][0]["env"]][1:] == [
        ("LWS_GROUP_SIZE", "2"),
        ("LWS_WORKER_INDEX", "0"),
        ("B", "1"),
        ("A", "3"),
    ]
    assert len(found["spec"]["initContainers"][0]["env"]) == 3


def test_strangers_with_the_name_label_are_refused() -> None:
    """A pod with the name label needs a size; one without the label passes untouched."""
    stray = leader()
    del stray["metadata"]["annotations"][P + "size"]
    with pytest.raises(Denied, match="size annotation is unexpectedly missing for pod llm-1"):
        admitted(stray)
    plain = {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {}}
    assert admitted(plain) is plain


def test_exclusive_placement() -> None:
    """A leader keeps to a domain with its group, away from others; applied once."""
    pod = admitted(leader(annotations={P + "exclusive-topology": "rack"}))
    key = pod["metadata"]["labels"][P + "group-key"]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    (together,) = pod["spec"]["affinity"]["podAffinity"][required]
    (apart,) = pod["spec"]["affinity"]["podAntiAffinity"][required]
    assert together == {"labelSelector": {"matchExpressions": [{"key": P + "group-key", "operator": "In", "values": [key]}]}, "topologyKey": "rack"}
    assert [each["operator"] for each in apart["labelSelector"]["matchExpressions"]] == ["Exists", "NotIn"]
    again = admitted(pod)
    assert again["spec"]["affinity"] == pod["spec"]["affinity"]


@pytest.mark.parametrize(
    "size, sub_group, expected",
    [(5, 2, [0, 0, 1, 1]), (4, 2, [0, 1, 1]), (9, 4, [0, 0, 0, 0, 1, 1, 1, 1]), (3, 1, [1, 2])],
)
def test_sub_groups(size: int, sub_group: int, expected: list[int]) -> None:
    """A leader too many goes with the first subgroup; otherwise it is one of it."""
    assert [sub_group_of(size, sub_group, index) for index in range(1, size)] == expected


def test_sub_group_labels() -> None:
    """Leader and workers carry index and key; an excluded leader carries neither."""
    sub = {P + "subgroup-size": "2", P + "subgroup-policy-type": "LeaderWorker"}
    assert admitted(leader(size=5, annotations=sub))["metadata"]["labels"][P + "subgroup-index"] == "0"
    labels = admitted(worker(3, size=5, annotations=sub))["metadata"]["labels"]
    assert labels[P + "subgroup-index"] == "1"
    assert labels[P + "subgroup-key"] == sha1(b"llm-1/1").hexdigest()
    excluded = {**sub, P + "subgroup-policy-type": "LeaderExcluded"}
    assert P + "subgroup-index" not in admitted(leader(size=5, annotations=excluded))["metadata"]["labels"]


def test_gang() -> None:
    """With Volcano a pod names its group."""
    assert admitted(leader(), gang=True)["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "llm-1-k"


def tpus(count: int = 1, **more: Any) -> list[Tree]:
    """Return containers that ask for TPUs."""
    return [{"name": f"c{number}", "resources": {"limits": {"google.com/tpu": "4"}}, **more} for number in range(count)]


def test_tpu_workers_with_their_leader() -> None:
    """The leader is process 0, workers follow; hosts and addresses name all."""
    pod = admitted(worker(2, size=3, annotations={P + "leader-requests-tpus": "true"}, containers=tpus()))
    found = env(pod)
    assert found["TPU_WORKER_ID"] == "2"
    assert found["TPU_WORKER_HOSTNAMES"] == "llm-1.llm,llm-1-1.llm,llm-1-2.llm"
    assert found["TPU_PROCESS_ADDRESSES"] == "llm-1.llm:8476,llm-1-1.llm:8476,llm-1-2.llm:8476"
    assert (found["TPU_NAME"], found["TPU_PROCESS_PORT"]) == ("llm-1", "8476")
    assert env(admitted(leader(size=3, containers=tpus())))["TPU_WORKER_ID"] == "0"


def test_tpu_workers_alone() -> None:
    """Without the leader the first worker is process 0."""
    found = env(admitted(worker(1, size=3, containers=tpus())))
    assert found["TPU_WORKER_ID"] == "0"
    assert found["TPU_WORKER_HOSTNAMES"] == "llm-1-1.llm,llm-1-2.llm"


def test_tpu_containers_count_on() -> None:
    """Several TPU containers of a pod are processes of their own, with ports of their own."""
    pod = admitted(worker(1, size=2, annotations={P + "leader-requests-tpus": "true"}, containers=tpus(2)))
    assert [env(pod, number)["TPU_WORKER_ID"] for number in (0, 1)] == ["2", "3"]
    assert env(pod, 1)["TPU_PROCESS_PORT"] == "8477"
    assert env(pod)["TPU_PROCESS_ADDRESSES"] == "llm-1.llm:8476,llm-1.llm:8477,llm-1-1.llm:8476,llm-1-1.llm:8477"


def test_tpu_variables_of_the_user_stay() -> None:
    """Nothing is injected where the first TPU container has some already."""
    pod = leader(containers=tpus(env=[{"name": "TPU_WORKER_ID", "value": "7"}]))
    assert tpu.with_variables(pod, 2) is pod


@pytest.mark.parametrize(
    "index, led, hosts, worker_id",
    [
        (1, True, "llm-1.llm,llm-1-1.llm", "1"),
        (2, True, "llm-1-2.llm,llm-1-3.llm", "0"),
        (1, False, "llm-1-1.llm,llm-1-2.llm", "0"),
        (3, False, "llm-1-3.llm,llm-1-4.llm", "0"),
    ],
)
def test_tpu_sub_groups(index: int, led: bool, hosts: str, worker_id: str) -> None:
    """A subgroup's processes are its own; with the leader among them everyone moves up."""
    annotations = {P + "subgroup-size": "2", **({P + "leader-requests-tpus": "true"} if led else {})}
    found = env(admitted(worker(index, size=4 if led else 5, annotations=annotations, containers=tpus())))
    assert (found["TPU_WORKER_HOSTNAMES"], found["TPU_WORKER_ID"]) == (hosts, worker_id)


def lws(policy: str, *, size: int = 2, annotations: Tree | None = None) -> LwsView:
    """Return a LeaderWorkerSet with a restart policy."""
    meta = {"name": "llm", "namespace": "default", "uid": "u", "annotations": annotations or {}}
    return LwsView({"metadata": meta, "spec": {"leaderWorkerTemplate": {"size": size, "restartPolicy": policy, "workerTemplate": {}}}})


def running(restarts: int = 0, phase: str = "Running", **meta: Any) -> Tree:
    """Return a pod in a phase."""
    return {"metadata": {"name": "llm-1-1", **meta}, "status": {"phase": phase, "containerStatuses": [{"restartCount": restarts}]}}


def test_what_takes_a_group_down() -> None:
    """A restart or a deletion does, with a Recreate policy; an ended pod's restarts do not."""
    whole = [running(), running()]
    assert restarting.recreates(lws("RecreateGroupOnPodRestart"), running(1), whole)
    assert restarting.recreates(lws("RecreateGroupOnPodRestart"), running(deletionTimestamp="x"), whole)
    assert not restarting.recreates(lws("RecreateGroupOnPodRestart"), running(), whole)
    assert not restarting.recreates(lws("RecreateGroupOnPodRestart"), running(1, "Failed"), whole)
    assert not restarting.recreates(lws("None"), running(1), whole)


def test_after_start_spares_groups_that_have_not_started() -> None:
    """While pods are pending or missing, RecreateGroupAfterStart (or the annotation) waits; RecreateGroupOnPodRestart does not."""
    pending = [running(1), running(0, "Pending")]
    experimental = {P + "experimental-recreate-group-after-start": "true"}
    for group in (pending, [running(1)]):
        assert not restarting.recreates(lws("RecreateGroupAfterStart"), running(1), group)
        assert not restarting.recreates(lws("RecreateGroupOnPodRestart", annotations=experimental), running(1), group)
        assert restarting.recreates(lws("RecreateGroupOnPodRestart"), running(1), group)


def test_only_the_present_leader_goes_with_its_worker() -> None:
    """A worker of another revision, of a StatefulSet that is gone, or of an earlier leader takes nobody down."""

    def owned(kind: str, name: str, uid: str, key: str = "k") -> Tree:
        reference = {"kind": kind, "name": name, "uid": uid, "controller": True}
        return {"metadata": {"name": name, "uid": "s", "labels": {P + "template-revision-hash": key}, "ownerReferences": [reference]}}

    head: Tree = {"metadata": {"name": "llm-1", "uid": "l", "labels": {P + "template-revision-hash": "k"}}}
    pod = owned("StatefulSet", "llm-1", "s")
    assert restarting.is_follower(pod, head, owned("Pod", "llm-1", "l"))
    assert not restarting.is_follower(pod, head, owned("Pod", "llm-1", "before"))
    assert not restarting.is_follower(pod, head, None)
    assert not restarting.is_follower(owned("StatefulSet", "llm-1", "other"), head, owned("Pod", "llm-1", "l"))
    assert not restarting.is_follower(owned("StatefulSet", "llm-1", "s", "old"), head, owned("Pod", "llm-1", "l"))
