"""What an API server keeps by itself: APIServices, flow control, the range of cluster IPs and which are taken."""

from __future__ import annotations

import httpx

from kubemini.api.trees import Tree
from kubemini.serving import ServedCluster
from tests.unit.crd.definitions import definition

SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLOW = "/apis/flowcontrol.apiserver.k8s.io/v1"


async def services(http: httpx.AsyncClient) -> dict[str, Tree]:
    """Return the APIServices by name."""
    return {each["metadata"]["name"]: each for each in (await http.get(SERVICES)).json()["items"]}


async def test_every_group_version_is_registered(served: ServedCluster, http: httpx.AsyncClient) -> None:
    """There is one APIService for each version of each group, local and available, with the group's priority; the aggregator's own group has none."""
    found = await services(http)
    served_versions = {f"{version}.{group}" for group, versions in served.server.registry.group_versions().items() for version in versions}
    assert set(found) == served_versions - {"v1.apiregistration.k8s.io"}
    assert found["v1."]["spec"] == {"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1}
    assert found["v2.autoscaling"]["spec"] == {"group": "autoscaling", "version": "v2", "groupPriorityMinimum": 17500, "versionPriority": 30}
    assert found["v1alpha2.jobset.x-k8s.io"]["spec"]["groupPriorityMinimum"] == 1000
    labels = {name: found[name]["metadata"]["labels"] for name in ("v1.batch", "v1alpha2.jobset.x-k8s.io")}
    assert [each["kube-aggregator.kubernetes.io/automanaged"] for each in labels.values()] == ["onstart", "true"]
    (condition,) = found["v1.batch"]["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")


async def test_registrations_follow_definitions() -> None:
    """A definition brings its APIService and takes it away; one that somebody deletes comes back."""
    async with (
        ServedCluster(tls=False, controllers="customresources", seed=1) as cluster,
        httpx.AsyncClient(base_url=cluster.listener.url) as http,
    ):
        assert "v1.example.com" not in await services(http)
        crd = definition()
        del crd["status"]
        await http.post(CRDS, json=crd)
        await cluster.wait("crd/gears.example.com", "condition=Established")
        assert (await services(http))["v1.example.com"]["spec"]["versionPriority"] == 100
        await http.delete(f"{SERVICES}/v1.batch")
        assert "v1.batch" in await services(http)
        await http.delete(f"{CRDS}/gears.example.com")
        await cluster.wait("crd/gears.example.com", "delete")
        assert "v1.example.com" not in await services(http)


async def test_metrics_are_aggregated() -> None:
    """What a metrics server would serve is registered with its Service, and available."""
    async with ServedCluster(tls=False, controllers="namespaces", seed=1, metrics_server=True) as cluster:
        service = await cluster.get("apiservice/v1beta1.metrics.k8s.io")
    assert service["spec"]["service"] == {"namespace": "kube-system", "name": "metrics-server", "port": 443}
    assert [(each["type"], each["status"], each["reason"]) for each in service["status"]["conditions"]] == [("Available", "True", "Passed")]


async def test_flow_control(http: httpx.AsyncClient) -> None:
    """The flow schemas and priority levels of a new cluster are there, each schema with a level that exists; what a user deletes stays away."""
    schemas = (await http.get(f"{FLOW}/flowschemas")).json()["items"]
    levels = {each["metadata"]["name"] for each in (await http.get(f"{FLOW}/prioritylevelconfigurations")).json()["items"]}
    assert levels == {"catch-all", "exempt", "global-default", "leader-election", "node-high", "system", "workload-high", "workload-low"}
    assert len(schemas) == 11
    assert {each["spec"]["priorityLevelConfiguration"]["name"] for each in schemas} == levels
    await http.delete(f"{FLOW}/flowschemas/service-accounts")
    assert len((await http.get(f"{FLOW}/flowschemas")).json()["items"]) == 10


async def test_they_can_be_edited(http: httpx.AsyncClient) -> None:
    """These objects pass the rules that a user's would."""
    for path in (f"{SERVICES}/v1.apps", f"{FLOW}/flowschemas/system-node-high", f"{FLOW}/prioritylevelconfigurations/system"):
        patch = {"metadata": {"labels": {"a": "b"}}}
        answer = await http.patch(path, json=patch, headers={"Content-Type": "application/merge-patch+json"})
        assert answer.status_code == 200, answer.text


async def test_range_of_cluster_ips(http: httpx.AsyncClient) -> None:
    """The range that cluster IPs are taken from is a ServiceCIDR, ready."""
    (cidr,) = (await http.get("/apis/networking.k8s.io/v1/servicecidrs")).json()["items"]
    assert (cidr["metadata"]["name"], cidr["spec"]["cidrs"], cidr["status"]["conditions"][0]["status"]) == ("kubernetes", ["10.96.0.0/16"], "True")


async def test_addresses_of_services_are_taken() -> None:
    """Each cluster IP has an IPAddress that says whose it is, as long as the Service has it; an address that somebody else took is not given away."""
    networking, services_path = "/apis/networking.k8s.io/v1/ipaddresses", "/api/v1/namespaces/default/services"
    async with (
        ServedCluster(tls=False, controllers="namespaces", seed=1) as cluster,
        httpx.AsyncClient(base_url=cluster.listener.url) as http,
    ):

        async def owners() -> dict[str, str]:
            items = (await http.get(networking)).json()["items"]
            return {each["metadata"]["name"]: each["spec"]["parentRef"]["name"] for each in items}

        async def make(name: str, address: str) -> httpx.Response:
            return await http.post(services_path, json={"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}})

        await make("a", "10.96.7.7")
        await make("none", "None")
        assert await owners() == {"10.96.0.1": "kubernetes", "10.96.7.7": "a"}
        made = (await http.get(f"{networking}/10.96.7.7")).json()
        assert made["metadata"]["labels"] == {
            "ipaddress.kubernetes.io/ip-family": "IPv4",
            "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
        }
        assert made["spec"] == {"parentRef": {"namespace": "default", "name": "a", "resource": "services"}}
        await http.delete(f"{services_path}/a")
        assert await owners() == {"10.96.0.1": "kubernetes"}
        held = {"metadata": {"name": "10.96.8.8"}, "spec": {"parentRef": {"group": "x.y", "resource": "gateways", "name": "g"}}}
        assert (await http.post(networking, json=held)).status_code == 201
        refused = await make("b", "10.96.8.8")
        assert refused.json()["message"].endswith("failed to allocate IP 10.96.8.8: provided IP is already allocated")
        assert (await make("c", "10.96.7.7")).status_code == 201
        assert await owners() == {"10.96.0.1": "kubernetes", "10.96.7.7": "c", "10.96.8.8": "g"}
