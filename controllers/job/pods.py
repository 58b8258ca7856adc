"""A Job's pods: how they are named and made, and what they say about themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.job.view import as_owner
from kubemini.controllers.pod_templates import pod_spec
from kubemini.controllers.replica_set.pods import most_restarts
from kubemini.machinery.gotext import is_decimal
from kubemini.machinery.memo import by_identity
from kubemini.runtime.env import from_stamp

FINALIZER = "batch.kubernetes.io/job-tracking"
INDEX = "batch.kubernetes.io/job-completion-index"
FAILURE_COUNT = "batch.kubernetes.io/job-index-failure-count"
IGNORED_COUNT = "batch.kubernetes.io/job-index-ignored-failure-count"
INDEX_ENV = "JOB_COMPLETION_INDEX"
MAX_COUNTER = 2**31 - 1
"""Counting annotations above are not believed."""
NAME_LIMIT = 63
SUFFIX = 5


@dataclass(frozen=True, slots=True)
class PodFactory:
    """Makes the pods of one Job from one template; everything but the index is shared between them."""

    job_name: str
    namespace: str
    labels: Tree
    annotations: Tree
    finalizers: list[str]
    owners: list[Tree]
    spec: Tree
    indexed: bool

    @classmethod
    def of(cls, job: Tree, group: str | None = None) -> PodFactory:
        """Prepare the parts that all pods share. `group` is the PodGroup that they are scheduled with.

        Upstream (1.36) has them name the PodGroup as an owner too, in a template whose owners are dropped when a pod is made of it: they never do.
        """
        meta, spec = job["metadata"], job["spec"]
        template = spec["template"]
        about = template.get("metadata") or {}
        finalizers: list[str] = list(about.get("finalizers") or ())
        if FINALIZER not in finalizers:
            finalizers.append(FINALIZER)
        indexed = spec.get("completionMode") == "Indexed"
        made = pod_spec(template["spec"])
        if group is not None:
            made = {**made, "schedulingGroup": {"podGroupName": group}}
        return cls(
            meta["name"],
            meta["namespace"],
            about.get("labels") or {},
            about.get("annotations") or {},
            finalizers,
            [as_owner(job)],
            _with_index_env(made) if indexed else made,
            indexed,
        )

    def make(self, index: int | None = None, *, failures: int | None = None, ignored: int = 0) -> Tree:
        """Return a new pod; `index` for Indexed Jobs, `failures` and `ignored` for those with a limit per index."""
        labels, annotations, spec = self.labels, self.annotations, self.spec
        prefix = f"{self.job_name}-"
        if index is not None:
            number = str(index)
            labels = {**labels, INDEX: number}
            annotations = {**annotations, INDEX: number}
            if failures is not None:
                annotations[FAILURE_COUNT] = str(failures)
                if ignored:
                    annotations[IGNORED_COUNT] = str(ignored)
            spec = {**spec, "hostname": f"{self.job_name}-{number}"}
            tail = f"-{number}-"
            prefix = self.job_name[: NAME_LIMIT - SUFFIX - len(tail)] + tail
        meta: Tree = {
            "generateName": prefix,
            "namespace": self.namespace,
            "labels": labels,
            "finalizers": self.finalizers,
            "ownerReferences": self.owners,
        }
        if annotations:
            meta["annotations"] = annotations
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


@by_identity()
def _with_index_env(spec: Tree) -> Tree:
    """Return a pod spec whose containers know their index; the same one for the same spec, so that Jobs that share a template share containers."""
    entry = {"name": INDEX_ENV, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{INDEX}']"}}}

    def added(container: Tree) -> Tree:
        env = container.get("env") or []
        if any(each["name"] == INDEX_ENV for each in env):
            return container
        return {**container, "env": [*env, entry]}

    changed = {**spec, "containers": [added(container) for container in spec["containers"]]}
    if spec.get("initContainers"):
        changed["initContainers"] = [added(container) for container in spec["initContainers"]]
    return changed


# ----------------------------------------------------------------------------------------------- reading pods


def phase(pod: Tree) -> str:
    """Return status.phase."""
    found: str = (pod.get("status") or {}).get("phase", "")
    return found


def deleting(pod: Tree) -> bool:
    """Tell whether a pod has a deletionTimestamp."""
    return "deletionTimestamp" in pod["metadata"]


def tracked(pod: Tree) -> bool:
    """Tell whether a pod still carries the tracking finalizer."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def is_ready(pod: Tree) -> bool:
    """Tell whether condition Ready is True."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return bool(condition["status"] == "True")
    return False


def index_of(pod: Tree) -> int | None:
    """Return a pod's completion index, None when it has none that can be read."""
    text = (pod["metadata"].get("annotations") or {}).get(INDEX)
    return int(text) if text is not None and is_decimal(text) else None


def counter(pod: Tree, annotation: str) -> int:
    """Return a counting annotation, 0 when absent, unreadable or too large."""
    text = (pod["metadata"].get("annotations") or {}).get(annotation, "0")
    return int(text) if is_decimal(text) and int(text) <= MAX_COUNTER else 0


def finished_at(pod: Tree) -> float:
    """Return when a pod ended, in Unix seconds: its last container's or sidecar's end, else when it stopped being Ready, else its deletion, else its creation."""
    status, meta = pod.get("status") or {}, pod["metadata"]
    ends = _ends(status.get("containerStatuses") or ())
    sidecars = {each["name"] for each in pod["spec"].get("initContainers") or () if each.get("restartPolicy") == "Always"}
    if sidecars:
        # Where a container has not ended, the ends of all sidecars tell
        last = _ends([each for each in status.get("initContainerStatuses") or () if each["name"] in sidecars])
        ends = None if last is None else [*(ends or ()), *last]
    if ends:
        return max(ends)
    for condition in status.get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "False" and condition.get("lastTransitionTime"):
            return from_stamp(condition["lastTransitionTime"])
    if "deletionTimestamp" in meta:
        return from_stamp(meta["deletionTimestamp"]) - (meta.get("deletionGracePeriodSeconds") or 0)
    return from_stamp(meta["creationTimestamp"])


def _ends(containers: Sequence[Tree]) -> list[float] | None:
    """Return when containers ended, None when one of them has not."""
    ends = [end["finishedAt"] for each in containers if (end := (each.get("state") or {}).get("terminated")) and end.get("finishedAt")]
    return [from_stamp(end) for end in ends] if len(ends) == len(containers) else None


def restarts(pod: Tree) -> int:
    """Return how often the pod's containers were restarted, all together."""
    status = pod.get("status") or {}
    return sum(each.get("restartCount", 0) for group in ("initContainerStatuses", "containerStatuses") for each in status.get(group) or ())


def removal_rank(pod: Tree) -> tuple[int, int, int, float, int, int, float]:
    """Return a sort key: which active pod goes first when there are too many (smallest first)."""
    status = pod.get("status") or {}
    ready_since = 0.0
    ready = 0
    for condition in status.get("conditions") or ():
        if condition["type"] == "Ready" and condition["status"] == "True":
            ready, ready_since = 1, from_stamp(condition["lastTransitionTime"])
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    created = from_stamp(pod["metadata"]["creationTimestamp"])
    ordinary, sidecars = most_restarts(pod)
    return (1 if pod["spec"].get("nodeName") else 0, phases.get(status.get("phase", ""), 0), ready, -ready_since, -ordinary, -sidecars, -created)
