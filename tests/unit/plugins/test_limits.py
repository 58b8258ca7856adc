"""LimitRange and ResourceQuota: how much a namespace allows."""

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.store import Store
from tests.unit.core.conftest import Desk


def forbidden(desk: Any, kind: str, **fields: Any) -> str:
    """Return why an object is forbidden, without the head of the text."""
    with pytest.raises(Forbidden) as problem:
        desk.create(kind, **fields)
    head, _, why = problem.value.message.partition(" is forbidden: ")
    assert head.endswith('"x"')
    return why


def pod_of(resources: Tree, **spec: Any) -> Tree:
    """Return a pod of one container of some resources."""
    return {"containers": [{"name": "c", "image": "i:1", "resources": resources}], **spec}


# ------------------------------------------------------------------------------------------------------ limit ranges


def limits(desk: Any, **item: Any) -> None:
    """Create a LimitRange of one item."""
    desk.create("LimitRange", name="r", spec={"limits": [{"type": "Container", **item}]})


def test_containers_get_default_requests_and_limits(desk: Any) -> None:
    """Where they have none; an annotation tells."""
    limits(desk, default={"cpu": "1", "memory": "1Gi"}, defaultRequest={"cpu": "500m"})
    spec = pod_of({}, initContainers=[{"name": "i", "image": "i:1", "resources": {"limits": {"cpu": "2"}}}])
    pod = desk.create("Pod", spec=spec)
    assert pod["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}
    assert pod["spec"]["initContainers"][0]["resources"] == {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "2", "memory": "1Gi"}}
    assert pod["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: memory request for init container i; memory limit for init container i; "
            "cpu, memory request for container c; cpu, memory limit for container c"
        )
    }


