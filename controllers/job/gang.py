"""A Job as a gang: the Workload and the PodGroup of scheduling.k8s.io that are made for it (gates GenericWorkload and WorkloadWithJob).

Mirrors ``pkg/controller/job/job_scheduling_manager.go`` (Kubernetes 1.36). Both objects are found by what they refer to (a Workload by its controllerRef, a PodGroup by its
podGroupTemplateRef), and only what the Job controls is used: a Job for which somebody else made one, or which has several, runs as if the gate were off. Both belong to the
Job and go with it; they stay while it is suspended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubemini.api.resources import POD_GROUPS, SCHEDULING_WORKLOADS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.job.view import JobView, as_owner
from kubemini.controllers.revisions.hashing import fnv1a, safe_encode
from kubemini.machinery.errors import AlreadyExists, NotFound
from kubemini.runtime.controller import Context
from kubemini.runtime.keys import controller_of, key_of, owner_reference

NAME_LIMIT = 253
BY_JOB, BY_WORKLOAD = "job-of-workload", "workload-of-group"


def is_gang(job: JobView) -> bool:
    """Tell whether all pods of a Job must run at once: it is Indexed, has more than one and as many at a time as in all, and names no group itself."""
    return job.indexed and job.parallelism > 1 and job.completions == job.parallelism and job.spec["template"]["spec"].get("schedulingGroup") is None


def is_new(job: JobView, pods: Sequence[Tree]) -> bool:
    """Tell whether a Job has not begun yet: one that did is not made a gang any more."""
    status = job.status
    return not (pods or status.get("startTime") or status.get("succeeded") or status.get("failed") or "Suspended" in job.conditions)


class Gangs:
    """Finds and makes the Workloads and PodGroups of Jobs."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._workloads = ctx.informer(SCHEDULING_WORKLOADS)
        self._groups = ctx.informer(POD_GROUPS)
        self._workloads.add_index(BY_JOB, _job_of, reads=("spec",))
        self._groups.add_index(BY_WORKLOAD, _workload_of, reads=("spec",))
        self._made: dict[str, str] = {}
        """Uids of Jobs, and the Workloads that were made for them and that the cache has not shown yet."""

    def forget(self, uid: str) -> None:
        """Let go of a Job."""
        self._made.pop(uid, None)

    async def group(self, job: JobView, pods: Sequence[Tree]) -> str | None:
        """Return the PodGroup of a Job's pods, made if need be, or None where they are scheduled one by one. Raise the `ApiStatus` of a refusal."""
        if not is_gang(job):
            return None
        workload = await self._workload(job, pods)
        if workload is None:
            return None
        groups = self._groups.by_index(BY_WORKLOAD, key_of(workload)) or (await self._create(POD_GROUPS, group_of(job, workload), _workload_of),)
        group = _only(job, groups)
        return None if group is None else str(group["metadata"]["name"])

    async def _workload(self, job: JobView, pods: Sequence[Tree]) -> Tree | None:
        """Return the Workload that a Job controls, made if it is new, with its one template; None where there is none of that kind."""
        found = self._workloads.by_index(BY_JOB, key_of(job.tree))
        if found:
            self.forget(job.uid)
        elif job.uid in self._made:
            # A cache that lags behind must not cost pods their group
            try:
                found = (await self._ctx.client.get(SCHEDULING_WORKLOADS, self._made[job.uid], job.namespace),)
            except NotFound:
                self.forget(job.uid)
        if not found and is_new(job, pods):
            made = await self._create(SCHEDULING_WORKLOADS, workload_of(job), _job_of, job)
            found, self._made[job.uid] = (made,), made["metadata"]["name"]
        workload = _only(job, found)
        return workload if workload is not None and len(workload["spec"]["podGroupTemplates"]) == 1 else None

    async def _create(self, resource: Resource, obj: Tree, refers: Callable[[Tree], tuple[str, ...]], told: JobView | None = None) -> Tree:
        """Make an object, and say so where it is `told` of; return the one of that name that the cache does not show yet. Raise `AlreadyExists` if that `refers` elsewhere."""
        meta = obj["metadata"]
        try:
            made = await self._ctx.client.create(resource, obj)
        except AlreadyExists:
            made = await self._ctx.client.get(resource, meta["name"], meta["namespace"])
            if refers(made) != refers(obj):
                raise
            return made
        if told is not None:
            self._ctx.recorder.event(told.tree, "Normal", "WorkloadCreated", f"Created Workload {meta['name']} for Job {told.name}")
        return made


