"""Laws of pods: defaults, remembered verdicts, sums of resources, quality of service."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubemini.api.trees import Tree
from kubemini.machinery import pod_requests, quantity
from kubemini.server.kinds.core.pod_spec_defaults import default_pod, default_pod_spec
from kubemini.server.kinds.core.pod_spec_validation import validate_pod_spec
from kubemini.server.kinds.core.pod_update import updated_spec

AMOUNTS = st.sampled_from(["0", "100m", "0.5", "1", "2", "1Gi", "1500m"])
NAMES = st.sampled_from(["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"])
LISTS = st.dictionaries(NAMES, AMOUNTS, max_size=3)
RESOURCES = st.fixed_dictionaries({}, optional={"requests": LISTS, "limits": LISTS})
IMAGES = st.sampled_from(["a", "a:1", "host:5000/a", "a@sha256:00", ""])
PORTS = st.lists(st.fixed_dictionaries({"containerPort": st.integers(0, 3), "protocol": st.just("TCP")}), max_size=2)
MOUNTS = st.lists(st.fixed_dictionaries({"name": st.sampled_from(["v", "w"]), "mountPath": st.sampled_from(["/a", "/b"])}), max_size=2)


def containers(names: list[str], **more: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Tree]]:
    """Return lists of containers."""
    optional = {"resources": RESOURCES, "ports": PORTS, "volumeMounts": MOUNTS, **more}
    one = st.fixed_dictionaries({"name": st.sampled_from(names), "image": IMAGES}, optional=optional)
    return st.lists(one, min_size=1, max_size=3)


VOLUMES = st.lists(
    st.sampled_from(
        [
            {"name": "v", "emptyDir": {}},
            {"name": "v", "hostPath": {"path": "/x"}},
            {"name": "w", "configMap": {"name": "c"}},
            {"name": "w", "secret": {}},
            {"name": "v"},
        ]
    ),
    max_size=2,
)
SPECS: st.SearchStrategy[Tree] = st.fixed_dictionaries(
    {"containers": containers(["a", "b", "c"]), "restartPolicy": st.sampled_from(["Always", "Never", "Odd"])},
    optional={
        "initContainers": containers(["i", "a"], restartPolicy=st.just("Always")),
        "volumes": VOLUMES,
        "hostNetwork": st.booleans(),
        "hostname": st.sampled_from(["h", "H", ""]),
        "subdomain": st.sampled_from(["s", "s.s"]),
        "nodeName": st.sampled_from(["n", "-"]),
        "nodeSelector": st.dictionaries(st.sampled_from(["a", "a/b", "/"]), st.sampled_from(["x", " "]), max_size=2),
        "activeDeadlineSeconds": st.sampled_from([0, 1, -1]),
        "terminationGracePeriodSeconds": st.sampled_from([0, 30, -5]),
        "tolerations": st.lists(st.sampled_from([{"operator": "Exists"}, {"key": "a", "operator": "Exists", "value": "b"}]), max_size=2),
        "schedulingGates": st.lists(st.sampled_from([{"name": "a.b/c"}, {"name": ""}]), max_size=2),
        "resources": RESOURCES,
        "os": st.sampled_from([{"name": "linux"}, {"name": "beos"}]),
    },
)
PARTS = ("containers", "initContainers", "volumes", "tolerations", "nodeSelector", "schedulingGates")


@given(SPECS)
def test_defaults_are_filled_once(spec: Tree) -> None:
    """A pod that has its defaults is left as the very same tree; what clients sent is never changed."""
    before = deepcopy(spec)
    full = default_pod(spec)
    assert default_pod(full) is full
    assert spec == before


@given(SPECS)
def test_a_templates_defaults_are_part_of_its_pods(spec: Tree) -> None:
    """A pod made of a defaulted template equals one made of the template as it was written."""
    assert default_pod(default_pod_spec(spec)) == default_pod(spec)


@given(SPECS)
def test_pods_of_a_template_share_their_lists(spec: Tree) -> None:
    """What is defaulted is the same object for every pod with the same list."""
    one, other = default_pod(spec), default_pod({**spec, "hostname": "other"})
    assert all(one.get(key) is other.get(key) for key in PARTS)


@given(st.lists(SPECS, min_size=2, max_size=4), st.data())
def test_a_remembered_verdict_is_the_true_one(specs: list[Tree], data: st.DataObject) -> None:
    """Specs are judged the same whether or not parts of them were seen before, in whatever combination."""
    pool = [default_pod(each) for each in specs]
    for _ in range(6):
        mixed = dict(data.draw(st.sampled_from(pool)))
        donor = data.draw(st.sampled_from(pool))
        for key in data.draw(st.lists(st.sampled_from(sorted({**donor, **mixed})), max_size=3)):
            if key in donor:
                mixed[key] = donor[key]
            elif key != "containers":
                mixed.pop(key, None)
        for pod in (True, False):
            seen = [(each.field, each.body) for each in validate_pod_spec(mixed, pod=pod)]
            assert seen == [(each.field, each.body) for each in validate_pod_spec(deepcopy(mixed), pod=pod)]


@given(SPECS)
def test_a_pod_may_stay_as_it_is(spec: Tree) -> None:
    """An update that changes nothing is never refused, not even of pods that no longer pass validation."""
    pod = {"metadata": {"name": "p"}, "spec": default_pod(spec)}
    assert list(updated_spec(pod, pod)) == []
    assert list(updated_spec(deepcopy(pod), pod)) == []


# ------------------------------------------------------------------------------------------------------ sums


def moments(spec: Tree) -> list[list[Tree]]:
    """Return which containers run together, at each stage of a pod's life."""
    sidecars: list[Tree] = []
    found: list[list[Tree]] = []
    for each in spec.get("initContainers", ()):
        found.append([*sidecars, each])
        if each.get("restartPolicy") == "Always":
            sidecars.append(each)
    return [*found, [*spec["containers"], *sidecars]]


