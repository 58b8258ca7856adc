"""Jobs in rare states: what is adopted, what still counts at the end or on the way out, and creations that are refused."""

from __future__ import annotations

from kubemini.api.resources import EVENTS, JOBS, PODS, VALIDATING_ADMISSION_POLICIES, Resource
from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.testing.invariants.job import condition
from tests.unit.job.test_known_bugs import played, say, status_of
from tests.unit.job.test_runs import CONTROLLERS, job

TRACKING = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
BINDINGS = Resource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False)


def ended(code: int) -> Tree:
    """Return the part of a pod's status that tells its exit code."""
    state = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}}
    return {"containerStatuses": [{"name": "m", "image": "i", "imageID": "", "ready": False, "restartCount": 0, "state": state}]}


def test_an_ended_pod_that_is_adopted_counts() -> None:
    """A pod without owner that has ended by the time the Job comes is adopted like any other, and its success is one of the Job's."""

    async def scenario(cluster: SimCluster) -> tuple[Tree, list[Tree]]:
        template = {"metadata": {"labels": {"x": "y"}}, "spec": job()["spec"]["template"]["spec"]}
        loose = await cluster.client.create(
            PODS, {"metadata": {"name": "loose", "namespace": "default", "labels": {"x": "y"}}, "spec": template["spec"]}
        )
        await say(cluster, loose, "Succeeded")
        wanted = job(manualSelector=True, selector={"matchLabels": {"x": "y"}}, completions=2, parallelism=2, template=template)
        await cluster.client.create(JOBS, wanted)
        await cluster.settle(20)
        return await status_of(cluster), list(await cluster.list("pod"))

    status, pods = played(scenario)
    assert (status["succeeded"], status["active"], len(pods)) == (1, 1, 2)
    (loose,) = (pod for pod in pods if pod["metadata"]["name"] == "loose")
    assert (loose["metadata"]["ownerReferences"][0]["name"], loose["metadata"].get("finalizers")) == ("j", None)


def test_a_pod_that_one_job_leaves_behind_is_anothers() -> None:
    """A pod that loses its Job is adopted by another one that selects it; one pod too many there, one goes."""

    async def scenario(cluster: SimCluster) -> tuple[Tree, list[Tree]]:
        template = {"metadata": {"labels": {"x": "y"}}, "spec": job()["spec"]["template"]["spec"]}
        for name in ("i", "j"):
            await cluster.client.create(JOBS, job(name, manualSelector=True, selector={"matchLabels": {"x": "y"}}, template=template))
        await cluster.settle(20)
        await cluster.client.delete(JOBS, "i", namespace="default", propagation="Orphan")
        await cluster.settle(60)
        return await status_of(cluster), list(await cluster.list("pod"))

    status, pods = played(scenario)
    assert [owner["name"] for pod in pods for owner in pod["metadata"]["ownerReferences"]] == ["j"]
    assert (status["active"], status.get("failed", 0)) == (1, 0)


def test_a_pod_that_no_job_will_adopt_loses_the_finalizer() -> None:
    """A pod without owner that carries the tracking finalizer is let go where the Jobs that select it have finished, or are another controller's."""
    labels = {"x": "y"}

    async def scenario(cluster: SimCluster) -> Tree:
        template = {"metadata": {"labels": labels}, "spec": job()["spec"]["template"]["spec"]}
        own: Tree = {"manualSelector": True, "selector": {"matchLabels": labels}, "template": template}
        await cluster.client.create(JOBS, job("done", completions=0, **own))
        await cluster.client.create(JOBS, job("foreign", managedBy="example.com/other", **own))
        await cluster.settle(20)
        meta = {"name": "loose", "namespace": "default", "labels": labels, "finalizers": [TRACKING]}
        await cluster.client.create(PODS, {"metadata": meta, "spec": template["spec"]})
        await cluster.settle(20)
        return await cluster.get("pod/loose")

    assert "finalizers" not in played(scenario)["metadata"]


def test_a_job_completes_while_it_is_being_deleted() -> None:
    """A Job that something holds after its deletion is Complete when its pods have succeeded; only new pods it does not make."""

    async def scenario(cluster: SimCluster) -> Tree:
        tree = job()
        await cluster.client.create(JOBS, {**tree, "metadata": {**tree["metadata"], "finalizers": ["example.com/held"]}})
        await cluster.settle(20)
        (pod,) = await cluster.list("pod")
        await say(cluster, pod, "Succeeded")
        await cluster.settle(0.1)
        await cluster.client.delete(JOBS, "j", namespace="default", propagation="Background")
        await cluster.settle(20)
        return await cluster.get("job/j")

    end = played(scenario)
    assert condition(end, "Complete") is not None
    assert (end["status"]["succeeded"], end["status"].get("active", 0)) == (1, 0)


