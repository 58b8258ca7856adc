"""Resize, ephemeral containers and logs of pods."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Invalid
from kubemini.server.subresources.log import LogOptions, chosen_container, log_text
from tests.unit.workloads.bench import Bench

SMALL = {"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}}


def pod(**container: Any) -> Tree:
    """Return a pod with one container."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": SMALL, **container}]},
    }


def test_resize_changes_resources_alone(bench: Bench) -> None:
    """A resize takes the resources, silently drops the rest, and raises the generation only when something changed."""
    bench.create(pod())
    body = {"metadata": {"labels": {"x": "y"}}, "spec": {"containers": [{"name": "c", "image": "z", "resources": {"requests": {"cpu": "150m"}}}]}}
    resized = bench.patch("Pod", "p", body, type_="strategic", subresource="resize")
    assert resized["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "150m"}, "limits": {"cpu": "200m"}}
    assert (resized["spec"]["containers"][0]["image"], resized["metadata"].get("labels")) == ("i", None)
    assert resized["metadata"]["generation"] == 2
    again = bench.patch("Pod", "p", body, type_="strategic", subresource="resize")
    assert again["metadata"]["resourceVersion"] == resized["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    "resources,text",
    [
        (
            {"requests": {"cpu": "200m", "memory": "1Gi"}, "limits": {"cpu": "200m", "memory": "1Gi"}},
            "Pod QOS Class may not change as a result of resizing",
        ),
        ({"requests": {"cpu": "300m"}}, "must be less than or equal to cpu limit"),
        ({"limits": {"cpu": None}}, "resource limits cannot be removed"),
    ],
)
def test_resizes_are_checked(bench: Bench, resources: Tree, text: str) -> None:
    """A resize keeps the class of the pod, the order of requests and limits, and takes no limit away."""
    bench.create(pod())
    with pytest.raises(Invalid) as error:
        bench.patch("Pod", "p", {"spec": {"containers": [{"name": "c", "resources": resources}]}}, type_="strategic", subresource="resize")
    assert text in error.value.message


def test_ephemeral_containers_are_added_with_their_defaults(bench: Bench) -> None:
    """A debugging container is added with defaults, and nothing else of the body counts."""
    bench.create(pod())
    body = {"spec": {"activeDeadlineSeconds": 5, "ephemeralContainers": [{"name": "d", "image": "b"}]}}
    spec = bench.patch("Pod", "p", body, type_="strategic", subresource="ephemeralcontainers")["spec"]
    (added,) = spec["ephemeralContainers"]
    assert (added["imagePullPolicy"], added["terminationMessagePolicy"]) == ("Always", "File")
    assert "activeDeadlineSeconds" not in spec


@pytest.mark.parametrize(
    "containers,text",
    [
        ([], 'existing ephemeral containers "d" may not be removed'),
        ([{"name": "d", "image": "other"}], 'existing ephemeral containers "d" may not be changed'),
        ([{"name": "d", "image": "b"}, {"name": "c", "image": "b"}], 'Duplicate value: "c"'),
    ],
)
def test_ephemeral_containers_are_only_added(bench: Bench, containers: list[Tree], text: str) -> None:
    """What is there stays as it is, and names are unique among all containers."""
    bench.create(pod())
    bench.patch("Pod", "p", {"spec": {"ephemeralContainers": [{"name": "d", "image": "b"}]}}, type_="strategic", subresource="ephemeralcontainers")
    with pytest.raises(Invalid) as error:
        bench.patch("Pod", "p", {"spec": {"ephemeralContainers": containers}}, type_="merge", subresource="ephemeralcontainers")
    assert text in error.value.message


# ------------------------------------------------------------------------------------------------ logs


STARTED, ENDED = "2026-01-01T00:00:10Z", "2026-01-01T00:01:00Z"


def observed(state: Tree, *, last: Tree | None = None, node: str = "n", **metadata: Any) -> Tree:
    """Return a pod whose only container is in some state."""
    status = {"phase": "Running", "containerStatuses": [{"name": "c", "state": state, "lastState": last or {}}]}
    return {"metadata": {"name": "p", **metadata}, "spec": {"nodeName": node, "containers": [{"name": "c"}]}, "status": status}


def test_a_log_tells_start_and_end() -> None:
    """A container's log has a line for its start, what the annotation says, and a line for its end."""
    state = {"terminated": {"startedAt": STARTED, "finishedAt": ENDED, "exitCode": 3}}
    tree = observed(state, annotations={"kubemini.dev/log": "one\ntwo"})
    assert log_text(tree, LogOptions(), 0) == "c: started on n\none\ntwo\nc: exited with code 3\n"
    assert log_text(tree, LogOptions(timestamps=True, tail_lines=1), 0) == f"{ENDED} c: exited with code 3\n"
    assert log_text(tree, LogOptions(since_time=ENDED), 0) == "c: exited with code 3\n"
    assert log_text(tree, LogOptions(limit_bytes=5), 0) == "c: st"


def test_the_log_of_the_run_before() -> None:
    """`previous` shows the run before the last restart, where there was one."""
    last = {"terminated": {"startedAt": STARTED, "finishedAt": ENDED, "exitCode": 1}}
    tree = observed({"running": {"startedAt": ENDED}}, last=last)
    assert log_text(tree, LogOptions(previous=True), 0).endswith("c: exited with code 1\n")
    with pytest.raises(BadRequest, match='previous terminated container "c" in pod "p" not found'):
        log_text(observed({"running": {"startedAt": ENDED}}), LogOptions(previous=True), 0)


def test_a_waiting_container_has_no_log() -> None:
    """A container that never started is said to wait, and why; a pod without a node has an empty log."""
    with pytest.raises(BadRequest, match='container "c" in pod "p" is waiting to start: ImagePullBackOff'):
        log_text(observed({"waiting": {"reason": "ImagePullBackOff"}}), LogOptions(), 0)
    assert log_text(observed({}, node=""), LogOptions(), 0) == ""


def test_the_container_has_to_be_named_among_several() -> None:
    """With several containers one must be named, and the refusal lists them."""
    tree = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}}
    with pytest.raises(BadRequest) as error:
        chosen_container(tree, "")
    assert error.value.message == "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]"
    with pytest.raises(BadRequest, match="container x is not valid for pod p"):
        chosen_container(tree, "x")
    assert chosen_container(tree, "i") == "i"


@pytest.mark.parametrize(
    "query,text",
    [
        ({"tailLines": "-1"}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": "0"}, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "1", "sinceTime": STARTED}, "at most one of `sinceTime` or `sinceSeconds` may be specified"),
    ],
)
def test_log_options_are_checked(query: dict[str, str], text: str) -> None:
    """Bad log options are refused as PodLogOptions."""
    with pytest.raises(Invalid) as error:
        log_text(observed({"running": {"startedAt": STARTED}}), LogOptions.of(query), 0)
    assert error.value.message.startswith('PodLogOptions "p" is invalid: ')
    assert text in error.value.message
