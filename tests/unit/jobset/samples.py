"""Short ways to write JobSets, child Jobs and pods in tests."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset.children import Child
from kubemini.controllers.jobset.view import JobSetView

UID = "uid-of-js"
NOW = "2026-01-01T00:10:00Z"


def role(
    name: str = "w", replicas: int = 1, *, annotations: Tree | None = None, pod: Tree | None = None, meta: Tree | None = None, **job: Any
) -> Tree:
    """Return a replicated job; further arguments go into its Job spec, `dependsOn` and `groupName` into itself."""
    own: Tree = {key: job.pop(key) for key in ("dependsOn", "groupName") if key in job}
    pod_spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "pause"}], **(pod or {})}
    spec = {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 0,
        "completionMode": "Indexed",
        **job,
        "template": {"metadata": meta or {}, "spec": pod_spec},
    }
    return {
        "name": name,
        "groupName": "default",
        "replicas": replicas,
        **own,
        "template": {"metadata": {"annotations": annotations or {}}, "spec": spec},
    }


def jobset(*roles: Tree, status: Tree | None = None, annotations: Tree | None = None, name: str = "js", **spec: Any) -> Tree:
    """Return a JobSet as it is stored; further arguments go into its spec."""
    meta: Tree = {"name": name, "namespace": "default", "uid": UID, "resourceVersion": "7", "generation": 1}
    if annotations:
        meta["annotations"] = annotations
    network = {"enableDNSHostnames": True, "publishNotReadyAddresses": True}
    body = {"replicatedJobs": list(roles or (role(),)), "network": network, "successPolicy": {"operator": "All"}, **spec}
    tree: Tree = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": meta, "spec": body}
    return {**tree, "status": status} if status is not None else tree


def view(*roles: Tree, **more: Any) -> JobSetView:
    """Return the view of a JobSet."""
    return JobSetView(jobset(*roles, **more))


def job(
    name: str = "js-w-0",
    *,
    role: str = "w",
    index: int = 0,
    attempt: int | str = 0,
    end: str = "",
    reason: str = "BackoffLimitExceeded",
    message: str = "Job has reached the specified backoff limit",
    at: str = NOW,
    labels: Tree | None = None,
    suspend: bool = False,
    spec: Tree | None = None,
    **status: Any,
) -> Tree:
    """Return a child Job; `end` is Complete or Failed, further arguments go into its status."""
    own = {names.REPLICATED_JOB: role, names.JOB_INDEX: str(index), names.RESTART_ATTEMPT: str(attempt), **(labels or {})}
    if end:
        status["conditions"] = [{"type": end, "status": "True", "reason": reason, "message": message, "lastTransitionTime": at}]
    meta = {"name": name, "namespace": "default", "uid": f"uid-of-{name}", "resourceVersion": "5", "generation": 1}
    return {
        "metadata": {**meta, "labels": {key: value for key, value in own.items() if value is not None}},
        "spec": {"parallelism": 1, "completions": 1, "suspend": suspend, "template": {"metadata": {}, "spec": {}}, **(spec or {})},
        "status": status,
    }


def child(name: str = "js-w-0", **more: Any) -> Child:
    """Return a child Job as a pass sees it."""
    return Child(job(name, **more))