def test_a_suspended_job_without_completions_completes_without_a_start() -> None:
    """There is nothing to run, suspended or not: the Job is Complete at once, and has never started."""

    async def scenario(cluster: SimCluster) -> Tree:
        await cluster.client.create(JOBS, job(completions=0, suspend=True))
        await cluster.settle(60)
        return await status_of(cluster)

    status = played(scenario)
    assert [each["type"] for each in status["conditions"]] == ["SuccessCriteriaMet", "Complete"]
    assert "startTime" not in status
    assert status["completionTime"]


async def changed_while_suspended(cluster: SimCluster, spec: Tree) -> list[Tree]:
    """Suspend a Job, change it and resume it; return its status before it is resumed, and at the end."""
    await cluster.client.patch(JOBS, "j", {"spec": {"suspend": True}}, namespace="default")
    await cluster.settle(20)
    await cluster.client.patch(JOBS, "j", {"spec": spec}, namespace="default")
    await cluster.settle(200)
    waiting = await status_of(cluster)
    await cluster.client.patch(JOBS, "j", {"spec": {"suspend": False}}, namespace="default")
    await cluster.settle(60)
    return [waiting, await status_of(cluster)]


def test_a_job_that_ends_while_it_is_suspended_waits_for_its_start() -> None:
    """A suspended Job that meets its end by a changed spec has the interim condition alone, for an end needs a start: it follows once the Job is resumed."""

    async def scenario(cluster: SimCluster) -> list[Tree]:
        await cluster.client.create(JOBS, job(completionMode="Indexed", completions=2, parallelism=2))
        await cluster.settle(20)
        await say(cluster, (await cluster.list("pod"))[0], "Succeeded", **ended(0))
        await cluster.settle(20)
        return await changed_while_suspended(cluster, {"completions": 1, "parallelism": 1})

    waiting, end = played(scenario)
    assert [each["type"] for each in waiting["conditions"]] == ["Suspended", "SuccessCriteriaMet"]
    assert "startTime" not in waiting
    assert [each["type"] for each in end["conditions"]] == ["Suspended", "SuccessCriteriaMet", "Complete"]
    assert end["startTime"]


def test_a_job_that_fails_while_it_is_suspended_waits_for_its_start() -> None:
    """A limit that is lowered below what has failed ends a suspended Job, but not before it is resumed."""

    async def scenario(cluster: SimCluster) -> list[Tree]:
        await cluster.client.create(JOBS, job(completions=2, parallelism=2))
        await cluster.settle(20)
        await say(cluster, (await cluster.list("pod"))[0], "Failed", **ended(1))
        await cluster.settle(5)
        return await changed_while_suspended(cluster, {"backoffLimit": 0})

    waiting, end = played(scenario)
    assert [each["type"] for each in waiting["conditions"]] == ["Suspended", "FailureTarget"]
    assert [each["type"] for each in end["conditions"]] == ["Suspended", "FailureTarget", "Failed"]
    assert (end["failed"], bool(end["startTime"])) == (1, True)


def test_a_suspended_condition_of_somebody_else_is_put_right() -> None:
    """A Suspended condition with another reason or message is written anew, with a new time and event, though its status was right."""

    async def scenario(cluster: SimCluster) -> tuple[Tree, list[str]]:
        await cluster.client.create(JOBS, job(suspend=True))
        await cluster.settle(5)
        other = {"type": "Suspended", "status": "True", "reason": "Other", "message": "x"}
        await cluster.client.patch(JOBS, "j", {"status": {"conditions": [other]}}, namespace="default", subresource="status")
        await cluster.settle(5)
        events = await cluster.client.list(EVENTS)
        return await status_of(cluster), [f"{each['reason']} {each.get('count')}" for each in events if each["involvedObject"]["kind"] == "Job"]

    status, events = played(scenario)
    assert [(each["reason"], each["message"]) for each in status["conditions"]] == [("JobSuspended", "Job suspended")]
    assert events == ["Suspended 2"]


def test_a_failing_job_does_not_count_what_its_policy_ignores() -> None:
    """The pods that run when a Job fails count as failed, but for those that a rule ignores for what they say at that moment."""
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [3]}},
    ]

    async def scenario(cluster: SimCluster) -> Tree:
        await cluster.client.create(JOBS, job(podFailurePolicy={"rules": rules}, completions=3, parallelism=3))
        await cluster.settle(20)
        first, second, _ = await cluster.list("pod")
        disrupted = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
        await say(cluster, second, "Running", conditions=[*second["status"]["conditions"], disrupted])
        await say(cluster, first, "Failed", **ended(3))
        await cluster.settle(60)
        return await cluster.get("job/j")

    end = played(scenario)
    failed = condition(end, "Failed")
    assert failed is not None
    assert (failed["reason"], end["status"]["failed"]) == ("PodFailurePolicy", 2)


