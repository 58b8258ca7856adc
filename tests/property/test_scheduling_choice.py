"""The fast way to a node is the full decision: over random clusters, however they came to be, both choose the same node."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubemini.controllers.scheduler.cache import Cache
from kubemini.controllers.scheduler.census import Census
from kubemini.controllers.scheduler.deciding import decide, filters_of
from kubemini.controllers.scheduler.feasible import Signatures
from kubemini.controllers.scheduler.filters import fits
from kubemini.controllers.scheduler.resources import requests_of
from kubemini.machinery.labels import from_label_selector

Tree = dict[str, Any]
RACKS, JOBS = ("r0", "r1", "r2"), ("j0", "j1", "j2")
TAINTS: tuple[Tree, ...] = (
    {"key": "k", "value": "v", "effect": "NoSchedule"},
    {"key": "k", "value": "v", "effect": "PreferNoSchedule"},
    {"key": "s", "value": "", "effect": "PreferNoSchedule"},
)


@st.composite
def nodes(draw: st.DrawFn) -> Tree:
    """Draw a node; its name is given later."""
    spec: Tree = {"taints": draw(st.lists(st.sampled_from(TAINTS), max_size=2, unique_by=str))}
    if draw(st.integers(0, 9)) == 0:
        spec["unschedulable"] = True
    labels = {"rack": draw(st.sampled_from(RACKS))} if draw(st.integers(0, 5)) else {}
    if draw(st.booleans()):
        labels["fast"] = draw(st.sampled_from(("yes", "no")))
    return {
        "metadata": {"labels": labels},
        "spec": spec,
        "status": {
            "allocatable": {
                "cpu": draw(st.sampled_from(("1", "2", "4"))),
                "memory": draw(st.sampled_from(("2Gi", "8Gi"))),
                "pods": draw(st.sampled_from(("2", "10"))),
            }
        },
    }


def term(key: str, jobs: list[str], *, other: bool) -> Tree:
    """Return an affinity term over job labels."""
    expression = {"key": "job", "operator": "NotIn" if other else "In", "values": jobs}
    exists = [{"key": "job", "operator": "Exists"}] if other else []
    return {"topologyKey": key, "labelSelector": {"matchExpressions": [*exists, expression]}}


@st.composite
def pods(draw: st.DrawFn, *, stating: bool) -> Tree:
    """Draw a pod; a `stating` one may have inter-pod terms, as leaders of exclusive groups do."""
    requests = (
        {"cpu": draw(st.sampled_from(("100m", "1", "2"))), "memory": draw(st.sampled_from(("100Mi", "1Gi")))} if draw(st.integers(0, 4)) else {}
    )
    spec: Tree = {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    if draw(st.integers(0, 2)) == 0:
        spec["nodeSelector"] = {"rack": draw(st.sampled_from(RACKS))}
    if draw(st.booleans()):
        spec["tolerations"] = [{"key": "k", "operator": "Exists"}]
    job = draw(st.sampled_from(JOBS))
    affinity: Tree = {}
    if draw(st.integers(0, 3)) == 0:
        preference = {"matchExpressions": [{"key": "fast", "operator": "In", "values": ["yes"]}]}
        affinity["nodeAffinity"] = {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": draw(st.sampled_from((1, 50))), "preference": preference}]
        }
    if stating and draw(st.booleans()):
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term("rack", [job], other=True)]}
        if draw(st.booleans()):
            affinity["podAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": [term("rack", [job], other=False)]}
    if affinity:
        spec["affinity"] = affinity
    spec["priority"] = draw(st.sampled_from((0, 0, 5)))
    return {"metadata": {"namespace": "default", "labels": {"job": job}}, "spec": spec, "status": {}}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.integers(0, 7), nodes()),
        st.tuples(st.just("lost"), st.integers(0, 7), st.none()),
        st.tuples(st.just("pod"), st.integers(0, 99), pods(stating=False)),
        st.tuples(st.just("lead"), st.integers(0, 99), pods(stating=True)),
        st.tuples(st.just("end"), st.integers(0, 99), st.none()),
        st.tuples(st.just("nominate"), st.integers(0, 7), pods(stating=False)),
    ),
    min_size=4,
    max_size=40,
)


def no_labels(namespace: str) -> Tree:
    """Return the labels of a namespace: none."""
    return {}


def named(tree: Tree, name: str) -> Tree:
    """Return a tree with a name and a uid."""
    return {**tree, "metadata": {**tree["metadata"], "name": name, "uid": name}}


@given(first=st.lists(nodes(), min_size=1, max_size=6), steps=STEPS)
def test_the_fast_way_chooses_as_a_full_decision_does(first: list[Tree], steps: list[tuple[str, int, Tree | None]]) -> None:
    """Whenever the heap names a node it is the full decision's, and where it names none that decision finds none or the heap does not claim to know."""
    cache = Cache()
    signatures = Signatures(cache, no_labels)
    for number, each in enumerate(first):
        cache.set_node(named(each, f"n{number}"))
    placed: list[str] = []
    for step, (what, number, tree) in enumerate(steps):
        if what == "node" and tree is not None:
            cache.set_node(named(tree, f"n{number}"))
        elif what == "lost":
            cache.remove_node(f"n{number}")
        elif what == "end" and placed:
            cache.remove(placed.pop(number % len(placed)))
        elif what == "nominate" and tree is not None:
            cache.nominate(named(tree, f"x{step}"), f"n{number}")
        elif what in ("pod", "lead") and tree is not None:
            pod = named(tree, f"p{step}")
            full = decide(filters_of(pod, cache, no_labels), cache)
            affinity = pod["spec"].get("affinity") or {}
            if not (affinity.get("podAffinity") or affinity.get("podAntiAffinity")):
                fast = signatures.of(pod).best()
                if fast is not None:
                    assert fast == full.node
                elif full.node is not None:
                    drawn = any(stated.terms.affinity for stated in cache.terms.stated.values())
                    assert drawn or cache.nominated, f"the heap found no node, the full decision {full.node}"
            if full.node is not None:
                assert fits(requests_of(pod["spec"]), cache.nodes[full.node]) is None
                cache.place(pod, full.node)
                placed.append(pod["metadata"]["uid"])


