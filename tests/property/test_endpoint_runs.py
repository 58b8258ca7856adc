"""Endpoints of a running cluster: whatever happens to pods and however late caches are, at rest they are exactly the pods that are there."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from kubemini.api.resources import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from kubemini.machinery.errors import NotFound
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import Faults

CONTROLLERS = "service-accounts,nodes,kubelet,endpoints,garbage-collector"
STEPS = st.tuples(st.sampled_from(["make", "delete", "relabel", "wait", "reselect"]), st.integers(0, 7))


def pod(number: int) -> dict[str, Any]:
    """Return a pod bound to the node; every third one is never ready."""
    annotations = {"kubemini.dev/hold": "running"} if number % 3 == 0 else {}
    meta = {"name": f"p-{number}", "namespace": "default", "labels": {"app": "x", "half": str(number % 2)}, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "m", "image": "x"}], "nodeName": "n-0"}}


class Doubles:
    """Follows slices and notes every address that stands in two slices of a Service at once, and every empty slice too many."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._slices: dict[str, Any] = {}

    def replace(self, objects: Any) -> None:
        """Take a snapshot."""
        self._slices = {each["metadata"]["name"]: each for each in objects}

    def change(self, type_: str, obj: Any) -> None:
        """Take a change and look."""
        self._slices[obj["metadata"]["name"]] = obj
        if type_ == "DELETED":
            del self._slices[obj["metadata"]["name"]]
        mine = [each.get("endpoints") or [] for each in self._slices.values() if each["metadata"].get("generateName") == "s-"]
        listed = [endpoint["targetRef"]["uid"] for each in mine for endpoint in each]
        if len(listed) != len(set(listed)) or (len(mine) > 1 and [] in mine):
            self.found.append(mine)


@settings(max_examples=25)
@given(st.lists(STEPS, max_size=25), st.integers(0, 2**16), st.sampled_from([0.0, 0.3, 3.0]))
def test_slices_and_endpoints_are_the_pods(steps: list[tuple[str, int]], seed: int, delay: float) -> None:
    """At rest each selected pod with an address is in exactly one slice and once in Endpoints, as ready as it is, and nothing else is; at no time is one in two."""

    async def scenario(cluster: SimCluster) -> None:
        client = cluster.client
        await cluster.settle()
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        doubles = Doubles()
        client.watch(ENDPOINT_SLICES, doubles)
        service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]}}
        await client.create(SERVICES, {"apiVersion": "v1", "kind": "Service", **service})
        for action, number in steps:
            try:
                if action == "make":
                    await client.create(PODS, pod(number))
                elif action == "delete":
                    await client.delete(PODS, f"p-{number}", namespace="default")
                elif action == "relabel":
                    await client.patch(PODS, f"p-{number}", {"metadata": {"labels": {"app": "y" if number % 2 else "x"}}}, namespace="default")
                elif action == "reselect":
                    await client.patch(SERVICES, "s", {"spec": {"selector": {"half": str(number % 2) if number > 3 else None}}}, namespace="default")
                else:
                    await cluster.env.sleep(number / 10)
            except NotFound:
                pass
            except Exception as refused:
                if "already exists" not in str(refused):
                    raise
        assert await cluster.settle()
        live = await client.get(SERVICES, "s", "default")
        selected = [each for each in await client.list(PODS, "default") if live["spec"]["selector"].items() <= each["metadata"]["labels"].items()]
        wanted = {(each["status"]["podIP"], int(each["metadata"]["name"][2:]) % 3 != 0) for each in selected}
        slices = await client.list(ENDPOINT_SLICES, "default", label_selector="kubernetes.io/service-name=s")
        listed = [(endpoint["addresses"][0], endpoint["conditions"]["ready"]) for each in slices for endpoint in each.get("endpoints") or ()]
        assert sorted(listed) == sorted(wanted)
        assert slices
        assert doubles.found == []
        subsets = (await client.get(ENDPOINTS, "s", "default")).get("subsets") or []
        legacy = [
            (each["ip"], name == "addresses") for subset in subsets for name in ("addresses", "notReadyAddresses") for each in subset.get(name, ())
        ]
        assert sorted(legacy) == sorted(wanted)
        await client.delete(SERVICES, "s", namespace="default")
        assert await cluster.settle()
        assert await client.list(ENDPOINTS, "default") == []
        assert await client.list(ENDPOINT_SLICES, "default") == []

    simulate(scenario, seed=seed, faults=Faults(watch_delay=delay), controllers=CONTROLLERS)