def test_containers_that_say_it_all_are_left_alone(desk: Any) -> None:
    """No annotation either."""
    limits(desk, default={"cpu": "1"}, defaultRequest={"cpu": "500m"})
    assert "annotations" not in desk.create("Pod", spec=pod_of({"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}))["metadata"]


BOUNDS: list[tuple[Tree, Tree, str]] = [
    ({"type": "Pod", "min": {"cpu": "1"}}, {}, "minimum cpu usage per Pod is 1.  No request is specified"),
    ({"min": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}, "minimum cpu usage per Container is 1, but request is 500m"),
    ({"type": "Pod", "max": {"cpu": "1"}}, {"requests": {"cpu": "500m"}}, "maximum cpu usage per Pod is 1.  No limit is specified"),
    ({"max": {"cpu": "1"}}, {"limits": {"cpu": "1500m"}}, "maximum cpu usage per Container is 1, but limit is 1500m"),
    (
        {"maxLimitRequestRatio": {"cpu": "2"}},
        {"limits": {"cpu": "3"}, "requests": {"cpu": "1"}},
        "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
    ),
    (
        {"type": "Pod", "max": {"memory": "1Gi"}},
        {"limits": {"memory": "2Gi"}},
        "maximum memory usage per Pod is 1Gi, but limit is 2Gi",
    ),
]


@pytest.mark.parametrize("item, resources, text", BOUNDS)
def test_pods_out_of_bounds_are_refused(desk: Any, item: Tree, resources: Tree, text: str) -> None:
    """Each bound has its text."""
    limits(desk, **item)
    assert forbidden(desk, "Pod", spec=pod_of(resources)) == text


def test_claims_out_of_bounds_are_refused(desk: Any) -> None:
    """Too little, too much."""
    limits(desk, type="PersistentVolumeClaim", min={"storage": "2Gi"}, max={"storage": "5Gi"})

    def claim(size: str) -> Tree:
        return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}

    assert forbidden(desk, "PersistentVolumeClaim", spec=claim("1Gi")) == "minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi"
    assert forbidden(desk, "PersistentVolumeClaim", spec=claim("6Gi")) == "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"
    desk.create("PersistentVolumeClaim", spec=claim("2Gi"))


# ------------------------------------------------------------------------------------------------------ quotas


def quota(desk: Any, hard: Tree, **spec: Any) -> None:
    """Create a quota."""
    desk.create("ResourceQuota", name="q", spec={"hard": hard, **spec})


GPU = {"requests": {"nvidia.com/gpu": "4"}, "limits": {"nvidia.com/gpu": "4"}}


def test_what_would_exceed_a_quota_is_refused(desk: Any) -> None:
    """Used is what is there at that moment; all exceeded resources are listed."""
    quota(desk, {"requests.nvidia.com/gpu": "8", "pods": "2"})
    desk.create("Pod", name="a", spec=pod_of(GPU))
    desk.create("Pod", name="b", spec=pod_of(GPU))
    text = "exceeded quota: q, requested: pods=1,requests.nvidia.com/gpu=4, used: pods=2,requests.nvidia.com/gpu=8, limited: pods=2,requests.nvidia.com/gpu=8"
    assert forbidden(desk, "Pod", spec=pod_of(GPU)) == text
    desk.delete("Pod", "a")
    desk.create("Pod", spec=pod_of(GPU))


def test_ended_pods_use_nothing(desk: Any) -> None:
    """Their place is free at once."""
    quota(desk, {"pods": "1"})
    desk.create("Pod", name="a", spec=pod_of({}))
    desk.patch("Pod", "a", {"status": {"phase": "Succeeded"}}, subresource="status")
    desk.create("Pod", name="b", spec=pod_of({}))
    assert forbidden(desk, "Pod", spec=pod_of({})) == "exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"


def test_pods_must_say_what_a_quota_counts(desk: Any) -> None:
    """Compute resources under a quota have to be asked for by every container."""
    quota(desk, {"requests.cpu": "4", "limits.memory": "4Gi"})
    assert forbidden(desk, "Pod", spec=pod_of({})) == "failed quota: q: must specify limits.memory for: c; requests.cpu for: c"
    desk.create("Pod", spec=pod_of({"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}}))


def test_objects_are_counted_too(desk: Any) -> None:
    """By ``count/…`` names, and by the old bare ones."""
    quota(desk, {"count/jobs.batch": "1", "configmaps": "1"})
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    desk.create("Job", name="a", spec=job)
    assert forbidden(desk, "Job", spec=job).startswith("exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1")
    desk.create("ConfigMap", name="a")
    assert forbidden(desk, "ConfigMap") == "exceeded quota: q, requested: configmaps=1, used: configmaps=1, limited: configmaps=1"
    desk.patch("ConfigMap", "a", {"data": {"a": "b"}})


def test_services_count_their_node_ports(desk: Any) -> None:
    """A change that needs more is held against the quota, one that does not is not."""
    quota(desk, {"services.nodeports": "1"})
    desk.create("Service", name="a", spec={"type": "NodePort", "ports": [{"port": 80}]})
    desk.create("Service", name="b", spec={"ports": [{"port": 80}]})
    with pytest.raises(Forbidden, match=r"exceeded quota: q, requested: services\.nodeports=1, used: services\.nodeports=1"):
        desk.patch("Service", "b", {"spec": {"type": "NodePort"}})
    desk.patch("Service", "a", {"metadata": {"labels": {"a": "b"}}})


SCOPES: list[tuple[Tree, Tree, bool]] = [
    ({"scopes": ["BestEffort"]}, {}, True),
    ({"scopes": ["NotBestEffort"]}, {}, False),
    ({"scopes": ["Terminating"]}, {}, False),
    ({"scopes": ["Terminating"]}, {"activeDeadlineSeconds": 5}, True),
    ({"scopes": ["NotTerminating"]}, {}, True),
    ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}}, {}, False),
    (
        {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}},
        {"priorityClassName": "high"},
        True,
    ),
    ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "Exists"}]}}, {}, False),
    ({"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}}, {}, True),
]


@pytest.mark.parametrize("scope, spec, counted", SCOPES)
def test_scopes_choose_the_pods_of_a_quota(desk: Any, scope: Tree, spec: Tree, counted: bool) -> None:
    """A pod outside of the scopes is free."""
    desk.create("PriorityClass", name="high", value=10)
    quota(desk, {"pods": "0"}, **scope)
    if counted:
        assert "exceeded quota: q" in forbidden(desk, "Pod", spec=pod_of({}, **spec))
    else:
        desk.create("Pod", spec=pod_of({}, **spec))


def test_a_changed_quota_counts_anew(desk: Any) -> None:
    """What was there before a limit was named counts too; a quota of the same name that comes later is another one."""
    quota(desk, {"pods": "2"})
    desk.create("Pod", name="a", spec=pod_of(GPU))
    desk.patch("ResourceQuota", "q", {"spec": {"hard": {"requests.nvidia.com/gpu": "4"}}})
    assert "requested: requests.nvidia.com/gpu=4, used: requests.nvidia.com/gpu=4" in forbidden(desk, "Pod", spec=pod_of(GPU))
    desk.delete("ResourceQuota", "q")
    desk.create("Pod", name="b", spec=pod_of(GPU))
    quota(desk, {"requests.nvidia.com/gpu": "8"})
    assert "used: requests.nvidia.com/gpu=8" in forbidden(desk, "Pod", spec=pod_of(GPU))


def test_a_quota_that_slept_for_long_counts_anew() -> None:
    """Changes that the store no longer remembers are not missed."""
    desk = Desk(Store(history=4))
    desk.create("Namespace", name="other")
    desk.create("ServiceAccount", namespace="other", name="default")
    quota(desk, {"configmaps": "3"})
    desk.create("ConfigMap", name="a")
    for index in range(40):
        desk.create("ConfigMap", namespace="other", name=f"c{index}")
    desk.delete("ConfigMap", "a")
    for index in range(3):
        desk.create("ConfigMap", name=f"b{index}")
    assert "used: configmaps=3" in forbidden(desk, "ConfigMap")


def test_quotas_are_of_their_namespace(desk: Any) -> None:
    """Others do not feel it, and each counts its own."""
    quota(desk, {"configmaps": "1"})
    desk.create("Namespace", name="other")
    desk.create("ConfigMap", namespace="other", name="a")
    desk.create("ConfigMap", namespace="other", name="b")
    desk.create("ConfigMap", name="a")
    assert forbidden(desk, "ConfigMap").startswith("exceeded quota: q")
