"""A CronJob's Jobs: how they are named and made, which go, and what they say about themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubemini.api.trees import Tree
from kubemini.controllers.cron_job.timing import Timetable
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import owner_reference

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
"""Annotation: the time for which a Job was started, in the CronJob's zone."""


def job_name(cron_job: Tree, moment: float) -> str:
    """Return the name of the Job of one scheduled time: the same run is never started twice."""
    return f"{cron_job['metadata']['name']}-{int(moment) // 60}"


def make_job(cron_job: Tree, table: Timetable, moment: float) -> Tree:
    """Return the Job of one scheduled time."""
    meta, template = cron_job["metadata"], cron_job["spec"]["jobTemplate"]
    about = template.get("metadata") or {}
    made: Tree = {"name": job_name(cron_job, moment), "namespace": meta["namespace"]}
    if about.get("labels"):
        made["labels"] = about["labels"]
    made["annotations"] = {**(about.get("annotations") or {}), SCHEDULED: table.stamp(moment)}
    made["ownerReferences"] = [owner_reference({**cron_job, "apiVersion": "batch/v1", "kind": "CronJob"})]
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": made, "spec": template["spec"]}


def reference(job: Tree) -> Tree:
    """Return the entry of a Job in ``status.active``."""
    meta = job["metadata"]
    found = {"kind": "Job", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"], "apiVersion": "batch/v1"}
    return {**found, "resourceVersion": meta["resourceVersion"]}


def finished(job: Tree) -> str:
    """Return ``Complete`` or ``Failed`` of a Job that has ended, else ""."""
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            ended: str = condition["type"]
            return ended
    return ""


def surplus(cron_job: Tree, jobs: Iterable[Tree]) -> list[Tree]:
    """Return the finished Jobs above the history limits, oldest first: successes, then failures."""
    spec = cron_job["spec"]
    ended: dict[str, list[Tree]] = {"Complete": [], "Failed": []}
    for job in jobs:
        if kind := finished(job):
            ended[kind].append(job)
    found: list[Tree] = []
    for kind, limit in (("Complete", spec.get("successfulJobsHistoryLimit")), ("Failed", spec.get("failedJobsHistoryLimit"))):
        if limit is not None and len(ended[kind]) > limit:
            found += _by_start(ended[kind])[: len(ended[kind]) - limit]
    return found


def _by_start(jobs: Sequence[Tree]) -> list[Tree]:
    def order(job: Tree) -> tuple[bool, float, str]:
        start = (job.get("status") or {}).get("startTime")
        return (start is None, from_stamp(start) if start else 0.0, job["metadata"]["name"])

    return sorted(jobs, key=order)
