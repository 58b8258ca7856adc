"""What Jobs promise, commit by commit and at rest. The numbers are those of the list in the documentation of invariants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubemini.api.resources import JOBS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.job import indexes
from kubemini.controllers.job.pods import FINALIZER, INDEX
from kubemini.runtime.env import from_stamp
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View

TERMINAL = ("Succeeded", "Failed")
INDEX_ENV = "JOB_COMPLETION_INDEX"


def job_invariants() -> list[Invariant]:
    """Return all invariants of Jobs, fresh: they keep state."""
    return [Conditions(), Verdicts(), Counters(), Indexes(), Creations(), Finality(), Settled()]


def condition(job: Tree, type_: str) -> Tree | None:
    """Return a condition that is True, or None."""
    for each in (job.get("status") or {}).get("conditions") or ():
        if each["type"] == type_ and each["status"] == "True":
            found: Tree = each
            return found
    return None


def finished(job: Tree) -> bool:
    """Tell whether a Job is Complete or Failed."""
    return condition(job, "Complete") is not None or condition(job, "Failed") is not None


def job_of(pod: Tree, view: View) -> Tree | None:
    """Return the live Job that controls a pod."""
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] == "Job":
            job = view.get(JOBS, pod["metadata"]["namespace"], reference["name"])
            return job if job is not None and job["metadata"]["uid"] == reference["uid"] else None
    return None


def _selected(job: Tree, pod: Tree) -> bool:
    """Tell whether a Job's selector matches a pod."""
    wanted = (job["spec"].get("selector") or {}).get("matchLabels") or {}
    labels = pod["metadata"].get("labels") or {}
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())


class _OfJobs:
    """An invariant over Jobs alone."""

    name = ""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at a Job's new state beside its old one."""
        if table != "jobs.batch" or change.new is None:
            return ()
        return self.check(change.new.obj, change.old.obj if change.old is not None else None)

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()

    def check(self, new: Tree, old: Tree | None) -> Iterator[str]:
        """Yield violations."""
        raise NotImplementedError


class Conditions(_OfJobs):
    """2, 3: Complete and Failed exclude each other, and follow their interim conditions with the same reason."""

    name = "job conditions"

    def check(self, new: Tree, old: Tree | None) -> Iterator[str]:
        """Yield violations."""
        complete, failed = condition(new, "Complete"), condition(new, "Failed")
        target, criteria = condition(new, "FailureTarget"), condition(new, "SuccessCriteriaMet")
        if complete is not None and failed is not None:
            yield "Complete and Failed at once"
        if target is not None and criteria is not None:
            yield "FailureTarget and SuccessCriteriaMet at once"
        if failed is not None and (target is None or target.get("reason") != failed.get("reason")):
            yield f"Failed {failed.get('reason')} without FailureTarget of that reason"
        if complete is not None and criteria is None:
            yield "Complete without SuccessCriteriaMet"
        for type_ in ("Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"):
            if old is not None and condition(old, type_) is not None and condition(new, type_) is None:
                yield f"{type_} was taken back"


