"""The DNS server, asked by a real resolver over UDP and TCP."""

from __future__ import annotations

import dns.asyncquery
import dns.asyncresolver
import dns.message
import dns.rcode
import dns.resolver
import pytest

from kubemini.serving import ServedCluster

JOBSET = """
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: train}
spec:
  network: {enableDNSHostnames: true}
  replicatedJobs:
  - name: w
    replicas: 2
    template:
      spec:
        template:
          spec:
            restartPolicy: Never
            containers: [{name: c, image: i}]
"""


async def test_stable_hostnames_resolve() -> None:
    """Every pod of a JobSet is found under its computable name, as a real resolver asks."""
    cluster = ServedCluster(tls=False, dns=0, fleet="cpu:1", seed=1)
    await cluster.start()
    try:
        assert cluster.dns is not None
        resolver = dns.asyncresolver.Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], cluster.dns.port
        await cluster.apply(JOBSET)
        await cluster.wait("jobset/train", "jsonpath={.status.replicatedJobsStatus[0].ready}=2", timeout=30)
        pods = {pod["spec"]["hostname"]: pod["status"]["podIP"] for pod in await cluster.list("pod")}
        for index in (0, 1):
            name = f"train-w-{index}-0.train.default.svc.cluster.local"
            for tcp in (False, True):
                answer = await resolver.resolve(name, "A", tcp=tcp)
                assert [record.address for record in answer] == [pods[f"train-w-{index}-0"]]
            assert cluster.resolve(f"train-w-{index}-0.train") == [pods[f"train-w-{index}-0"]]
        backwards = await resolver.resolve_address(pods["train-w-0-0"])
        assert str(next(iter(backwards)).target) == "train-w-0-0.train.default.svc.cluster.local."
        with pytest.raises(dns.resolver.NXDOMAIN):
            await resolver.resolve("train-w-2-0.train.default.svc.cluster.local", "A")
        refused = await dns.asyncquery.udp(dns.message.make_query("example.com.", "A"), "127.0.0.1", port=cluster.dns.port, timeout=5)
        assert refused.rcode() == dns.rcode.REFUSED
    finally:
        await cluster.stop()