@given(
    changes=st.lists(st.tuples(st.booleans(), st.integers(0, 9), st.sampled_from(JOBS), st.integers(0, 2)), max_size=40),
    early=st.booleans(),
)
def test_the_census_counts_as_looking_at_every_pod_does(changes: list[tuple[bool, int, str, int]], early: bool) -> None:
    """The count of selected pods by node is the same by profiles as by pods, whenever counting began."""
    here: dict[str, tuple[str, Tree]] = {}
    census = Census(here.values)
    selector = from_label_selector(
        {"matchExpressions": [{"key": "job", "operator": "In", "values": ["j0", "j1"]}, {"key": "odd", "operator": "Exists"}]}
    )
    if early:
        census.track([selector])
    for comes, number, job, node in changes:
        uid = f"p{number}"
        if comes and uid not in here:
            labels = {"job": job, **({"odd": ""} if number % 2 else {})}
            here[uid] = (f"n{node}", {"metadata": {"namespace": "default", "uid": uid, "labels": labels}})
            census.change(here[uid][1], here[uid][0], 1)
        elif not comes and uid in here:
            gone = here.pop(uid)
            census.change(gone[1], gone[0], -1)
    census.track([selector])
    counted: dict[str, int] = {}
    for crowd in census.crowds():
        if selector.matches(crowd.labels):
            for name, count in crowd.nodes.items():
                counted[name] = counted.get(name, 0) + count
    expected: dict[str, int] = {}
    for name, pod in here.values():
        if selector.matches(pod["metadata"]["labels"]):
            expected[name] = expected.get(name, 0) + 1
    assert counted == expected