class Verdicts(_OfJobs):
    """12, 21: the reason of an end is true when it is given."""

    name = "job verdicts"

    def check(self, new: Tree, old: Tree | None) -> Iterator[str]:
        """Look at an interim condition that is new."""
        target, criteria = condition(new, "FailureTarget"), condition(new, "SuccessCriteriaMet")
        before = old or {}
        if target is not None and condition(before, "FailureTarget") is None:
            yield from self._failed(new, target)
        if criteria is not None and condition(before, "SuccessCriteriaMet") is None:
            yield from self._succeeded(new, criteria.get("reason", ""))

    @staticmethod
    def _failed(job: Tree, target: Tree) -> Iterator[str]:
        spec, status, reason = job["spec"], job.get("status") or {}, target.get("reason")
        failed, completed = indexes.parse(status.get("failedIndexes")), indexes.parse(status.get("completedIndexes"))
        if reason == "DeadlineExceeded":
            active = from_stamp(target["lastTransitionTime"]) - from_stamp(status["startTime"])
            if active < spec.get("activeDeadlineSeconds", 0) or spec.get("suspend"):
                yield f"DeadlineExceeded after {active:g} of {spec.get('activeDeadlineSeconds')} s"
        if reason == "MaxFailedIndexesExceeded" and len(failed) <= spec.get("maxFailedIndexes", 0):
            yield f"MaxFailedIndexesExceeded with {len(failed)} failed indexes of {spec.get('maxFailedIndexes')}"
        if reason == "FailedIndexes" and len({*failed, *completed}) < spec.get("completions", 0):
            yield f"FailedIndexes with {status.get('failedIndexes')!r} failed and {status.get('completedIndexes')!r} completed of {spec.get('completions')}"

    @staticmethod
    def _succeeded(job: Tree, reason: str) -> Iterator[str]:
        spec, status = job["spec"], job.get("status") or {}
        if reason == "SuccessPolicy" and not succeeds_by_policy(job):
            yield f"SuccessPolicy with {status.get('completedIndexes')!r} completed"
        if reason == "CompletionsReached":
            counted = status.get("succeeded", 0) + len((status.get("uncountedTerminatedPods") or {}).get("succeeded") or ())
            if spec.get("completionMode") == "Indexed":
                counted = sum(1 for index in indexes.parse(status.get("completedIndexes")) if index < spec["completions"])
            if counted < spec.get("completions", 1):
                yield f"CompletionsReached with {counted} of {spec.get('completions', 1)}"


def succeeds_by_policy(job: Tree) -> bool:
    """Tell whether a rule of the success policy is satisfied by the completed indexes of the status."""
    completed = set(indexes.parse((job.get("status") or {}).get("completedIndexes")))
    for rule in (job["spec"].get("successPolicy") or {}).get("rules") or () if completed else ():
        wanted = set(indexes.parse(rule["succeededIndexes"])) if "succeededIndexes" in rule else completed
        if wanted and len(completed & wanted) >= rule.get("succeededCount", len(wanted)):
            return True
    return False


class Counters(_OfJobs):
    """1, 4, 5, 6: counters do not run backwards, no pod is in both uncounted lists, a finished Job counts nothing any more."""

    name = "job counters"

    def check(self, new: Tree, old: Tree | None) -> Iterator[str]:
        """Yield violations."""
        status = new.get("status") or {}
        before = (old or {}).get("status") or {}
        if status.get("failed", 0) < before.get("failed", 0):
            yield f"failed went from {before['failed']} to {status.get('failed', 0)}"
        indexed = new["spec"].get("completionMode") == "Indexed"
        if status.get("succeeded", 0) < before.get("succeeded", 0) and not indexed:
            yield f"succeeded went from {before['succeeded']} to {status.get('succeeded', 0)}"
        if status.get("ready", 0) > status.get("active", 0):
            yield f"{status.get('ready')} ready of {status.get('active', 0)} active pods"
        same = old is not None and old["metadata"].get("generation") == new["metadata"].get("generation")
        moved = any(status.get(key) != before.get(key) for key in ("active", "ready", "terminating", "succeeded", "failed"))
        if same and moved and "deletionTimestamp" not in new["metadata"]:
            # A pass removes what is too much before it writes the status
            limit = 0 if new["spec"].get("suspend") else new["spec"].get("parallelism", 1)
            if status.get("active", 0) > limit:
                yield f"{status['active']} active pods of {limit}"
        lists = status.get("uncountedTerminatedPods") or {}
        both = set(lists.get("succeeded") or ()) & set(lists.get("failed") or ())
        if both:
            yield f"pods in both uncounted lists: {sorted(both)}"
        if finished(new):
            for counter in ("active", "ready", "terminating"):
                if status.get(counter, 0):
                    yield f"finished with {status[counter]} {counter}"
            if lists.get("succeeded") or lists.get("failed"):
                yield "finished with uncounted pods"
            if not status.get("startTime") and not (new["spec"].get("suspend") and new["spec"].get("completions") == 0):
                yield "finished without startTime"
        if (condition(new, "Complete") is not None) != bool(status.get("completionTime")):
            yield "completionTime without Complete, or the other way round"
        if status.get("completionTime") and status["completionTime"] < (status.get("startTime") or ""):
            yield f"completed at {status['completionTime']}, started at {status['startTime']}"


