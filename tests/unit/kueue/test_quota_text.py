"""ClusterQueues as the webhook hands them back: Go writes every quantity as text."""

from __future__ import annotations

from kubemini.sim.cluster import SimCluster, simulate

QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: q}
spec:
  namespaceSelector: {}
  cohortName: c
  resourceGroups:
  - coveredResources: [memory, cpu]
    flavors:
    - name: f
      resources:
      - {name: memory, nominalQuota: 1.5Gi}
      - {name: cpu, nominalQuota: 9, borrowingLimit: 0.5}
"""


def test_quotas_are_text_and_usage_is_in_order_of_names() -> None:
    """Numbers and loose forms of quantities become canonical text; resources of a usage are sorted."""

    async def scenario(cluster: SimCluster) -> None:
        await cluster.apply("apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: f}\nspec: {}")
        await cluster.apply(QUEUE)
        await cluster.settle(5)
        queue = await cluster.get("clusterqueue/q", namespace="")
        resources = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
        assert resources == [{"name": "memory", "nominalQuota": "1536Mi"}, {"name": "cpu", "nominalQuota": "9", "borrowingLimit": "500m"}]
        assert [each["name"] for each in queue["status"]["flavorsUsage"][0]["resources"]] == ["cpu", "memory"]

    simulate(scenario, seed=1, fleet="none")
