"""batch/v1 Jobs under Kueue. Mirrors ``pkg/controller/jobs/job``."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import JOBS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.job import indexes
from kubemini.controllers.kueue.integrations.framework import Finish, Permanent, PodSetInfo, merged, with_info
from kubemini.controllers.kueue.topology.requests import topology_request

INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
OWN_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name")
"""Labels that the API server gives a Job's template: no part of the Workload."""
KEPT_LABELS = (*OWN_LABELS, "batch.kubernetes.io/job-name")


def annotation(job: Tree, name: str) -> str:
    """Return an annotation, or ""."""
    found: str = (job["metadata"].get("annotations") or {}).get(name, "")
    return found


def pods_count(spec: Tree) -> int:
    """Return how many pods run at once at most."""
    parallelism: int = spec.get("parallelism", 1)
    completions = spec.get("completions")
    return parallelism if completions is None else min(parallelism, completions)


def condition(obj: Tree, *types: str) -> Tree | None:
    """Return the first True condition of some types."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each["type"] in types and each["status"] == "True":
            found: Tree = each
            return found
    return None


def template_of(template: Tree) -> Tree:
    """Return a Job's pod template as a Workload holds it."""
    meta = template.get("metadata") or {}
    kept: Tree = {}
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key not in OWN_LABELS}
    if labels:
        kept["labels"] = labels
    if meta.get("annotations"):
        kept["annotations"] = meta["annotations"]
    return {"metadata": kept, "spec": template["spec"]}


class JobIntegration:
    """See `Integration`."""

    name = "batch/job"
    resource = JOBS

    def is_suspended(self, job: Tree) -> bool:
        """Suspended, and not being stopped."""
        return bool(job["spec"].get("suspend")) and annotation(job, names.STOPPING) != "true"

    def is_active(self, job: Tree) -> bool:
        """Pods are active."""
        return bool((job.get("status") or {}).get("active"))

    def finished(self, job: Tree) -> Finish | None:
        """Complete or Failed."""
        found = condition(job, "Complete", "Failed")
        return None if found is None else Finish(found["type"] == "Complete", found.get("message", ""))

    def pod_sets(self, job: Tree) -> list[Tree]:
        """One pod set, ``main``."""
        spec = job["spec"]
        pod_set: Tree = {"name": names.DEFAULT_POD_SET, "template": template_of(spec["template"]), "count": pods_count(spec)}
        least = annotation(job, names.JOB_MIN_PARALLELISM)
        if least.isdigit():
            pod_set["minCount"] = int(least)
        request = topology_request(spec["template"], INDEX_LABEL)
        if request:
            pod_set["topologyRequest"] = request
        return [pod_set]

    def pods_ready(self, job: Tree) -> bool:
        """Ready, succeeded and about to be counted as succeeded together are enough."""
        status = job.get("status") or {}
        uncounted = (status.get("uncountedTerminatedPods") or {}).get("succeeded") or ()
        return bool(status.get("succeeded", 0) + status.get("ready", 0) + len(uncounted) >= pods_count(job["spec"]))

    def reclaimable(self, job: Tree) -> list[Tree]:
        """Pods that will not be replaced, once fewer completions are left than pods may run."""
        spec, status = job["spec"], job.get("status") or {}
        parallelism = spec.get("parallelism", 1)
        completions = spec.get("completions")
        completions = parallelism if completions is None else completions
        terminal = status.get("succeeded", 0)
        if spec.get("completionMode") == "Indexed":
            done = {*indexes.parse(status.get("completedIndexes", ""), completions), *indexes.parse(status.get("failedIndexes", ""), completions)}
            terminal = len(done)
        remaining = max(0, completions - terminal)
        if parallelism <= 1 or terminal == 0 or remaining >= parallelism:
            return []
        return [{"name": names.DEFAULT_POD_SET, "count": parallelism - remaining}]

    def suspended(self, job: Tree) -> Tree:
        """Set suspend."""
        return {**job, "spec": {**job["spec"], "suspend": True}}

    def start(self, job: Tree, infos: Sequence[PodSetInfo]) -> Tree:
        """Unsuspend with the info merged into the template, and with the admitted number of pods."""
        if len(infos) != 1:
            raise Permanent(f"invalid podset infos: expecting 1 podset, got {len(infos)}")
        info = infos[0]
        spec = {**job["spec"], "suspend": False, "template": merged(job["spec"]["template"], info)}
        if annotation(job, names.JOB_MIN_PARALLELISM):
            spec["parallelism"] = info.count
            if annotation(job, names.JOB_COMPLETIONS_EQUAL_PARALLELISM) == "true":
                spec["completions"] = info.count
        return {**job, "spec": spec}

    def stop(self, job: Tree, infos: Sequence[PodSetInfo] | None) -> tuple[Tree, str] | None:
        """Suspend and mark as stopping; clear the start time; restore the template and drop the mark."""
        meta, spec = job["metadata"], job["spec"]
        if not spec.get("suspend"):
            annotations = {**(meta.get("annotations") or {}), names.STOPPING: "true"}
            return {**job, "metadata": {**meta, "annotations": annotations}, "spec": {**spec, "suspend": True}}, ""
        if annotation(job, names.STOPPING) != "true":
            return None
        status = job.get("status") or {}
        if status.get("startTime") is not None:
            return {**job, "status": {key: value for key, value in status.items() if key != "startTime"}}, "status"
        annotations = {key: value for key, value in meta["annotations"].items() if key != names.STOPPING}
        new_meta = {key: value for key, value in meta.items() if key != "annotations"}
        if annotations:
            new_meta["annotations"] = annotations
        return {**job, "metadata": new_meta, "spec": self._restored(job, spec, infos)}, ""

    def _restored(self, job: Tree, spec: Tree, infos: Sequence[PodSetInfo] | None) -> Tree:
        if not infos:
            return spec
        info = infos[0]
        template = spec["template"]
        own = {key: value for key, value in ((template.get("metadata") or {}).get("labels") or {}).items() if key in KEPT_LABELS}
        restored = with_info(
            template, PodSetInfo(info.name, info.count, {**info.labels, **own}, info.annotations, info.node_selector, info.tolerations, info.gates)
        )
        new = {**spec, "template": restored}
        if annotation(job, names.JOB_MIN_PARALLELISM):
            new["parallelism"] = info.count
            if annotation(job, names.JOB_COMPLETIONS_EQUAL_PARALLELISM) == "true":
                new["completions"] = info.count
        return new