@given(SPECS, st.sampled_from(["requests", "limits"]))
def test_a_pod_asks_for_its_dearest_moment(spec: Tree, kind: str) -> None:
    """Sidecars run along, init containers run one after another: the sum is the largest of all stages, for each resource by itself."""
    expected: dict[str, int] = {}
    for running in moments(spec):
        for name in ("cpu", "memory", "ephemeral-storage", "nvidia.com/gpu"):
            values = [each.get("resources", {}).get(kind, {}).get(name) for each in running]
            if any(value is not None for value in values):
                expected[name] = max(expected.get(name, 0), sum(quantity.nano(value) for value in values if value is not None))
    assert pod_requests.aggregate(spec, kind) == expected


def quality(spec: Tree) -> str:
    """Return the quality of service by the words of its definition."""
    parts = [each.get("resources", {}) for each in (*spec["containers"], *spec.get("initContainers", ()))]

    def positive(part: Tree, kind: str) -> dict[str, int]:
        listed = part.get(kind, {})
        return {name: quantity.nano(listed[name]) for name in ("cpu", "memory") if name in listed and quantity.nano(listed[name])}

    if not any(positive(part, kind) for part in parts for kind in ("requests", "limits")):
        return "BestEffort"

    def sums(kind: str) -> dict[str, int]:
        found = [positive(part, kind) for part in parts]
        return {name: sum(each.get(name, 0) for each in found) for name in ("cpu", "memory")}

    complete = all(set(positive(part, "limits")) == {"cpu", "memory"} for part in parts)
    return "Guaranteed" if complete and sums("requests") == sums("limits") else "Burstable"


@given(SPECS.map(lambda spec: {key: each for key, each in spec.items() if key != "resources"}))
def test_quality_of_service_follows_its_definition(spec: Tree) -> None:
    """Computed with memory or without, on shared lists or not."""
    assert pod_requests.qos_class(spec) == quality(spec)
    assert pod_requests.qos_class(deepcopy(spec)) == quality(spec)