# ----------------------------------------------------------------------------------------------- the objects


def workload_of(job: JobView) -> Tree:
    """Return the Workload of a Job: one template, whose gang is all its pods."""
    template = {"name": f"{job.name}-pgt-0", "schedulingPolicy": {"gang": {"minCount": job.parallelism}}}
    return {
        "apiVersion": SCHEDULING_WORKLOADS.api_version,
        "kind": SCHEDULING_WORKLOADS.kind,
        "metadata": {"name": workload_name(job.name, job.uid), "namespace": job.namespace, "ownerReferences": [as_owner(job.tree)]},
        "spec": {"controllerRef": {"apiGroup": "batch", "kind": "Job", "name": job.name}, "podGroupTemplates": [template]},
    }


def group_of(job: JobView, workload: Tree) -> Tree:
    """Return the PodGroup of a Workload's template. It belongs to the Workload too, but does not keep it."""
    (template,) = workload["spec"]["podGroupTemplates"]
    name = workload["metadata"]["name"]
    beside = owner_reference(
        {**workload, "apiVersion": SCHEDULING_WORKLOADS.api_version, "kind": SCHEDULING_WORKLOADS.kind}, block=False, controller=False
    )
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {
            "name": group_name(name, template["name"]),
            "namespace": job.namespace,
            "ownerReferences": [as_owner(job.tree), beside],
        },
        "spec": {
            "podGroupTemplateRef": {"workload": {"workloadName": name, "podGroupTemplateName": template["name"]}},
            "schedulingPolicy": template["schedulingPolicy"],
        },
    }


def workload_name(job: str, uid: str) -> str:
    """Return the name of a Job's Workload; the hash is that of the uid as Go prints it.

    >>> workload_name("my-job", "my-job-uid")
    'my-job-67d7bb7f64'
    """
    tail = safe_encode(str(fnv1a(f"(types.UID){uid}".encode())))
    return f"{job[: NAME_LIMIT - len(tail) - 1]}-{tail}"


def group_name(workload: str, template: str) -> str:
    """Return the name of the PodGroup of a template: both names, as much of them as fits (half each, and what the other leaves), and their hash.

    >>> group_name("my-workload", "my-job-pgt-0")
    'my-workload-my-job-pgt-0-79b64977bd'
    """
    tail = safe_encode(str(fnv1a(f"{workload}{template}".encode())))
    room = NAME_LIMIT - len(tail) - 2
    first = min(len(workload), max(room - len(template), room - room // 2))
    return f"{workload[:first]}-{template[: room - first]}-{tail}"


def _only(job: JobView, found: Sequence[Tree]) -> Tree | None:
    """Return the only one that was found, if the Job controls it."""
    owner = controller_of(found[0]) if len(found) == 1 else None
    return found[0] if owner is not None and owner["uid"] == job.uid else None


def _job_of(workload: Tree) -> tuple[str, ...]:
    """Return the key of the Job that a Workload is for, as index values."""
    reference = workload["spec"].get("controllerRef") or {}
    if (reference.get("apiGroup"), reference.get("kind")) != ("batch", "Job") or not reference.get("name"):
        return ()
    return (f"{workload['metadata']['namespace']}/{reference['name']}",)


def _workload_of(group: Tree) -> tuple[str, ...]:
    """Return the key of the Workload whose template a PodGroup is made from, as index values."""
    name = ((group["spec"].get("podGroupTemplateRef") or {}).get("workload") or {}).get("workloadName")
    return (f"{group['metadata']['namespace']}/{name}",) if name else ()
