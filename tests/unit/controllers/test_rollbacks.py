"""A Deployment with the annotation that asks for an earlier revision."""

from typing import Any

import pytest

from kubemini.api.resources import DEPLOYMENTS, EVENTS, REPLICA_SETS
from kubemini.sim.cluster import SimCluster, simulate

ASKED = "deprecated.deployment.rollback.to"
REVISION = "deployment.kubernetes.io/revision"


def run(revision: str, *, versions: int = 3) -> tuple[dict[str, Any], list[tuple[str, str]], list[str]]:
    """Roll out some versions, ask for a revision, and return the Deployment, what was said of rollbacks, and the revisions of its ReplicaSets by version."""

    async def scenario(cluster: SimCluster) -> tuple[dict[str, Any], list[tuple[str, str]], list[str]]:
        client = cluster.client
        template = {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}
        about = {"name": "d", "namespace": "default", "annotations": {"note": "1"}}
        spec = {"replicas": 0, "selector": {"matchLabels": {"app": "d"}}, "template": template}
        await client.create(DEPLOYMENTS, {"metadata": about, "spec": spec})
        await cluster.settle(30)
        for version in range(2, versions + 1):
            changes = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": f"i:{version}"}]}}}}
            await client.patch(DEPLOYMENTS, "d", {"metadata": {"annotations": {"note": str(version)}}, **changes}, namespace="default")
            await cluster.settle(30)
        await client.patch(DEPLOYMENTS, "d", {"metadata": {"annotations": {ASKED: revision}}}, namespace="default")
        await cluster.settle(30)
        sets = sorted(await client.list(REPLICA_SETS, "default"), key=lambda each: str(each["spec"]["template"]["spec"]["containers"][0]["image"]))
        said = [(each["reason"], each["message"]) for each in await client.list(EVENTS, "default") if "Rollback" in each["reason"]]
        return await client.get(DEPLOYMENTS, "d", "default"), said, [each["metadata"]["annotations"][REVISION] for each in sets]

    return simulate(scenario, fleet="none", controllers="deployment,replica-set")


@pytest.mark.parametrize("asked,version", [("1", "1"), ("0", "2")])
def test_a_deployment_goes_back_to_the_revision_asked_for(asked: str, version: str) -> None:
    """It gets that template and the annotations of that time, the old ReplicaSet the next number; 0 is the last but one. The wish is gone."""
    deployment, said, numbers = run(asked)
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == f"i:{version}"
    assert deployment["spec"]["template"]["metadata"]["labels"] == {"app": "d"}
    assert deployment["metadata"]["annotations"] == {"note": version, REVISION: "4"}
    assert numbers[int(version) - 1] == "4"
    assert said == [("DeploymentRollback", f'Rolled back deployment "d" to revision {version}')]


@pytest.mark.parametrize(
    "asked,versions,reason,text",
    [
        ("7", 2, "DeploymentRollbackRevisionNotFound", "Unable to find the revision to rollback to."),
        ("0", 1, "DeploymentRollbackRevisionNotFound", "Unable to find last revision."),
        ("2", 2, "DeploymentRollbackTemplateUnchanged", 'The rollback revision contains the same template as current deployment "d"'),
    ],
)
def test_a_wish_that_cannot_come_true_is_given_up(asked: str, versions: int, reason: str, text: str) -> None:
    """An event says why, the annotation goes, and nothing else changes."""
    deployment, said, numbers = run(asked, versions=versions)
    assert said == [(reason, text)]
    assert deployment["metadata"]["annotations"] == {"note": str(versions), REVISION: str(versions)}
    assert numbers == [str(number) for number in range(1, versions + 1)]
