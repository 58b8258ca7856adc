"""The pytest plugin: clusters for tests, in process and served.

async def test_gang(cluster):                       # pytest-asyncio; a fresh cluster in process
    await cluster.apply(manifest)
    await cluster.wait("jobset/train", "condition=Completed")

@pytest.mark.kubemini(fleet="h100-2racks", seed=1)  # arguments of Cluster
async def test_on_gpus(cluster): ...

def test_kubectl(served_cluster):                   # a server process of its own
    subprocess.run(["kubectl", "--kubeconfig", served_cluster.kubeconfig, "get", "nodes"], check=True)

def test_under_virtual_time(simulated):             # no waiting at all
    async def scenario(cluster): ...
    simulated(scenario, seed=7)
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kubemini.cluster import Cluster

STOP_SECONDS = 10

try:
    from pytest_asyncio import fixture as async_fixture
except ImportError:  # the async fixture needs pytest-asyncio; the others do not
    async_fixture = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Served:
    """A running ``kubemini serve``: its kubeconfig file and its URL."""

    kubeconfig: Path
    url: str


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "kubemini(**arguments): arguments of the test's cluster (fleet, seed, controllers, feature_gates, …)")


def _arguments(request: pytest.FixtureRequest) -> dict[str, Any]:
    marker = request.node.get_closest_marker("kubemini")
    return {"seed": 0, **(marker.kwargs if marker is not None else {})}


if async_fixture is not None:

    @async_fixture
    async def cluster(request: pytest.FixtureRequest) -> AsyncIterator[Cluster]:
        """A fresh cluster in this process, in real time; it fails the test when a reconcile ended in an unexpected exception."""
        from kubemini.cluster import Cluster  # with the first test that wants one: the plugin is loaded into every pytest run

        async with Cluster(**_arguments(request)) as running:
            yield running
            if running.failures:
                name, key, problem = running.failures[0]
                raise AssertionError(f"controller {name} failed on {key}") from problem


@pytest.fixture
def simulated(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs a scenario (``async def scenario(cluster)``) on a fresh cluster under virtual time; see `kubemini.sim.cluster.simulate`."""
    from kubemini.sim.cluster import simulate

    arguments = _arguments(request)

    def run(scenario: Callable[..., Any], **more: Any) -> Any:
        return simulate(scenario, **{**arguments, **more})

    return run


def _option(name: str, value: Any) -> list[str]:
    """Return an argument of `Cluster` as an option of ``kubemini serve``."""
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, dict):
        return [f"--{name}", ",".join(f"{key}={str(each).lower()}" for key, each in value.items())]
    return [f"--{name}", str(value)]


@pytest.fixture
def served_cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    """A cluster behind HTTPS in a process of its own, for kubectl and other real clients."""
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "kubemini", "serve", "--port", "0", "--kubeconfig", str(kubeconfig)]
    command += [word for name, value in _arguments(request).items() for word in _option(name.replace("_", "-"), value)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603
    try:
        line = process.stdout.readline() if process.stdout is not None else ""
        if not line:
            _, problem = process.communicate(timeout=STOP_SECONDS)
            pytest.fail(f"kubemini serve did not start: {problem}")
        yield Served(kubeconfig, line.rsplit(" ", 1)[-1].strip())
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
