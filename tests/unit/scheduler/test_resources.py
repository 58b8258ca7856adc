"""What a pod asks for: containers, init containers, sidecars, overhead, pod-level requests."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.controllers.scheduler.resources import NONZERO_CPU, NONZERO_MEMORY, requests_of


def container(cpu: str, *, always: bool = False) -> dict[str, Any]:
    """Return a container that asks for cpu."""
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **({"restartPolicy": "Always"} if always else {})}


CASES: list[tuple[str, dict[str, Any], int]] = [
    ("containers add up", {"containers": [container("1"), container("500m")]}, 1500),
    ("the largest init container counts alone", {"containers": [container("1")], "initContainers": [container("3"), container("2")]}, 3000),
    ("a smaller init container costs nothing", {"containers": [container("2")], "initContainers": [container("1")]}, 2000),
    ("a sidecar stands beside the containers", {"containers": [container("1")], "initContainers": [container("2", always=True)]}, 3000),
    (
        "a sidecar stands beside later init containers",
        {"containers": [container("1")], "initContainers": [container("2", always=True), container("3")]},
        5000,
    ),
    ("but not beside earlier ones", {"containers": [container("1")], "initContainers": [container("3"), container("2", always=True)]}, 3000),
    ("overhead is added", {"containers": [container("1")], "overhead": {"cpu": "250m"}}, 1250),
    ("pod-level requests replace the sum", {"containers": [container("1")], "resources": {"requests": {"cpu": "5"}}}, 5000),
    (
        "overhead comes on top of pod-level requests",
        {"containers": [container("1")], "resources": {"requests": {"cpu": "2"}}, "overhead": {"cpu": "1"}},
        3000,
    ),
]


@pytest.mark.parametrize("spec, milli", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_cpu_of_a_pod(spec: dict[str, Any], milli: int) -> None:
    """A pod asks for the larger of what runs together and of each init step, plus overhead, and for one pod."""
    found = requests_of(spec)
    assert found.fit["cpu"] == milli
    assert found.fit["pods"] == 1


def test_scoring_counts_containers_without_requests() -> None:
    """A container without requests fits anywhere, yet counts 100m and 200Mi when nodes are scored."""
    found = requests_of({"containers": [{"name": "a"}, {"name": "b"}]})
    assert "cpu" not in found.fit
    assert (found.score_cpu, found.score_memory) == (2 * NONZERO_CPU, 2 * NONZERO_MEMORY)
