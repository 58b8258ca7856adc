"""Defaults of pods, what may change on them, and what the server writes into them."""

from typing import Any

import pytest

from kubemini.machinery.pod_requests import aggregate, qos_class
from kubemini.server.kinds.core.pod_spec_defaults import default_pod, default_pod_spec, default_pod_template, pull_policy
from kubemini.server.options import DeleteOptions
from kubemini.store import Change


@pytest.mark.parametrize(
    "image, policy",
    [
        ("a", "Always"),
        ("a:latest", "Always"),
        ("a:1", "IfNotPresent"),
        ("host:5000/a", "Always"),
        ("host:5000/a:1", "IfNotPresent"),
        ("a@sha256:00", "IfNotPresent"),
    ],
)
def test_the_tag_decides_the_pull_policy(image: str, policy: str) -> None:
    """No tag and ``latest`` are pulled always, everything else when it is not there."""
    assert pull_policy(image) == policy


def test_requests_follow_limits_in_pods_but_not_in_templates() -> None:
    """A missing request is the limit; templates are left as written, since limit ranges may still fill them."""
    spec = {"containers": [{"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}}]}
    assert default_pod(spec)["containers"][0]["resources"]["requests"] == {"cpu": "500m", "memory": "1Gi"}
    assert default_pod_spec(spec)["containers"][0]["resources"]["requests"] == {"cpu": "500m"}


def test_a_defaulted_template_is_left_alone_and_shared() -> None:
    """Defaulting twice returns the very same tree, and two specs with one list of containers get one defaulted list."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    once = default_pod_template(template)
    assert once["spec"]["containers"][0]["imagePullPolicy"] == "Always"
    assert default_pod_template(once) is once
    assert default_pod_spec({**template["spec"]})["containers"] is once["spec"]["containers"]


def test_host_ports_follow_container_ports_on_the_host_network() -> None:
    """With hostNetwork a port of a container is a port of the host."""
    spec = default_pod({"hostNetwork": True, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]})
    assert spec["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80}]


def test_the_old_and_the_new_name_of_the_account_agree(desk: Any) -> None:
    """``serviceAccount`` mirrors ``serviceAccountName``, whichever was given."""
    desk.create("ServiceAccount", name="bot")
    for index, key in enumerate(("serviceAccount", "serviceAccountName")):
        spec = desk.pod(name=f"p{index}", **{key: "bot"})["spec"]
        assert (spec["serviceAccount"], spec["serviceAccountName"]) == ("bot", "bot")


def test_a_gated_pod_says_so_from_the_start(desk: Any) -> None:
    """The condition is there before any scheduler looked."""
    status = desk.pod(schedulingGates=[{"name": "a"}])["status"]
    assert [(each["type"], each["status"], each["reason"]) for each in status["conditions"]] == [("PodScheduled", "False", "SchedulingGated")]


def test_a_negative_grace_period_becomes_one_second(desk: Any) -> None:
    """As upstream treats it, in pods and in templates."""
    assert desk.pod(terminationGracePeriodSeconds=-5)["spec"]["terminationGracePeriodSeconds"] == 1


def test_own_label_values_are_written_into_selectors(desk: Any) -> None:
    """matchLabelKeys become In, mismatchLabelKeys NotIn; keys without a label are ignored."""
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["rev", "gone"], "mismatchLabelKeys": ["team"]}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    spec = desk.pod(meta={"labels": {"rev": "1", "team": "red"}}, affinity=affinity)["spec"]
    found = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]
    assert found["labelSelector"]["matchExpressions"] == [
        {"key": "rev", "operator": "In", "values": ["1"]},
        {"key": "team", "operator": "NotIn", "values": ["red"]},
    ]


QUALITY: list[tuple[list[dict[str, Any]], str]] = [
    ([{}], "BestEffort"),
    ([{"limits": {"nvidia.com/gpu": "1"}}], "BestEffort"),
    ([{"requests": {"cpu": "1"}}], "Burstable"),
    ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}], "Guaranteed"),
    ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "2", "memory": "1"}}], "Burstable"),
    ([{"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1", "memory": "1"}}, {}], "Burstable"),
    ([{"requests": {"cpu": "0"}}], "BestEffort"),
]


@pytest.mark.parametrize("resources, quality", QUALITY)
def test_requests_and_limits_decide_the_quality_of_service(resources: list[dict[str, Any]], quality: str) -> None:
    """Guaranteed needs equal requests and limits of CPU and memory in every container."""
    assert qos_class({"containers": [{"name": str(index), "resources": each} for index, each in enumerate(resources)]}) == quality


def test_sidecars_count_with_containers_and_init_containers_one_after_another() -> None:
    """A sidecar counts with the init containers after it, not with those before it."""

    def of(cpu: str, **more: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    late = {"containers": [of("1")], "initContainers": [of("4"), of("3", restartPolicy="Always")]}
    early = {"containers": [of("1")], "initContainers": [of("3", restartPolicy="Always"), of("2")]}
    assert (aggregate(late, "requests"), aggregate(early, "requests")) == ({"cpu": 4 * 10**9}, {"cpu": 5 * 10**9})


# ------------------------------------------------------------------------------------------------------ changes


def test_images_deadlines_and_tolerations_may_change(desk: Any) -> None:
    """The few fields that upstream lets change."""
    desk.pod()
    assert (
        desk.patch("Pod", "x", {"spec": {"containers": [{"name": "c", "image": "two"}]}}, type_="strategic")["spec"]["containers"][0]["image"]
        == "two"
    )
    assert desk.patch("Pod", "x", {"spec": {"activeDeadlineSeconds": 9}})["metadata"]["generation"] == 3
    tolerations = [*desk.get("Pod", "x")["spec"]["tolerations"], {"key": "k", "operator": "Exists"}]
    assert len(desk.patch("Pod", "x", {"spec": {"tolerations": tolerations}})["spec"]["tolerations"]) == 3


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"containers": [{"name": "c", "command": ["x"]}]}, "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"),
    ({"hostname": "h"}, "spec: Forbidden: pod updates may not change fields other than"),
    ({"hostname": "h"}, ' "ImagePullSecrets": null,\n- "Hostname": "",\n+ "Hostname": "h",\n  "Subdomain": "",\n'),
    ({"containers": [{"name": "d", "image": "i"}]}, "spec.containers: Forbidden: pod updates may not add or remove containers"),
    ({"activeDeadlineSeconds": 20}, "spec.activeDeadlineSeconds: Invalid value: 20: must be less than or equal to previous value"),
    ({"activeDeadlineSeconds": None}, "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"),
    (
        {"tolerations": [{"key": "k", "operator": "Exists"}]},
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds",
    ),
    ({"schedulingGates": [{"name": "g"}]}, "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"),
]


@pytest.mark.parametrize("spec, text", CHANGES)
def test_the_rest_of_a_pod_stays_as_it_is(desk: Any, spec: dict[str, Any], text: str) -> None:
    """Everything else is refused with upstream's texts."""
    desk.pod(activeDeadlineSeconds=10, tolerations=[{"key": "mine", "operator": "Exists"}])
    kind = "strategic" if "containers" in spec else "merge"
    assert any(text in each for each in desk.unpatched("Pod", "x", {"spec": spec}, type_=kind))


def test_a_gated_pod_may_be_steered_more_tightly(desk: Any) -> None:
    """While gated, a node selector may grow but not change, and node affinity may only add requirements."""
    desk.pod(schedulingGates=[{"name": "g"}], nodeSelector={"a": "1"})
    assert desk.patch("Pod", "x", {"spec": {"nodeSelector": {"b": "2"}}})["spec"]["nodeSelector"] == {"a": "1", "b": "2"}
    assert desk.unpatched("Pod", "x", {"spec": {"nodeSelector": {"a": "2"}}})[0].endswith(
        "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
    )
    term = {"matchExpressions": [{"key": "k", "operator": "Exists"}]}
    required = "requiredDuringSchedulingIgnoredDuringExecution"

    def affinity(*terms: Any) -> Any:
        return {"spec": {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": list(terms)}}}}}

    desk.patch("Pod", "x", affinity(term))
    more = {"matchExpressions": [*term["matchExpressions"], {"key": "l", "operator": "Exists"}]}
    desk.patch("Pod", "x", affinity(more))
    shown = '{"MatchExpressions":[{"Key":"k","Operator":"Exists","Values":null}],"MatchFields":null}'
    assert f"Invalid value: {shown}: only additions are allowed" in desk.unpatched("Pod", "x", affinity(term))[0]


def test_a_status_keeps_quality_and_ended_containers(desk: Any) -> None:
    """Quality of service does not change, and what ended does not live again where nothing restarts it."""
    desk.pod(restartPolicy="Never")
    ended = {"name": "c", "state": {"terminated": {"exitCode": 1}}, "image": "i", "imageID": "", "ready": False, "restartCount": 0}
    desk.patch("Pod", "x", {"status": {"containerStatuses": [ended]}}, subresource="status")
    running = {**ended, "state": {"running": {}}}
    assert desk.unpatched("Pod", "x", {"status": {"containerStatuses": [running]}}, subresource="status") == [
        "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
    ]
    assert desk.unpatched("Pod", "x", {"status": {"qosClass": "Guaranteed"}}, subresource="status")[0].startswith("status.qosClass: Invalid value")


@pytest.mark.parametrize(
    "spec, asked, grace", [({"nodeName": "n"}, None, 30), ({"nodeName": "n"}, 5, 5), ({}, None, None), ({"nodeName": "n"}, 0, None)]
)
def test_only_scheduled_pods_are_deleted_gracefully(desk: Any, spec: dict[str, Any], asked: int | None, grace: int | None) -> None:
    """A pod on no node goes at once; else its own period holds unless the deletion names another."""
    desk.pod(**spec)
    desk.delete("Pod", "x", options=DeleteOptions(grace=asked))
    found = desk.api.reader.get("pods", "default", "x")
    assert (None if found is None else found["metadata"]["deletionGracePeriodSeconds"]) == grace


def test_a_deletion_without_grace_is_seen_before_the_pod_is_gone(desk: Any) -> None:
    """Watchers hear of a marked pod first, then of its end, as on a real server."""
    desk.pod(nodeName="n")
    heard: list[tuple[bool, bool]] = []

    def observe(table: str, change: Change) -> None:
        if table == "pods" and change.old is not None:
            heard.append(("deletionTimestamp" in change.old.obj["metadata"], change.new is None))

    desk.api.store.observer = observe
    desk.delete("Pod", "x", options=DeleteOptions(grace=0))
    assert heard == [(False, False), (True, True)]


# ------------------------------------------------------------------------------------------------------ warnings

WARNED: list[tuple[dict[str, Any], str]] = [
    (
        {"containers": [{"name": "c", "image": "i", "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}]},
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
    ),
    (
        {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}, {"containerPort": 80}]}]},
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]",
    ),
    (
        {"nodeSelector": {"beta.kubernetes.io/os": "linux"}},
        'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
    ),
    ({"imagePullSecrets": [{"name": "a"}, {"name": "a"}]}, 'spec.imagePullSecrets[1].name: duplicate name "a"'),
    ({"hostAliases": [{"ip": "1.1.1.1"}, {"ip": "1.1.1.1"}]}, 'spec.hostAliases[1].ip: duplicate ip "1.1.1.1"'),
]


@pytest.mark.parametrize("spec, text", WARNED)
def test_odd_but_legal_pods_are_warned_about(desk: Any, spec: dict[str, Any], text: str) -> None:
    """The pod is created, with a Warning."""
    assert desk.outcome("Pod", spec={"containers": [{"name": "c", "image": "i"}], **spec}).warnings == [text]


def test_a_variable_may_extend_an_earlier_one(desk: Any) -> None:
    """No warning where the second definition uses the first."""
    env = [{"name": "PATH", "value": "/a"}, {"name": "PATH", "value": "$(PATH):/b"}]
    assert desk.outcome("Pod", spec={"containers": [{"name": "c", "image": "i", "env": env}]}).warnings == []
