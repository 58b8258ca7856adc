"""Writers in process that vouch for the form of their objects."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.resources import EVENTS, PODS
from kubemini.cluster import Cluster

POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}


def cluster() -> Cluster:
    """Return a cluster without controllers."""
    return Cluster(controllers=["namespaces", "service-accounts"], seed=1)


async def test_what_is_canonical_is_stored_as_it_is() -> None:
    """Nobody looks at it again, and the defaults of a pod that a template has not are there already."""
    async with cluster() as running:
        plain = await running.client.create(PODS, {**POD, "spec": {"containers": [{"name": "c", "image": "i"}]}})
        again = {**POD, "metadata": {"name": "b", "namespace": "default"}, "spec": plain["spec"]}
        vouched = await running.client.create(PODS, again, canonical=True)
        assert vouched["spec"] == plain["spec"]
        assert vouched["spec"]["containers"] is plain["spec"]["containers"]


@pytest.mark.parametrize(
    "spec, told",
    [
        ({"containers": [{"name": "c", "image": "i"}]}, ".spec.restartPolicy"),
        ({"containers": [{"name": "c", "image": "i", "nonsense": 1}]}, "unknown field"),
    ],
)
async def test_a_broken_promise_is_told(spec: dict[str, Any], told: str) -> None:
    """Where promises are proved, as in every test, one that does not hold is a defect of its writer."""
    async with cluster() as running:
        with pytest.raises(Exception, match=told):
            await running.client.create(PODS, {**POD, "spec": spec}, canonical=True)


async def test_nothing_is_looked_at_outside_debug_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    """The promise saves the decoding: what is empty stays."""
    monkeypatch.setattr("kubemini.server.writing.Writing.proving", False)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "a", "fieldPath": ""},
    }
    async with cluster() as running:
        assert "fieldPath" in (await running.client.create(EVENTS, event, canonical=True))["involvedObject"]
