"""What holds of every generated fleet, and how node groups relate to the conformance runner's."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubemini.fleets import MACHINES, PRESETS, load_fleet
from kubemini.machinery.names import dns1123_subdomain, label_value, qualified_name
from kubemini.machinery.quantity import nano

TPUS = [machine for machine in MACHINES.values() if machine.chips]
PARENTS = [
    ("cloud.google.com/gce-topology-host", "cloud.google.com/gce-topology-subblock"),
    ("cloud.google.com/gce-topology-subblock", "cloud.google.com/gce-topology-block"),
    ("topology.k8s.aws/network-node-layer-3", "topology.k8s.aws/network-node-layer-2"),
    ("topology.k8s.aws/network-node-layer-2", "topology.k8s.aws/network-node-layer-1"),
]


def hold(nodes: list[dict[str, Any]]) -> None:
    """Assert the invariants of a fleet that was made of machine types."""
    pools: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    cliques: defaultdict[str, int] = defaultdict(int)
    names = [node["metadata"]["name"] for node in nodes]
    assert len(set(names)) == len(names)
    for node in nodes:
        labels, status = node["metadata"]["labels"], node["status"]
        assert dns1123_subdomain(node["metadata"]["name"]) is None
        assert labels["kubernetes.io/hostname"] == node["metadata"]["name"]
        assert all(qualified_name(key) is None and label_value(text) is None for key, text in labels.items())
        assert list(status["capacity"]) == list(status["allocatable"])
        assert all(0 <= nano(status["allocatable"][key]) <= nano(value) for key, value in status["capacity"].items())
        if "google.com/tpu" in status["capacity"]:
            pools[labels["cloud.google.com/gke-nodepool"]].append(node)
            assert labels["cloud.google.com/gke-accelerator-count"] == status["capacity"]["google.com/tpu"]
        if clique := labels.get("nvidia.com/gpu.clique"):
            cliques[clique] += 1
            assert status["capacity"]["nvidia.com/gpu"] == "4"
    for pool in pools.values():
        (kind,) = {
            tuple(
                node["metadata"]["labels"][f"cloud.google.com/{key}"] for key in ("gke-tpu-accelerator", "gke-tpu-topology", "gke-accelerator-count")
            )
            for node in pool
        }
        chips = 1
        for side in kind[1].split("x"):
            chips *= int(side)
        assert sum(int(node["status"]["capacity"]["google.com/tpu"]) for node in pool) == chips
    assert all(count == 18 for count in cliques.values())
    for lower, upper in PARENTS:
        above: dict[str, str] = {}
        for node in nodes:
            labels = node["metadata"]["labels"]
            if lower in labels:
                assert above.setdefault(labels[lower], labels[upper]) == labels[upper]


@pytest.mark.parametrize("name", list(PRESETS))
@given(units=st.integers(0, 9))
def test_presets_of_any_size_are_sound(name: str, units: int) -> None:
    """Slices are complete pools, domains nest, NVLink domains have 18 nodes, names and labels are valid, nothing exceeds capacity."""
    nodes = load_fleet(f"{name}:{units}")
    assert len(nodes) * PRESETS[name].units == units * len(load_fleet(name))
    hold(nodes)


@given(data=st.data(), slices=st.integers(0, 4), first=st.integers(0, 3))
def test_tpu_groups_of_any_shape_are_sound(data: st.DataObject, slices: int, first: int) -> None:
    """Whatever slices a machine forms, each is one pool with all the chips of its shape."""
    machine = data.draw(st.sampled_from(TPUS))
    cubes = ["4x4x4", "4x4x8", "4x8x8"] if machine.cube_limit else []
    topology = data.draw(st.sampled_from([*machine.topologies, *cubes]))
    group: dict[str, Any] = {"machine": machine.name, "topology": topology, "slices": slices}
    hosts = len(load_fleet({**group, "slices": 1}))
    nodes = load_fleet({**group, "first": first * hosts})
    assert len(nodes) == slices * hosts
    assert len({node["metadata"]["labels"]["cloud.google.com/gke-nodepool"] for node in nodes}) == slices
    hold(nodes)


@given(name=st.sampled_from([machine.name for machine in MACHINES.values() if not machine.chips]), count=st.integers(0, 5))
def test_machines_of_any_provider_are_sound(name: str, count: int) -> None:
    """Every machine type makes valid nodes that carry its name, its devices and a pool of their own provider."""
    nodes = load_fleet({"machine": name, "count": count, "name": "m-"})
    hold(nodes)
    for node in nodes:
        assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == name
        assert {key: int(value) for key, value in node["status"]["capacity"].items() if "/" in key} == MACHINES[name].devices
        assert "m" in [text for key, text in node["metadata"]["labels"].items() if key.endswith(("nodepool", "nodegroup", "agentpool"))]


PIECES = st.lists(st.sampled_from(["a", "rack-", "{i}", "{i//2}", "{i%3}", "{i // 4}", "0", "b{i}c"]), min_size=1, max_size=3).map("x".join)


@given(text=PIECES, count=st.integers(0, 9), first=st.integers(0, 20))
def test_texts_are_filled_as_the_conformance_runner_fills_them(text: str, count: int, first: int) -> None:
    """A text with numbers in it means the same here and in the conformance cases."""

    def fill(number: int) -> str:
        def value(found: re.Match[str]) -> str:
            by = int(found[2] or 1)
            return str(number // by if found[1] == "//" else number % by if found[1] == "%" else number)

        return re.sub(r"\{i\s*(?:(//|%)\s*(\d+))?\}", value, text)

    nodes = load_fleet({"count": count, "first": first, "annotations": {"text": text}})
    assert [node["metadata"]["annotations"]["text"] for node in nodes] == [fill(number) for number in range(first, first + count)]
