"""Interruptions at every await point: Job, JobSet and CronJob controllers are killed, or something of theirs is deleted, before and after each single request.

Each life is played once undisturbed, which numbers the moments at which its controllers wait; then once for every moment. A controller that was killed comes to the same end
as one that was not; and whatever is deleted at whatever moment, nothing is left behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from kubemini.api.resources import (
    CRON_JOBS,
    JOB_SETS,
    JOBS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    POD_GROUPS,
    PODS,
    SCHEDULING_WORKLOADS,
    SERVICES,
    Resource,
)
from kubemini.api.trees import Tree
from kubemini.inprocess import InProcessClient
from kubemini.machinery.errors import NotFound
from kubemini.runtime.client import Client
from kubemini.server.options import Caller
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import PERFECT, Faults, FaultyClient
from kubemini.sim.loop import run
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.job import job_invariants
from kubemini.testing.invariants.jobset import jobset_invariants

CONTROLLERS = (
    "namespaces",
    "service-accounts",
    "garbage-collector",
    "job",
    "cron-job",
    "nodes",
    "scheduler",
    "volumes",
    "kubelet",
    "jobset",
    "pod-groups",
)
INTERRUPTED = ("job-", "jobset-", "cronjob-", "ttl-after-finished-")
"""The tasks of the controllers that are interrupted, by the beginning of their names."""
SPACE = "work"
KINDS: tuple[Resource, ...] = (CRON_JOBS, JOB_SETS, JOBS, PODS, SERVICES, PERSISTENT_VOLUME_CLAIMS)
GANGS = {"GenericWorkload": True, "GangScheduling": True, "WorkloadWithJob": True}
GROUPS: tuple[Resource, ...] = (SCHEDULING_WORKLOADS, POD_GROUPS)
"""What there is too where gates of gangs are on."""

Act = Callable[["Interrupted", str], bool]
"""Done at a moment in a process; tells whether the process dies of it."""


class Interrupted(SimCluster):
    """A cluster that numbers the moments at which its controllers wait, and does something at one of them."""

    def __init__(self, at: int, act: Act, faults: Faults, gates: Mapping[str, bool]) -> None:
        self.at, self.act = at, act
        self.moments = 0
        self.counting = False
        self.running: list[asyncio.Task[None]] = []
        super().__init__(faults=faults, fleet="cpu:1", controllers=CONTROLLERS, feature_gates=gates)
        self.kinds = (*KINDS, *(GROUPS if gates else ()))

    def controller_client(self, process: str) -> Client:
        """Put a moment before and after every request."""
        return _Momentary(InProcessClient(self.server, Caller(user=f"system:{process}", agent=process)), self, process)

    async def moment(self, process: str) -> None:
        """Let a moment of a process pass."""
        task = asyncio.current_task()
        if not self.counting or task is None or not task.get_name().startswith(INTERRUPTED):
            return
        self.moments += 1
        if self.moments == self.at and self.act(self, process):
            # Nobody answers any more: the task ends here, as the process is killed
            await self.loop.create_future()

    def begin(self, work: Any) -> None:
        """Run something beside."""
        self.running.append(self.loop.create_task(work))


class _Momentary(FaultyClient):
    def __init__(self, inner: Client, cluster: Interrupted, process: str) -> None:
        super().__init__(inner, cluster.faults, cluster.env)
        self._cluster, self._process = cluster, process

    async def _way(self) -> None:
        await super()._way()
        await self._cluster.moment(self._process)


def kill(cluster: Interrupted, process: str) -> bool:
    """Kill the process, and start it anew."""
    cluster.begin(cluster.restart(process))
    return True


def victim(resource: Resource, propagation: str = "Background") -> Act:
    """Delete the first object of a kind, as a user does."""

    async def delete(cluster: Interrupted) -> None:
        namespace = SPACE if resource.namespaced else ""
        for obj in (await cluster.client.list(resource, namespace))[:1] if namespace else [{"metadata": {"name": SPACE}}]:
            with suppress(NotFound):
                await cluster.client.delete(resource, obj["metadata"]["name"], namespace=namespace, propagation=propagation)

    def act(cluster: Interrupted, process: str) -> bool:
        cluster.begin(delete(cluster))
        return False

    return act


# ----------------------------------------------------------------------------------------------- lives


@dataclass(frozen=True)
class Life:
    """An object, and what a user does to it after so many seconds (a merge patch of its spec)."""

    resource: Resource
    spec: Tree
    patches: tuple[tuple[float, Tree], ...] = ()
    gates: Mapping[str, bool] = field(default_factory=dict)

    def tree(self) -> Tree:
        """Return the object."""
        meta = {"name": "x", "namespace": SPACE}
        return {"apiVersion": self.resource.api_version, "kind": self.resource.kind, "metadata": meta, "spec": self.spec}


def template(run_for: int = 5, *, mounts: str = "", **programs: str) -> Tree:
    """Return a pod template."""
    container: Tree = {"name": "m", "image": "i"}
    if mounts:
        container["volumeMounts"] = [{"name": mounts, "mountPath": "/data"}]
    annotations = {"kubemini.dev/run-for": f"{run_for}s", **{f"kubemini.dev/{key.replace('_', '-')}": value for key, value in programs.items()}}
    return {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]},
    }


def job(run_for: int = 5, pods: int = 2, *, programs: Tree | None = None, mounts: str = "", **spec: Any) -> Tree:
    """Return the spec of a Job."""
    return {
        "parallelism": pods,
        "completions": pods,
        "backoffLimit": 0,
        "template": template(run_for, mounts=mounts, **(programs or {})),
        **spec,
    }


def role(name: str, replicas: int = 1, *, job_spec: Tree | None = None, **own: Any) -> Tree:
    """Return a replicated job."""
    return {"name": name, "replicas": replicas, "template": {"spec": job_spec or job()}, **own}


FAILS_ONCE = job(programs={"fail_at": "0"})
FAILS = {"exit_code": "1"}
CLAIMS = [{"templates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}]
RUN: Tree = {"spec": job(2, 1)}
MINUTELY: Tree = {"schedule": "* * * * *", "jobTemplate": RUN, "successfulJobsHistoryLimit": 2}
LIVES = {
    "job": Life(JOBS, job(pods=3)),
    "indexed job": Life(JOBS, job(pods=3, completionMode="Indexed", parallelism=2)),
    "failing job": Life(JOBS, job(programs=FAILS)),
    "retrying job": Life(JOBS, job(pods=1, programs=FAILS, backoffLimit=1)),
    "limit per index": Life(JOBS, job(completionMode="Indexed", backoffLimit=100, backoffLimitPerIndex=1, programs=FAILS)),
    # A limit above zero: pods that go count as failed, and who finds them half gone could not tell what they were deleted for (upstream's order of checks)
    "deadline": Life(JOBS, job(60, activeDeadlineSeconds=10, backoffLimit=6)),
    "suspended job": Life(JOBS, job(20), ((8, {"suspend": True}), (30, {"suspend": False}))),
    "elastic job": Life(JOBS, job(20, 4, completionMode="Indexed"), ((8, {"parallelism": 2, "completions": 2}),)),
    "success policy": Life(
        JOBS, job(completionMode="Indexed", parallelism=1, pods=1, completions=3, successPolicy={"rules": [{"succeededCount": 1}]})
    ),
    "waiting replacements": Life(JOBS, job(pods=1, programs=FAILS, backoffLimit=1, podReplacementPolicy="Failed")),
    "expiring job": Life(JOBS, job(ttlSecondsAfterFinished=5)),
    "gang": Life(JOBS, job(pods=3, completionMode="Indexed"), gates=GANGS),
    "suspended gang": Life(
        JOBS, job(20, completionMode="Indexed", suspend=True), ((4, {"suspend": False}), (8, {"suspend": True}), (30, {"suspend": False})), GANGS
    ),
    "retrying gang": Life(JOBS, job(completionMode="Indexed", programs=FAILS, backoffLimit=2), gates=GANGS),
    "jobset of gangs": Life(JOB_SETS, {"replicatedJobs": [role("a", job_spec=job(completionMode="Indexed"))]}, gates=GANGS),
    "jobset": Life(JOB_SETS, {"replicatedJobs": [role("a"), role("b", 2)]}),
    "restarting jobset": Life(
        JOB_SETS, {"replicatedJobs": [role("a", job_spec=FAILS_ONCE), role("b", job_spec=job(60))], "failurePolicy": {"maxRestarts": 1}}
    ),
    "blocking restart": Life(
        JOB_SETS,
        {
            "replicatedJobs": [role("a", job_spec=FAILS_ONCE), role("b", job_spec=job(15, 1))],
            "failurePolicy": {"maxRestarts": 1, "restartStrategy": "BlockingRecreate"},
        },
    ),
    "failing jobset": Life(JOB_SETS, {"replicatedJobs": [role("a", job_spec=job(programs=FAILS)), role("b", job_spec=job(60, 1))]}),
    "in order": Life(JOB_SETS, {"replicatedJobs": [role("a"), role("b")], "startupPolicy": {"startupPolicyOrder": "InOrder"}}),
    "depending roles": Life(JOB_SETS, {"replicatedJobs": [role("a"), role("b", dependsOn=[{"name": "a", "status": "Complete"}])]}),
    "driver": Life(
        JOB_SETS,
        {
            "replicatedJobs": [role("driver", job_spec=job(5, 1)), role("w", job_spec=job(60))],
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["driver"]},
        },
    ),
    "suspended jobset": Life(JOB_SETS, {"replicatedJobs": [role("a", job_spec=job(20))]}, ((8, {"suspend": True}), (30, {"suspend": False}))),
    "claims": Life(JOB_SETS, {"replicatedJobs": [role("a", job_spec=job(mounts="data"))], "volumeClaimPolicies": CLAIMS}),
    "expiring jobset": Life(JOB_SETS, {"replicatedJobs": [role("a")], "ttlSecondsAfterFinished": 5}),
    "cron job": Life(CRON_JOBS, MINUTELY, ((270, {"suspend": True}),)),
    "cron job that replaces": Life(
        CRON_JOBS, {**MINUTELY, "jobTemplate": {"spec": job(80, 1)}, "concurrencyPolicy": "Replace"}, ((200, {"suspend": True}),)
    ),
    "cron job that waits": Life(
        CRON_JOBS, {**MINUTELY, "jobTemplate": {"spec": job(80, 1)}, "concurrencyPolicy": "Forbid"}, ((200, {"suspend": True}),)
    ),
}


def play(life: Life, at: int = 0, act: Act = kill, faults: Faults = PERFECT, *, delete: bool = False) -> tuple[int, dict[str, Any]]:
    """Play a life and return how many moments it had, and its end. `delete` says that a user deletes the object at last, and that nothing may be left."""

    async def main() -> tuple[int, dict[str, Any]]:
        async with Interrupted(at, act, faults, life.gates) as cluster:
            checker = Checker(cluster.store, [*job_invariants(), *jobset_invariants()])
            await cluster.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
            await cluster.settle(60)
            cluster.counting = True
            began = cluster.loop.time()
            await cluster.client.create(life.resource, life.tree())
            for after, patch in life.patches:
                await cluster.settle(began + after - cluster.loop.time())
                with suppress(NotFound):
                    await cluster.client.patch(life.resource, "x", {"spec": patch}, namespace=SPACE)
            assert await cluster.settle(3000), f"{life.resource.kind}: it never comes to rest"
            checker.at_rest()
            moments = cluster.moments
            if delete:
                with suppress(NotFound):
                    await cluster.client.delete(life.resource, "x", namespace=SPACE, propagation="Background")
                await cluster.settle(600)
                checker.at_rest()
            found = await end(cluster)
            assert not cluster.failures, cluster.failures[0]
            return moments, found

    return run(main(), seed=0)


async def end(cluster: Interrupted) -> dict[str, Any]:
    """Return what there is, without names drawn by chance and times."""
    found: dict[str, Any] = {}
    for resource in cluster.kinds:
        for obj in await cluster.client.list(resource, SPACE):
            meta, status = obj["metadata"], obj.get("status") or {}
            if resource is PODS:
                if cluster.kinds != KINDS:
                    assert obj["spec"]["schedulingGroup"]["podGroupName"].startswith(f"{meta['ownerReferences'][0]['name']}-"), (
                        "a pod without its gang"
                    )
                index = (meta.get("annotations") or {}).get("batch.kubernetes.io/job-completion-index", "")
                name = f"{meta['ownerReferences'][0]['name']}/{index} {status['phase']}"
                found[name] = found.get(name, 0) + 1
                continue
            shown: dict[str, Any] = {key: value for key, value in status.items() if isinstance(value, int | str) and not key.endswith("Time")}
            shown["conditions"] = [(each["type"], each["status"], each.get("reason")) for each in status.get("conditions") or ()]
            shown["roles"] = status.get("replicatedJobsStatus")
            shown["runs"] = len(status.get("active") or ()) if resource is CRON_JOBS else None
            shown["last"] = status.get("lastScheduleTime")
            shown["held by"] = meta.get("finalizers")
            shown["suspended"] = obj["spec"].get("suspend")
            # What is made for a Job has its uid in its name, by a hash
            name = f"{resource.kind} {'of ' + meta['ownerReferences'][0]['name'] if resource in GROUPS else meta['name']}"
            assert name not in found, f"two: {name}"
            found[name] = shown
    return found


@pytest.mark.parametrize("name", LIVES)
def test_a_killed_controller_comes_to_the_same_end(name: str) -> None:
    """Wherever a controller is killed, before a request or between its effect and its answer, the one after it brings everything to the same end."""
    life = LIVES[name]
    moments, wanted = play(life)
    assert moments > 10
    for at in range(1, moments + 1):
        _, found = play(life, at)
        assert found == wanted, f"killed at moment {at} of {moments}"


@pytest.mark.parametrize("name", LIVES)
def test_whatever_is_deleted_leaves_nothing(name: str) -> None:
    """The object itself, its namespace, a Job, a pod or the Service goes at any moment: the rest comes to an end, and once the object has gone nothing is left."""
    life = LIVES[name]
    moments, _ = play(life)
    victims = [victim(life.resource), victim(life.resource, "Foreground"), victim(NAMESPACES), victim(JOBS), victim(PODS), victim(SERVICES)]
    if life.gates:
        victims += map(victim, GROUPS)
    for at in range(1, moments + 1):
        _, left = play(life, at, victims[at % len(victims)], delete=True)
        assert left == {}, f"left by deletion {at % len(victims)} at moment {at} of {moments}"
