"""What JobSets promise beside their state: every decision has its cause, and what belongs to a set says so.

JobSets that somebody beside their controller deletes must be excused (`Excuses`) by whoever does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kubemini.api.resources import JOB_SETS, JOBS, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import controller_of
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View, tree_of
from kubemini.testing.invariants.job_exact import Excuses
from kubemini.testing.invariants.jobset import Found, attempt_of, condition, ended, foreign, job_ended, label, owner_of, roles_of

SLACK = 4
"""Seconds after its end by which a set has deleted what still ran."""


def exact_jobset_invariants(excuses: Excuses) -> list[Invariant]:
    """Return the invariants, fresh: they keep state."""
    return [Causes(), Belonging(), Retirement(excuses), Resumed()]


class Causes:
    """A restart, a failure and a completion each have the Jobs that explain them: by the first rule that matches, within the limit, by the success policy."""

    name = "jobset-causes"

    def __init__(self) -> None:
        self._ended: dict[tuple[str, int], dict[str, Tree]] = {}
        """Jobs that ended, by (uid of their set, attempt) and their own uid."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Note Jobs that have ended; look at what a set makes of them."""
        new = tree_of(change.new)
        if new is None:
            return ()
        if table == JOBS.storage and job_ended(new) and (owner := owner_of(new)) is not None:
            self._ended.setdefault((owner["uid"], attempt_of(new)), {})[new["metadata"]["uid"]] = new
        if table == JOB_SETS.storage:
            return list(self._set(new, tree_of(change.old) or {}))
        return ()

    def _of(self, js: Tree, attempt: int, end: str) -> list[Tree]:
        return [job for job in self._ended.get((js["metadata"]["uid"], attempt), {}).values() if condition(job, end) == "True"]

    def _set(self, js: Tree, old: Tree) -> Found:
        name, status, before = js["metadata"]["name"], js.get("status") or {}, old.get("status") or {}
        attempt = before.get("restarts", 0)
        failed = self._of(js, attempt, "Failed")
        policy = js["spec"].get("failurePolicy")
        rules: Sequence[Tree] = (policy or {}).get("rules") or ()
        if status.get("restarts", 0) > attempt:
            if not failed:
                yield f"{name} restarted, and no Job of attempt {attempt} has failed"
            yield from _restart(name, js, before, failed, rules)
        if condition(js, names.FAILED) == "True" and condition(old, names.FAILED) != "True":
            if not failed:
                yield f"{name} failed, and no Job of attempt {attempt} has"
            yield from _failure(name, js, failed, rules)
        if (
            condition(js, names.COMPLETED) == "True"
            and condition(old, names.COMPLETED) != "True"
            and not satisfied(js, self._of(js, attempt, "Complete"))
        ):
            yield f"{name} completed, and its success policy is not satisfied"

    def at_rest(self, view: View) -> Iterable[str]:
        """Look for sets that have not drawn the consequences."""
        found = []
        for js in view.list(JOB_SETS):
            name, attempt = js["metadata"]["name"], (js.get("status") or {}).get("restarts", 0)
            if ended(js) or foreign(js) or "deletionTimestamp" in js["metadata"]:
                continue
            live = {job["metadata"]["uid"] for job in view.list(JOBS, js["metadata"]["namespace"])}
            failed = [job for job in self._of(js, attempt, "Failed") if job["metadata"]["uid"] in live]
            done = [job for job in self._of(js, attempt, "Complete") if job["metadata"]["uid"] in live]
            if failed:
                found.append(f"{name} goes on although {failed[0]['metadata']['name']} has failed")
            elif done and satisfied(js, done):
                found.append(f"{name} goes on although its success policy is satisfied")
        return found


def _reason(js: Tree, type_: str) -> str:
    return next((str(each["reason"]) for each in (js.get("status") or {}).get("conditions") or () if each["type"] == type_), "")


def _restart(name: str, js: Tree, before: Tree, failed: list[Tree], rules: Sequence[Tree]) -> Found:
    reason = _reason(js, names.RESTARTING)
    firsts = [_first(rules, job) for job in failed]
    counts = (js.get("status") or {}).get("restartsCountTowardsMax", 0) > before.get("restartsCountTowardsMax", 0)
    if reason == names.DEFAULT_FAILURE_POLICY:
        if failed and None not in firsts:
            yield f"{name} restarted by default, and every failed Job is of a rule"
        if not counts:
            yield f"{name} restarted by default, and that does not count"
        return
    rule = next((each for each in rules if names.FAILURE_POLICY_PREFIX + each["name"] == reason), None)
    if rule is None or not rule["action"].startswith("RestartJobSet"):
        yield f"{name} restarted by the rule {reason}"
    elif rule not in firsts:
        yield f"{name} restarted by the rule {rule['name']}, which is no failed Job's first"
    elif counts == rule["action"].endswith("IgnoreMaxRestarts"):
        yield f"{name} restarted by {rule['action']}, and that {'counts' if counts else 'does not count'}"


def _failure(name: str, js: Tree, failed: list[Tree], rules: Sequence[Tree]) -> Found:
    reason, policy = _reason(js, names.FAILED), js["spec"].get("failurePolicy")
    firsts = [_first(rules, job) for job in failed]
    if reason == names.FAILED_JOBS and policy is not None:
        yield f"{name} failed as if it had no failure policy"
    if reason == names.FAIL_JOB_SET_ACTION and failed and not any(rule is not None and rule["action"] == "FailJobSet" for rule in firsts):
        yield f"{name} failed by a rule, and no failed Job's first rule says so"
    if reason == names.REACHED_MAX_RESTARTS:
        counted, limit = (js.get("status") or {}).get("restartsCountTowardsMax", 0), (policy or {}).get("maxRestarts", 0)
        if counted < limit:
            yield f"{name} reached the limit of {limit} restarts with {counted}"
        if failed and all(rule is not None and rule["action"] == "FailJobSet" for rule in firsts):
            yield f"{name} reached its limit, and every failed Job's rule lets it fail"