def test_a_failed_pod_out_of_range_is_let_go() -> None:
    """A failed pod that is kept for its replacement is kept no longer once its index is scaled away, and is not counted."""

    async def scenario(cluster: SimCluster) -> tuple[Tree, Tree]:
        await cluster.client.create(JOBS, job(completionMode="Indexed", completions=3, parallelism=3, backoffLimitPerIndex=2))
        await cluster.settle(20)
        (last,) = (pod for pod in await cluster.list("pod") if pod["metadata"]["annotations"][INDEX] == "2")
        await say(cluster, last, "Failed", **ended(1))
        await cluster.settle(2)
        kept = await cluster.get(f"pod/{last['metadata']['name']}")
        assert kept["metadata"]["finalizers"] == [TRACKING]
        await cluster.client.patch(JOBS, "j", {"spec": {"completions": 2, "parallelism": 2}}, namespace="default")
        await cluster.settle(60)
        return await status_of(cluster), await cluster.get(f"pod/{last['metadata']['name']}")

    status, pod = played(scenario)
    assert (status["active"], status.get("failed", 0), status["failedIndexes"], pod["metadata"].get("finalizers")) == (2, 0, "", None)


def test_creations_start_slowly() -> None:
    """One pod is tried, then twice as many each time, all of a batch: behind a refused one no batch follows, but the rest of its own is made."""
    spec = {
        "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]},
        "validations": [{"expression": f"object.metadata.labels['{INDEX}'] != '1'", "message": "not this one"}],
    }

    async def scenario(cluster: SimCluster) -> tuple[list[str], Tree, list[Tree]]:
        await cluster.client.create(VALIDATING_ADMISSION_POLICIES, {"metadata": {"name": "p"}, "spec": spec})
        await cluster.client.create(BINDINGS, {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}})
        await cluster.settle(2)
        await cluster.client.create(JOBS, job(completionMode="Indexed", completions=6, parallelism=6))
        await cluster.settle(300)
        indexes = [pod["metadata"]["annotations"][INDEX] for pod in await cluster.list("pod")]
        refusals = [each for each in await cluster.client.list(EVENTS) if each["reason"] == "FailedCreate"]
        return sorted(indexes), await status_of(cluster), refusals

    indexes, status, refusals = played(scenario)
    assert (indexes, status["active"]) == (["0", "2"], 2)
    named = refusals[0]["message"].removeprefix('Error creating: pods "j-1-').split('"')[0]
    assert len(named) == 5, "what is refused after it was named is spoken of by its name"


def test_pods_of_another_apis_job_keep_the_finalizer() -> None:
    """A pod that a Job of another API controls is none of ours, whatever finalizers it carries."""

    async def scenario(cluster: SimCluster) -> Tree:
        owner = {"apiVersion": "example.com/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
        meta = {"name": "theirs", "namespace": "default", "finalizers": [TRACKING], "ownerReferences": [owner]}
        await cluster.client.create(PODS, {"metadata": meta, "spec": job()["spec"]["template"]["spec"]})
        await cluster.settle(20)
        await cluster.restart("kube-controller-manager")
        await cluster.settle(20)
        return await cluster.get("pod/theirs")

    without = CONTROLLERS.replace("garbage-collector,", "")
    assert simulate(scenario, fleet="cpu:1", controllers=without)["metadata"]["finalizers"] == [TRACKING]


def test_a_failed_pod_whose_index_has_succeeded_waits_for_no_replacement() -> None:
    """With a limit per index a failed pod is kept to hand its count on to the next of its index: once that one has succeeded, it is counted, though others run on."""

    async def scenario(cluster: SimCluster) -> tuple[Tree, Tree]:
        await cluster.client.create(JOBS, job(completionMode="Indexed", completions=2, parallelism=2, backoffLimitPerIndex=1))
        await cluster.settle(20)
        (first,) = [pod for pod in await cluster.list("pod") if pod["metadata"]["labels"][INDEX] == "0"]
        await say(cluster, first, "Failed")
        meta = {name: first["metadata"][name] for name in ("labels", "annotations", "ownerReferences", "finalizers", "namespace")}
        next_ = await cluster.client.create(PODS, {"metadata": {**meta, "name": "next"}, "spec": first["spec"], "status": {}})
        await say(cluster, next_, "Succeeded")
        await cluster.settle(5)
        return await status_of(cluster), await cluster.get(f"pod/{first['metadata']['name']}")

    status, first = played(scenario)
    assert (status["completedIndexes"], status["active"], status.get("failed", 0), status["failedIndexes"]) == ("0", 1, 1, "")
    assert "finalizers" not in first["metadata"]
