"""Node life's pure rules: eviction pace by zone, how long a pod may stay on a tainted node."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.controllers.nodes.taint_eviction import stay
from kubemini.controllers.nodes.zones import Zones

Tree = dict[str, Any]


def node(name: str, ready: str | None, zone: str = "") -> Tree:
    """Return a node that is ready or not; None: it has not said yet."""
    labels = {"topology.kubernetes.io/zone": zone} if zone else {}
    return {"metadata": {"name": name, "labels": labels}, "status": {"conditions": [{"type": "Ready", "status": ready}] if ready else []}}


def zones(*nodes: Tree) -> Zones:
    """Return zones that have seen some nodes."""
    found = Zones()
    for each in nodes:
        found.change(None, each)
    return found


def test_one_node_every_ten_seconds() -> None:
    """In a zone that is well the first node is tainted at once, the next after 10 s."""
    down = [node(f"d{i}", "Unknown") for i in range(2)]
    found = zones(*down, node("a", "True"), node("b", "True"))
    assert found.wait(down[0], 100.0) == 0.0
    found.took(down[0], 100.0)
    assert found.wait(down[1], 103.0) == 7.0


@pytest.mark.parametrize(
    "down, ready, rate",
    [(2, 1, 0.1), (3, 2, 0.0), (3, 3, 0.1), (40, 20, 0.01), (1, 0, 0.0)],
)
def test_pace(down: int, ready: int, rate: float) -> None:
    """Where most of a zone is down a small zone is left alone and a large one slowed; with nothing ready nobody is evicted."""
    found = zones(*(node(f"d{i}", "Unknown") for i in range(down)), *(node(f"r{i}", "True") for i in range(ready)))
    assert found.rate(node("x", "Unknown")) == rate


def test_a_zone_of_its_own() -> None:
    """A zone that is down as a whole is evicted at full pace while another is well."""
    found = zones(*(node(f"d{i}", "False", "z1") for i in range(3)), node("r", "True", "z2"))
    assert found.rate(node("x", "False", "z1")) == 0.1
    assert not found.all_down()


def test_changes_of_pace_are_told() -> None:
    """A change that moves a zone into another mode is told, so that those who wait look again; a new node without conditions counts for nothing."""
    found = zones(node("a", "True"))
    assert not found.change(None, node("new", None))
    assert found.change(node("a", "True"), node("a", "Unknown"))
    assert found.all_down()
    assert found.change(node("a", "Unknown"), node("a", "True"))


EXEC = {"key": "k", "value": "v", "effect": "NoExecute"}


@pytest.mark.parametrize(
    "tolerations, seconds",
    [
        ([], 0.0),
        ([{"key": "k", "operator": "Exists"}], None),
        ([{"key": "k", "value": "v", "tolerationSeconds": 30}], 30.0),
        ([{"operator": "Exists", "tolerationSeconds": 60}, {"key": "k", "value": "v", "tolerationSeconds": 30}], 30.0),
        ([{"key": "k", "value": "v", "tolerationSeconds": -5}], 0.0),
        ([{"key": "k", "value": "other"}], 0.0),
        ([{"key": "k", "value": "v", "effect": "NoSchedule"}], 0.0),
    ],
)
def test_how_long_a_pod_may_stay(tolerations: list[Tree], seconds: float | None) -> None:
    """Not at all without a toleration, for ever with one that has no limit, else the shortest of the limits."""
    assert stay([EXEC], tolerations) == seconds


def test_every_taint_must_be_tolerated() -> None:
    """One untolerated taint is enough to go."""
    assert stay([EXEC, {"key": "other", "effect": "NoExecute"}], [{"key": "k", "operator": "Exists"}]) == 0.0
