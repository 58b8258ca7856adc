"""JobSets under Kueue. Mirrors ``pkg/controller/jobs/jobset``."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import JOB_SETS
from kubemini.api.trees import Tree
from kubemini.controllers.kueue.integrations.framework import Finish, Permanent, PodSetInfo, merged, with_info
from kubemini.controllers.kueue.integrations.job import INDEX_LABEL, condition, pods_count
from kubemini.controllers.kueue.topology.requests import topology_request

JOB_INDEX = "jobset.sigs.k8s.io/job-index"


def _per_replica(replicated: Tree) -> int:
    return pods_count(replicated["template"]["spec"])


class JobSetIntegration:
    """See `Integration`."""

    name = "jobset.x-k8s.io/jobset"
    resource = JOB_SETS

    def is_suspended(self, job: Tree) -> bool:
        """By its spec."""
        return bool(job["spec"].get("suspend"))

    def is_active(self, job: Tree) -> bool:
        """Some child Job has active pods."""
        return any(each.get("active") for each in (job.get("status") or {}).get("replicatedJobsStatus") or ())

    def finished(self, job: Tree) -> Finish | None:
        """Completed or Failed."""
        found = condition(job, "Completed", "Failed")
        return None if found is None else Finish(found["type"] == "Completed", found.get("message", ""))

    def pod_sets(self, job: Tree) -> list[Tree]:
        """One pod set for each replicated Job."""
        found = []
        for replicated in _roles(job["spec"]):
            template = replicated["template"]["spec"]["template"]
            meta = {key: value for key, value in (template.get("metadata") or {}).items() if key in ("labels", "annotations")}
            pod_set: Tree = {
                "name": replicated["name"].lower(),
                "template": {"metadata": meta, "spec": template["spec"]},
                "count": replicated.get("replicas", 1) * _per_replica(replicated),
            }
            request = topology_request(template, INDEX_LABEL, sub_group=JOB_INDEX, sub_groups=replicated.get("replicas", 1))
            if request:
                pod_set["topologyRequest"] = request
            found.append(pod_set)
        return found

    def pods_ready(self, job: Tree) -> bool:
        """All child Jobs are ready or have succeeded."""
        replicas = sum(each.get("replicas", 1) for each in _roles(job["spec"]))
        done = sum(each.get("ready", 0) + each.get("succeeded", 0) for each in (job.get("status") or {}).get("replicatedJobsStatus") or ())
        return bool(replicas == done)

    def reclaimable(self, job: Tree) -> list[Tree]:
        """The pods of child Jobs that have succeeded."""
        states = {each["name"]: each for each in (job.get("status") or {}).get("replicatedJobsStatus") or ()}
        found = []
        for replicated in _roles(job["spec"]):
            succeeded = states.get(replicated["name"], {}).get("succeeded", 0)
            if 0 < succeeded <= replicated.get("replicas", 1):
                found.append({"name": replicated["name"].lower(), "count": succeeded * _per_replica(replicated)})
        return found

    def suspended(self, job: Tree) -> Tree:
        """Set suspend."""
        return {**job, "spec": {**job["spec"], "suspend": True}}

    def start(self, job: Tree, infos: Sequence[PodSetInfo]) -> Tree:
        """Unsuspend with the infos merged into the templates."""
        replicated = _roles(job["spec"])
        if len(infos) != len(replicated):
            raise Permanent(f"invalid podset infos: expecting {len(replicated)} podset, got {len(infos)}")
        new = [_with_template(each, merged(each["template"]["spec"]["template"], info)) for each, info in zip(replicated, infos, strict=True)]
        return {**job, "spec": {**job["spec"], "suspend": False, "replicatedJobs": new}}

    def stop(self, job: Tree, infos: Sequence[PodSetInfo] | None) -> tuple[Tree, str] | None:
        """Suspend and restore in one write."""
        spec = job["spec"]
        if spec.get("suspend"):
            return None
        new = {**spec, "suspend": True}
        if infos is not None and len(infos) == len(_roles(spec)):
            new["replicatedJobs"] = [
                _with_template(each, with_info(each["template"]["spec"]["template"], info)) for each, info in zip(_roles(spec), infos, strict=True)
            ]
        return {**job, "spec": new}, ""


def _roles(spec: Tree) -> list[Tree]:
    """Return the replicated Jobs of a JobSet; it may have none."""
    found: list[Tree] = spec.get("replicatedJobs") or []
    return found


def _with_template(replicated: Tree, template: Tree) -> Tree:
    job = replicated["template"]
    if not template["metadata"] and not (job["spec"]["template"].get("metadata")):
        template = {key: value for key, value in template.items() if key != "metadata" or "metadata" in job["spec"]["template"]}
    return {**replicated, "template": {**job, "spec": {**job["spec"], "template": template}}}
