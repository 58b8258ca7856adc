"""DisaggregatedSets under faults: steps of an update, slices, scalers, and the wish come true; and laws of the planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubemini.api.resources import DISAGGREGATED_SET_ROLE_SCALERS, DISAGGREGATED_SETS
from kubemini.api.trees import Tree
from kubemini.controllers.disaggregated_set.planner import Limits, Roles, next_step
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.lws import lws_invariants

ROUGH = Faults(watch_delay=0.4, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
FLEET = [{"count": 4, "name": "n-", "cpu": 64, "memory": "256Gi"}]
LABEL = "disaggregatedset.x-k8s.io/"


def role(name: str, replicas: int, version: int, *, external: bool = False) -> Tree:
    """Return a role."""
    template = {"metadata": {"annotations": {"version": str(version)}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    found: Tree = {"name": name, "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": 1, "workerTemplate": template}}}
    return found | {"scaling": {"mode": "External"}} if external else found


@dataclass(frozen=True)
class Plan:
    """A run: the states of the spec, one after the other, and the seconds between them."""

    specs: tuple[tuple[float, tuple[int, int], int, int, bool], ...]
    """(seconds before, replicas of both roles, version, slices, whether the second is scaled from outside)."""
    seed: int


SPECS = st.tuples(
    st.sampled_from([0.0, 1.0, 7.0, 60.0]), st.tuples(st.integers(1, 4), st.integers(1, 3)), st.integers(0, 2), st.integers(1, 2), st.booleans()
)
PLANS = st.builds(Plan, specs=st.lists(SPECS, min_size=1, max_size=4).map(tuple), seed=st.integers(0, 2**16))


def spec_of(sizes: tuple[int, int], version: int, slices: int, external: bool) -> Tree:
    """Return a spec; what is scaled from outside has one slice."""
    roles = [role("prefill", sizes[0], version), role("decode", sizes[1], version, external=external)]
    return {"slices": 1 if external else slices, "roles": roles}


async def play(cluster: SimCluster, plan: Plan) -> None:
    """Play a plan; afterwards there is one revision with the wanted groups in every slice, and nothing is left after deletion."""
    checker = Checker(cluster.store, lws_invariants())
    client = cluster.client
    for number, (after, *state) in enumerate(plan.specs):
        spec = spec_of(*state)  # type: ignore[arg-type]
        if number == 0:
            await client.create(DISAGGREGATED_SETS, {"metadata": {"name": "llm", "namespace": "default"}, "spec": spec})
            continue
        await cluster.settle(after)
        await client.patch(DISAGGREGATED_SETS, "llm", {"spec": spec}, namespace="default")
    await cluster.settle(6000)
    checker.at_rest()
    await check(cluster, *plan.specs[-1][1:])
    await cluster.delete("disaggregatedset/llm", propagation="Foreground")
    await cluster.settle(2000)
    for kind in ("leaderworkerset", "pod", "statefulset", "disaggregatedsetrolescaler"):
        assert await cluster.list(kind) == [], kind


async def check(cluster: SimCluster, sizes: tuple[int, int], version: int, slices: int, external: bool) -> None:
    """Check that what was wished for is there, and told."""
    found: dict[tuple[Any, Any], list[int]] = {}
    for each in await cluster.list("leaderworkerset"):
        labels = each["metadata"]["labels"]
        found.setdefault((labels[LABEL + "slice"], labels[LABEL + "role"]), []).append(each["spec"]["replicas"])
        template = each["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        assert template["metadata"]["annotations"]["version"] == str(version)
    decode = sizes[1]
    if external:
        (scaler,) = await cluster.list("disaggregatedsetrolescaler")
        decode = scaler["spec"]["replicas"]
        assert decode >= 1
        assert scaler["status"]["replicas"] == decode
    else:
        assert await cluster.list("disaggregatedsetrolescaler") == []
    wanted = {(str(part), name): [count] for part in range(1 if external else slices) for name, count in (("prefill", sizes[0]), ("decode", decode))}
    assert found == wanted
    (ds,) = await cluster.list("disaggregatedset")
    assert [each["type"] for each in ds["status"]["conditions"] if each["status"] == "True"] == ["Available"]
    services = [each["metadata"]["name"] for each in await cluster.list("service") if each["metadata"]["name"].endswith("-prv")]
    assert len(services) == len(wanted)


@given(plan=PLANS)
def test_sets_come_to_what_is_wished(plan: Plan) -> None:
    """On a perfect network, whatever is changed in the middle of an update."""
    simulate(lambda cluster: play(cluster, plan), seed=plan.seed, faults=PERFECT, fleet=FLEET)


@given(plan=PLANS)
def test_sets_come_to_what_is_wished_on_a_rough_network(plan: Plan) -> None:
    """The same with stale caches, lost requests and invented conflicts."""
    simulate(lambda cluster: play(cluster, plan), seed=plan.seed, faults=ROUGH, fleet=FLEET)


def test_a_scaler_scales_its_role() -> None:
    """An autoscaler's write to the scaler becomes the groups of the role; the seed keeps what runs."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.client.create(DISAGGREGATED_SETS, {"metadata": {"name": "llm", "namespace": "default"}, "spec": spec_of((2, 3), 0, 1, False)})
        await cluster.settle(100)
        await cluster.client.patch(DISAGGREGATED_SETS, "llm", {"spec": spec_of((2, 1), 0, 1, True)}, namespace="default")
        await cluster.settle(100)
        scaler = await cluster.client.get(DISAGGREGATED_SET_ROLE_SCALERS, "llm-decode", "default")
        assert scaler["spec"]["replicas"] == 3
        await cluster.client.patch(DISAGGREGATED_SET_ROLE_SCALERS, "llm-decode", {"spec": {"replicas": 5}}, namespace="default", subresource="scale")
        await cluster.settle(100)
        await check(cluster, (2, 5), 0, 1, True)

    simulate(scenario, seed=1, fleet=FLEET)


LIMITS = st.builds(Limits, st.integers(0, 3), st.integers(0, 3)).filter(lambda each: each.surge + each.unavailable > 0)
SIZES = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8), LIMITS), min_size=2, max_size=4)


@given(sizes=SIZES)
def test_updates_end_and_keep_their_limits(sizes: list[tuple[int, int, Limits]]) -> None:
    """Step by step every update comes to its target; no role exceeds its surge or is left alone, and each step goes one way only."""
    initial, target, limits = [each[0] for each in sizes], [each[1] for each in sizes], [each[2] for each in sizes]
    old, new = list(initial), [0] * len(initial)
    for _ in range(100):
        step = next_step(Roles(initial, old, new, target, limits))
        if step is None:
            break
        assert all(after >= before for after, before in zip(step.new, new, strict=True))
        assert all(after <= before for after, before in zip(step.old, old, strict=True))
        assert (step.old, step.new) != (old, new)
        drained = [after == 0 for after, was in zip(step.old, initial, strict=True) if was]
        assert all(drained) or not any(drained)
        old, new = step.old, step.new
    if any(initial) or any(target):
        assert new == target
        assert not any(old)