class Indexes(_OfJobs):
    """1, 8, 9, 19: index lists are canonical and disjoint, succeeded counts the completed indexes, and none of them is lost but by a scale-down that leaves it out."""

    name = "job indexes"

    def check(self, new: Tree, old: Tree | None) -> Iterator[str]:
        """Yield violations."""
        if new["spec"].get("completionMode") != "Indexed":
            return
        status = new.get("status") or {}
        completed = indexes.parse(status.get("completedIndexes"))
        failed = indexes.parse(status.get("failedIndexes"))
        if indexes.text(completed) != status.get("completedIndexes", ""):
            yield f"completedIndexes {status.get('completedIndexes')!r} is not canonical"
        if indexes.text(failed) != (status.get("failedIndexes") or ""):
            yield f"failedIndexes {status.get('failedIndexes')!r} is not canonical"
        before = (old or {}).get("status") or {}
        if completed != (had := indexes.parse(before.get("completedIndexes"))):
            lost = [index for index in sorted(set(had) - set(completed)) if index < new["spec"].get("completions", 0)]
            if lost:
                yield f"indexes {lost} are no longer completed"
        if set(completed) & set(failed):
            yield f"indexes both completed and failed: {sorted(set(completed) & set(failed))}"
        if status.get("succeeded", 0) != len(completed):
            yield f"succeeded {status.get('succeeded', 0)}, but completedIndexes {status.get('completedIndexes', '')!r}"


class Creations:
    """10, 16, 20: no pod for a Job that ends, is over its back-off limit or somebody else's, or for an index that is done; the selector finds it; identity of indexed pods."""

    name = "job creations"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new pods."""
        if table != "pods" or change.old is not None or change.new is None:
            return
        pod = change.new.obj
        job = job_of(pod, view)
        if job is None:
            return
        if job["spec"].get("managedBy") not in (None, "kubernetes.io/job-controller"):
            yield f"pod {pod['metadata']['name']} was created for a Job that {job['spec']['managedBy']} manages"
        if finished(job):
            yield f"pod {pod['metadata']['name']} was created for a finished Job"
        elif condition(job, "FailureTarget") is not None or condition(job, "SuccessCriteriaMet") is not None:
            yield f"pod {pod['metadata']['name']} was created for a Job that ends"
        elif succeeds_by_policy(job):
            yield f"pod {pod['metadata']['name']} was created although the success policy is satisfied"
        failed = (job.get("status") or {}).get("failed", 0)
        if failed > job["spec"].get("backoffLimit", 6):
            yield f"pod {pod['metadata']['name']} was created after {failed} failures, limit {job['spec'].get('backoffLimit', 6)}"
        if not _selected(job, pod):
            yield f"pod {pod['metadata']['name']} is not what the Job selects"
        index = (pod["metadata"].get("annotations") or {}).get(INDEX)
        if (index is not None) != (job["spec"].get("completionMode") == "Indexed"):
            yield f"pod {pod['metadata']['name']} has the index {index}"
        if index is not None:
            if not all(any(each["name"] == INDEX_ENV for each in container.get("env") or ()) for container in pod["spec"]["containers"]):
                yield f"pod {pod['metadata']['name']}: a container does not know its index"
            if (pod["metadata"].get("labels") or {}).get(INDEX) != index:
                yield f"pod {pod['metadata']['name']}: index label and annotation differ"
            if pod["spec"].get("hostname") != f"{job['metadata']['name']}-{index}":
                yield f"pod {pod['metadata']['name']}: hostname {pod['spec'].get('hostname')} of index {index}"
            status = job.get("status") or {}
            if int(index) in indexes.parse(status.get("failedIndexes")):
                yield f"pod for failed index {index}"
            if int(index) in indexes.parse(status.get("completedIndexes")):
                yield f"pod for completed index {index}"
        if FINALIZER not in (pod["metadata"].get("finalizers") or ()):
            yield f"pod {pod['metadata']['name']} was created without the tracking finalizer"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Finality(_OfJobs):
    """17: a finished Job's conditions and counters do not change any more."""

    name = "job finality"

    def check(self, new: Tree, old: Tree | None) -> Iterator[str]:
        """Yield violations."""
        if old is None or not finished(old):
            return
        for key in ("conditions", "succeeded", "failed", "completedIndexes", "failedIndexes", "startTime", "completionTime"):
            if (old.get("status") or {}).get(key) != (new.get("status") or {}).get(key):
                yield f"status.{key} changed after the end"


