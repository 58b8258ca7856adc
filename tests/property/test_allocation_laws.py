"""Laws of what is handed out and counted: addresses and node ports of Services, quotas of namespaces."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kubemini.api.trees import Tree
from kubemini.machinery import quantity, quota
from kubemini.machinery.errors import ApiStatus, Forbidden
from kubemini.machinery.quota_tally import Tally
from kubemini.runtime.env import to_stamp
from tests.unit.core.conftest import Desk

NAMES = st.sampled_from(["a", "b", "c", "d"])
ADDRESSES = st.sampled_from(["", "", "None", "10.96.0.7", "10.96.0.8", "10.97.0.1", "10.0.0.1"])
NODE_PORTS = st.sampled_from([0, 0, 30001, 30002, 29999])
PORTS = st.lists(
    st.fixed_dictionaries({"port": st.integers(80, 82), "nodePort": NODE_PORTS, "protocol": st.sampled_from(["TCP", "UDP"])}), min_size=1, max_size=2
)
SERVICES = st.fixed_dictionaries(
    {"type": st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]), "clusterIP": ADDRESSES, "ports": PORTS},
    optional={"externalTrafficPolicy": st.sampled_from(["Local", "Cluster"])},
)
STEPS = st.lists(st.tuples(st.sampled_from(["create", "create", "patch", "delete"]), NAMES, SERVICES), max_size=10)


def spec_of(drawn: Tree) -> Tree:
    """Return a spec with named ports and without the values that stand for none."""
    ports = [{**{key: value for key, value in port.items() if value}, "name": f"p{index}"} for index, port in enumerate(drawn["ports"])]
    return {**{key: value for key, value in drawn.items() if value}, "ports": ports}


def services(desk: Desk) -> list[Tree]:
    """Return the specs of all Services."""
    return [each["spec"] for each in desk.api.reader.list("services")]


@settings(max_examples=40)
@given(STEPS)
def test_addresses_and_node_ports_are_held_by_one_service_each(steps: list[tuple[str, str, Tree]]) -> None:
    """Whatever is created, changed, deleted or refused: no address and no node port is handed out twice, and all are of their range."""
    desk = Desk()
    for verb, name, drawn in steps:
        with suppress(ApiStatus):
            if verb == "create":
                desk.create("Service", name=name, spec=spec_of(drawn))
            elif verb == "patch":
                desk.patch("Service", name, {"spec": {key: value for key, value in spec_of(drawn).items() if key != "clusterIP"}})
            else:
                desk.delete("Service", name)
        addresses = [each["clusterIP"] for each in services(desk) if each["clusterIP"] != "None"]
        assert len(addresses) == len(set(addresses))
        assert all(each.startswith(("10.96.", "10.97.")) for each in addresses)
        # One Service may use one number for several protocols.
        held = [number for each in services(desk) for number in {port["nodePort"] for port in each["ports"] if port.get("nodePort")}]
        assert len(held) == len(set(held))
        assert all(30000 <= number <= 32767 for number in held)
        for each in services(desk):
            assert each["type"] != "ClusterIP" or not any(port.get("nodePort") for port in each["ports"])


@settings(max_examples=20)
@given(SERVICES)
def test_what_a_service_held_is_free_again(drawn: Tree) -> None:
    """A Service that could be created can be created again after it is gone, with what it had been given."""
    desk = Desk()
    with suppress(ApiStatus):
        given_ = desk.create("Service", name="a", spec=spec_of(drawn))["spec"]
        desk.delete("Service", "a")
        assert desk.create("Service", name="b", spec=given_)["spec"] == given_


# ------------------------------------------------------------------------------------------------------ quotas

CPU = st.sampled_from(["250m", "1", "1500m"])
POD_STEPS = st.lists(st.tuples(st.sampled_from(["create", "create", "end", "delete"]), NAMES, CPU, st.integers(0, 2)), max_size=14)
HARD = st.fixed_dictionaries(
    {}, optional={"pods": st.sampled_from(["1", "3"]), "requests.cpu": CPU, "requests.nvidia.com/gpu": st.sampled_from(["0", "2", "3"])}
)


@settings(max_examples=40)
@given(POD_STEPS, HARD)
def test_a_quota_is_never_exceeded_and_never_refuses_without_need(steps: list[tuple[str, str, str, int]], hard: Tree) -> None:
    """A pod is refused exactly when something would be too much."""
    desk = Desk()
    desk.create("ResourceQuota", name="q", spec={"hard": hard})
    running: dict[str, dict[str, int]] = {}
    known: set[str] = set()
    for verb, name, cpu, gpus in steps:
        if verb == "create" and name not in known:
            need = {"pods": quota.ONE, "requests.cpu": quantity.nano(cpu), "requests.nvidia.com/gpu": gpus * quota.ONE}
            sums = {key: size + sum(each[key] for each in running.values()) for key, size in need.items()}
            # What a pod asks nothing of cannot be too much of.
            fits = all(sums[key] <= quantity.nano(limit) or not need[key] for key, limit in hard.items())
            assert _created(desk, name, cpu, gpus) == fits
            if fits:
                known.add(name)
                running[name] = need
        elif verb == "end" and name in known:
            desk.patch("Pod", name, {"status": {"phase": "Failed"}}, subresource="status")
            running.pop(name, None)
        elif verb == "delete" and name in known:
            desk.delete("Pod", name)
            known.remove(name)
            running.pop(name, None)


def _created(desk: Desk, name: str, cpu: str, gpus: int) -> bool:
    extended: Tree = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    resources = {"requests": {"cpu": cpu, **extended}, "limits": extended}
    with suppress(Forbidden):
        desk.pod(name=name, container={"resources": resources})
        return True
    return False


LIMITS: list[Tree] = [
    {"spec": {"hard": {"pods": "9", "requests.cpu": "9"}}},
    {"spec": {"hard": {"count/pods": "9"}, "scopes": ["NotTerminating"]}},
    {"spec": {"hard": {"pods": "9"}, "scopes": ["BestEffort"]}},
]
STATES = st.fixed_dictionaries(
    {
        "cpu": CPU | st.none(),
        "phase": st.sampled_from(["Running", "Failed"]),
        "deadline": st.booleans(),
        "leaving": st.sampled_from([None, None, 30, 90]),
    }
)


def state(name: str, drawn: Tree) -> Tree:
    """Return a pod of some state; `leaving` is when it should be gone."""
    metadata: Tree = {"name": name, "namespace": "default"}
    if drawn["leaving"] is not None:
        metadata["deletionTimestamp"] = to_stamp(drawn["leaving"])
    resources = {"requests": {"cpu": drawn["cpu"]}} if drawn["cpu"] else {}
    spec: Tree = {"containers": [{"resources": resources}]}
    if drawn["deadline"]:
        spec["activeDeadlineSeconds"] = 5
    return {"metadata": metadata, "spec": spec, "status": {"phase": drawn["phase"]}}


@given(st.sampled_from(LIMITS), st.lists(st.tuples(NAMES, STATES | st.none(), st.integers(0, 120)), max_size=12))
def test_kept_sums_are_those_of_a_count(limit: Tree, changes: list[tuple[str, Tree | None, int]]) -> None:
    """After any changes, and at any time, a tally says what counting all objects says."""
    objects: dict[str, Tree] = {}
    tally = Tally(limit, "pods", [])
    for name, drawn, now in changes:
        new = None if drawn is None else state(name, drawn)
        tally.replace(objects.pop(name, None), new)
        if new is not None:
            objects[name] = new
        assert tally.used(now) == quota.used(limit, (("pods", each) for each in objects.values()), now)
    assert Tally(limit, "pods", objects.values()).used(60) == tally.used(60)


PODS = st.lists(st.tuples(CPU, st.sampled_from(["Running", "Failed"])), max_size=5)


def pods(drawn: list[tuple[str, str]]) -> list[tuple[str, Any]]:
    """Return pods as the quota's functions take them."""
    return [
        ("pods", {"metadata": {}, "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}, "status": {"phase": phase}})
        for cpu, phase in drawn
    ]


@given(PODS, PODS)
def test_usage_adds_up(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> None:
    """What two sets of objects use is the sum of what each uses; only what the quota limits is counted."""
    limit = {"spec": {"hard": {"pods": "9", "requests.cpu": "9"}}}
    apart = [quota.used(limit, pods(each), 0.0) for each in (one, other)]
    assert quota.used(limit, pods(one + other), 0.0) == {key: apart[0][key] + apart[1][key] for key in ("pods", "requests.cpu")}
