"""Elastic JobSets: parallelism and completions that were changed in the JobSet reach the Jobs that run."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.jobset.children import Child
from kubemini.controllers.jobset.view import Role


def patch(job: Child, role: Role) -> Tree | None:
    """Return the merge patch that brings an active Job's size in line with its role, None where it is, or where the role has no one size."""
    parallelism, completions = role.job_spec.get("parallelism"), role.job_spec.get("completions")
    if parallelism != completions:
        return None
    if parallelism is None:
        # the Job API defaults both
        parallelism = completions = 1
    spec = job.tree["spec"]
    if spec.get("parallelism") == parallelism and spec.get("completions") == completions:
        return None
    return {"metadata": {"uid": job.uid}, "spec": {"parallelism": parallelism, "completions": completions}}