class Settled:
    """4, 7, 8, 14, 16, 21, 23: what holds once nothing moves."""

    name = "settled jobs"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing in between."""
        return ()

    def at_rest(self, view: View) -> Iterator[str]:
        """Look at every Job and its pods."""
        jobs = {job["metadata"]["uid"]: job for job in view.list(JOBS)}
        pods: dict[str, list[Tree]] = {}
        for pod in view.list(PODS):
            for reference in pod["metadata"].get("ownerReferences") or ():
                if reference.get("controller") and reference["kind"] == "Job":
                    if reference["uid"] not in jobs:
                        yield f"pod {pod['metadata']['name']} outlived its Job"
                    pods.setdefault(reference["uid"], []).append(pod)
        for uid, job in jobs.items():
            if job["spec"].get("managedBy") in (None, "kubernetes.io/job-controller"):
                yield from self._job(job, pods.get(uid, []))

    def _job(self, job: Tree, pods: list[Tree]) -> Iterator[str]:
        name, spec, status = job["metadata"]["name"], job["spec"], job.get("status") or {}
        active = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in TERMINAL and "deletionTimestamp" not in pod["metadata"]]
        if status.get("active", 0) != len(active):
            yield f"{name}: status says {status.get('active', 0)} active, there are {len(active)}"
        if len(active) > spec.get("parallelism", 1):
            yield f"{name}: {len(active)} active pods, parallelism {spec.get('parallelism', 1)}"
        for pod in pods:
            if not _selected(job, pod):
                yield f"{name}: pod {pod['metadata']['name']} is not what it selects"
            ended = (pod.get("status") or {}).get("phase") in TERMINAL
            if ended and FINALIZER in (pod["metadata"].get("finalizers") or ()) and spec.get("backoffLimitPerIndex") is None:
                yield f"{name}: pod {pod['metadata']['name']} has ended and is not counted"
            if "deletionTimestamp" in pod["metadata"] and FINALIZER in (pod["metadata"].get("finalizers") or ()):
                yield f"{name}: pod {pod['metadata']['name']} cannot go"
        if spec.get("completionMode") == "Indexed":
            taken = [(pod["metadata"].get("annotations") or {}).get(INDEX) for pod in active]
            beyond = [index for index in taken if index is None or int(index) >= spec.get("completions", 0)]
            if beyond:
                yield f"{name}: active pods have the indexes {beyond} of {spec.get('completions')}"
            if len(taken) != len(set(taken)):
                yield f"{name}: an index has two active pods: {sorted(str(each) for each in taken)}"
            out = [index for index in indexes.parse(status.get("completedIndexes")) if index >= spec.get("completions", 0)]
            if out and not finished(job):
                yield f"{name}: completed indexes {out} of {spec.get('completions')}"
        if not finished(job) and not spec.get("suspend"):
            if status.get("failed", 0) > spec.get("backoffLimit", 6):
                yield f"{name}: {status['failed']} failures, back-off limit {spec.get('backoffLimit', 6)}, and not failed"
            if succeeds_by_policy(job):
                yield f"{name}: the success policy is satisfied"
        if spec.get("suspend") and not finished(job):
            suspended = any(each["type"] == "Suspended" and each["status"] == "True" for each in status.get("conditions") or ())
            if active or not suspended or status.get("startTime"):
                yield f"{name}: suspended, but {len(active)} active, Suspended={suspended}, startTime {status.get('startTime')}"
        if (
            not finished(job)
            and not spec.get("suspend")
            and not active
            and spec.get("parallelism", 1) > 0
            and "deletionTimestamp" not in job["metadata"]
        ):
            yield f"{name}: neither finished nor anything active"