def _first(rules: Sequence[Tree], job: Tree) -> Tree | None:
    """Return the first rule that matches a failed Job. Message patterns are not looked at: a rule with some matches nothing here."""
    reason = _reason(job, "Failed")
    for rule in rules:
        reasons, targets = rule.get("onJobFailureReasons"), rule.get("targetReplicatedJobs")
        if (
            (not reasons or reason in reasons)
            and (not targets or label(job, names.REPLICATED_JOB) in targets)
            and not rule.get("onJobFailureMessagePatterns")
        ):
            return rule
    return None


def satisfied(js: Tree, complete: list[Tree]) -> bool:
    """Tell whether these complete Jobs satisfy the success policy."""
    policy = js["spec"].get("successPolicy") or {}
    targets = policy.get("targetReplicatedJobs") or list(roles_of(js))
    done = sum(1 for job in complete if label(job, names.REPLICATED_JOB) in targets)
    if policy.get("operator") == "Any":
        return done > 0
    wanted: int = sum(role.get("replicas", 1) for name, role in roles_of(js).items() if name in targets)
    return done >= wanted


class Belonging:
    """What carries a set's labels is the set's; a coordinator is the one of the spec; pods carry their priority."""

    name = "jobset-belonging"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new Jobs and pods."""
        new = tree_of(change.new)
        if new is None or change.old is not None or not label(new, names.NAME):
            return ()
        if table == JOBS.storage:
            return list(self._job(new, view))
        if table == PODS.storage and "priority" in new["spec"] and label(new, names.PRIORITY) != str(new["spec"]["priority"]):
            return [f"pod {new['metadata']['name']} has priority {new['spec']['priority']} and the label {label(new, names.PRIORITY)!r}"]
        return ()

    @staticmethod
    def _job(job: Tree, view: View) -> Found:
        name = job["metadata"]["name"]
        owner = owner_of(job)
        if owner is None or owner["uid"] != label(job, names.UID):
            yield f"Job {name} says that it is of the set {label(job, names.UID)}, which does not own it"
            return
        js = view.get(JOB_SETS, job["metadata"]["namespace"], owner["name"])
        coordinator = js["spec"].get("coordinator") if js is not None else None
        if js is not None and coordinator:
            subdomain = (js["spec"].get("network") or {}).get("subdomain") or js["metadata"]["name"]
            host = f"{js['metadata']['name']}-{coordinator['replicatedJob']}-{coordinator.get('jobIndex', 0)}-{coordinator.get('podIndex', 0)}"
            if label(job, names.COORDINATOR) != f"{host}.{subdomain}":
                yield f"Job {name} has the coordinator {label(job, names.COORDINATOR)!r}, wants {host}.{subdomain}"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Retirement:
    """A set is deleted once it has ended and its time is over, not before, and has nothing running then; at rest none of those is left."""

    name = "jobset-retirement"

    def __init__(self, excuses: Excuses) -> None:
        self._excuses = excuses
        self._deleted: dict[str, None] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at a set as its deletion begins."""
        if table != JOB_SETS.storage or change.old is None:
            return ()
        js = change.new.obj if change.new is not None else change.old.obj
        meta = js["metadata"]
        if (change.new is not None and "deletionTimestamp" not in meta) or meta["uid"] in self._deleted:
            return ()
        self._deleted[meta["uid"]] = None
        if meta["uid"] in self._excuses:
            return ()
        due = _due(js)
        if due is None or ("deletionTimestamp" in meta and from_stamp(meta["deletionTimestamp"]) < due):
            return [f"{meta['name']} was deleted, due {due}"]
        if js["spec"]["ttlSecondsAfterFinished"] <= SLACK or foreign(js):
            return ()
        return [
            f"{meta['name']} is deleted and {job['metadata']['name']} still ran"
            for job in view.list(JOBS, meta["namespace"])
            if (controller_of(job) or {}).get("uid") == meta["uid"] and not job_ended(job) and "deletionTimestamp" not in job["metadata"]
        ]

    def at_rest(self, view: View) -> Iterable[str]:
        """Look for sets that stayed."""
        return [f"{js['metadata']['name']} is there after its time" for js in view.list(JOB_SETS) if _due(js) is not None]


def _due(js: Tree) -> float | None:
    seconds: Any = js["spec"].get("ttlSecondsAfterFinished")
    for each in (js.get("status") or {}).get("conditions") or ():
        if seconds is not None and each["type"] in (names.COMPLETED, names.FAILED) and each["status"] == "True":
            return from_stamp(each["lastTransitionTime"]) + float(seconds)
    return None


class Resumed:
    """At rest a running Job's pods are bound to the nodes that the set's template says, and to no others."""

    name = "jobset-resumed"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing before that."""
        return ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Compare node selectors."""
        found = []
        for job in view.list(JOBS):
            owner = owner_of(job)
            js = view.get(JOB_SETS, job["metadata"]["namespace"], owner["name"]) if owner is not None else None
            role = roles_of(js).get(label(job, names.REPLICATED_JOB)) if js is not None else None
            if js is None or role is None or job["spec"].get("suspend") or job_ended(job):
                continue
            wanted = role["template"]["spec"]["template"]["spec"].get("nodeSelector") or {}
            has = {key: value for key, value in (job["spec"]["template"]["spec"].get("nodeSelector") or {}).items() if key != names.NAMESPACED_JOB}
            if has != wanted:
                found.append(f"Job {job['metadata']['name']} selects nodes by {has}, {js['metadata']['name']} by {wanted}")
        return found
