"""What JobSets promise, commit by commit and at rest.

Promises about counters and conditions hold for what the controller writes; a user who edits a status by hand can break them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kubemini.api.resources import JOB_SETS, JOBS, NODES, PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES
from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View, tree_of

Found = Iterator[str]

SHARED_KEYS = (
    names.NAME,
    names.UID,
    names.REPLICATED_JOB,
    names.REPLICATED_JOB_REPLICAS,
    names.GLOBAL_REPLICAS,
    names.JOB_INDEX,
    names.JOB_GLOBAL_INDEX,
    names.JOB_KEY,
    names.GROUP_NAME,
    names.GROUP_REPLICAS,
    names.JOB_GROUP_INDEX,
    names.RESTART_ATTEMPT,
)
"""Keys that are labels and annotations alike, on Jobs, their pod templates and their pods."""


def jobset_invariants() -> list[Invariant]:
    """Return all invariants of JobSets, fresh: they keep state."""
    return [
        ChildNames(),
        ChildLabels(),
        Attempts(),
        StartOrder(),
        Counters(),
        Conditions(),
        RoleCounts(),
        Finished(),
        Settled(),
        Belongings(),
        Placement(),
        Unchanging(),
    ]


# ----------------------------------------------------------------------------------------------- reading


def owner_of(obj: Tree) -> Tree | None:
    """Return the owner reference of the JobSet that controls an object, None where none does."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] == JOB_SETS.kind and reference["apiVersion"] == JOB_SETS.api_version:
            found: Tree = reference
            return found
    return None


def jobset_of(obj: Tree, view: View) -> Tree | None:
    """Return the live JobSet that controls an object."""
    owner = owner_of(obj)
    found = view.get(JOB_SETS, obj["metadata"]["namespace"], owner["name"]) if owner is not None else None
    return found if found is not None and owner is not None and found["metadata"]["uid"] == owner["uid"] else None


def roles_of(js: Tree) -> dict[str, Tree]:
    """Return the replicated jobs by name."""
    return {role["name"]: role for role in js["spec"].get("replicatedJobs") or ()}


def condition(obj: Tree, type_: str) -> str:
    """Return the status of a condition, "" where it is absent."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each["type"] == type_:
            return str(each["status"])
    return ""


def ended(js: Tree) -> bool:
    """Tell whether a JobSet has completed or failed."""
    return "True" in (condition(js, names.COMPLETED), condition(js, names.FAILED))


def job_ended(job: Tree) -> bool:
    """Tell whether a Job has completed or failed."""
    return "True" in (condition(job, "Complete"), condition(job, "Failed"))


def foreign(js: Tree) -> bool:
    """Tell whether another controller manages a JobSet."""
    return js["spec"].get("managedBy") not in (None, names.BUILT_IN_CONTROLLER)


def label(obj: Tree, key: str) -> str:
    """Return a label, "" where it is absent."""
    return str((obj["metadata"].get("labels") or {}).get(key, ""))


def attempt_of(job: Tree) -> int:
    """Return the attempt that a Job belongs to, -1 where somebody broke its label."""
    text = label(job, names.RESTART_ATTEMPT)
    return int(text) if text.isdigit() else -1


def _status(js: Tree) -> Mapping[str, Any]:
    return js.get("status") or {}


def _children(js: Tree, view: View) -> list[Tree]:
    uid = js["metadata"]["uid"]
    return [job for job in view.list(JOBS, js["metadata"]["namespace"]) if (owner := owner_of(job)) is not None and owner["uid"] == uid]


class _Base:
    """Nothing is promised; subclasses override what they promise."""

    name = ""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at one commit."""
        new, old = tree_of(change.new), tree_of(change.old)
        if table == JOBS.storage and new is not None and owner_of(new) is not None:
            return list(self.job(new, old, view))
        if table == JOB_SETS.storage and new is not None:
            return list(self.jobset(new, old, view))
        return self.other(table, new, old, view)

    def job(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Look at a child Job that was made or changed."""
        yield from ()

    def jobset(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Look at a JobSet that was made or changed."""
        yield from ()

    def other(self, table: str, new: Tree | None, old: Tree | None, view: View) -> Iterable[str]:
        """Look at anything else."""
        return ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Look at the JobSets that live, now that nothing moves."""
        found: list[str] = []
        for js in view.list(JOB_SETS):
            if "deletionTimestamp" not in js["metadata"]:
                found += self.rest(js, view)
        return found

    def rest(self, js: Tree, view: View) -> Found:
        """Look at one JobSet at rest."""
        yield from ()


# ----------------------------------------------------------------------------------------------- child Jobs


class ChildNames(_Base):
    """A child Job is called ``<jobset>-<role>-<index>`` with a role and an index of the spec, and there is one of each."""

    name = "jobset-child-names"

    def job(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Check a new Job's name against its JobSet."""
        js = jobset_of(new, view)
        if old is not None or js is None:
            return
        role, index = label(new, names.REPLICATED_JOB), label(new, names.JOB_INDEX)
        found = roles_of(js).get(role)
        if found is None or not index.isdigit() or int(index) >= found.get("replicas", 1):
            yield f"Job {new['metadata']['name']} is of role {role!r} index {index!r}, which {js['metadata']['name']} does not have"
        if new["metadata"]["name"] != f"{js['metadata']['name']}-{role}-{index}":
            yield f"Job {new['metadata']['name']} carries role {role!r} and index {index!r}"
        if foreign(js):
            yield f"Job {new['metadata']['name']} was made for {js['metadata']['name']}, which somebody else manages"


class ChildLabels(_Base):
    """Keys of a child Job are labels and annotations alike, on the Job, its pod template and its pods; indexes are within range and distinct."""

    name = "jobset-child-labels"

    def job(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Check a new Job's keys."""
        if old is not None:
            return
        name, template = new["metadata"]["name"], new["spec"]["template"].get("metadata") or {}
        for where, meta in (("the Job", new["metadata"]), ("its template", template)):
            for key in SHARED_KEYS:
                one, other = (meta.get("labels") or {}).get(key), (meta.get("annotations") or {}).get(key)
                if one is None or one != other or one != label(new, key):
                    yield f"{key} of {name} is {one!r} as label and {other!r} as annotation of {where}"
        js = jobset_of(new, view)
        if js is None:
            return
        mine = int(label(new, names.JOB_GLOBAL_INDEX))
        if not 0 <= mine < int(label(new, names.GLOBAL_REPLICAS)):
            yield f"{name} has global index {mine}"
        if not 0 <= int(label(new, names.JOB_GROUP_INDEX)) < int(label(new, names.GROUP_REPLICAS)):
            yield f"{name} has group index {label(new, names.JOB_GROUP_INDEX)}"
        place = (label(new, names.GROUP_NAME), label(new, names.JOB_GROUP_INDEX))
        for sibling in _children(js, view):
            if sibling["metadata"]["uid"] == new["metadata"]["uid"]:
                continue
            if int(label(sibling, names.JOB_GLOBAL_INDEX)) == mine:
                yield f"{name} and {sibling['metadata']['name']} both have global index {mine}"
            if (label(sibling, names.GROUP_NAME), label(sibling, names.JOB_GROUP_INDEX)) == place:
                yield f"{name} and {sibling['metadata']['name']} both have index {place[1]} of group {place[0]}"

    def other(self, table: str, new: Tree | None, old: Tree | None, view: View) -> Iterable[str]:
        """Check that a new pod of a child Job carries the Job's keys."""
        if table != PODS.storage or new is None or old is not None or not label(new, names.NAME):
            return ()
        annotations = new["metadata"].get("annotations") or {}
        return [f"pod {new['metadata']['name']} lacks {key}" for key in SHARED_KEYS if not label(new, key) or annotations.get(key) != label(new, key)]


class Attempts(_Base):
    """No Job is ahead of its JobSet's attempt; with BlockingRecreate none is made while one of an earlier attempt exists."""

    name = "jobset-attempts"

    def job(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Check a new Job's attempt."""
        js = jobset_of(new, view)
        if old is not None or js is None:
            return
        attempt = attempt_of(new)
        if attempt > _status(js).get("restarts", 0):
            yield f"Job {new['metadata']['name']} of attempt {attempt} was made in attempt {_status(js).get('restarts', 0)}"
        if (js["spec"].get("failurePolicy") or {}).get("restartStrategy") == "BlockingRecreate":
            for sibling in _children(js, view):
                if attempt_of(sibling) != attempt:
                    yield f"Job {new['metadata']['name']} of attempt {attempt} was made beside {sibling['metadata']['name']} of attempt {attempt_of(sibling)}"


class StartOrder(_Base):
    """A role's Jobs are made and resumed only after those that it waits for have come far enough, once within this attempt."""

    name = "jobset-start-order"

    def __init__(self) -> None:
        self._reached: dict[tuple[str, int, str, str], None] = {}
        """(uid, attempt, role, started or complete), for ever."""

    def job(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Note how far roles have come; check a Job that may run from now on, or was made."""
        js = jobset_of(new, view)
        if js is None:
            return
        uid, attempt = js["metadata"]["uid"], attempt_of(new)
        self._note(js, attempt, view)
        if attempt < _status(js).get("restarts", 0):
            return
        roles = list(roles_of(js).values())
        mine = label(new, names.REPLICATED_JOB)
        position = next((index for index, role in enumerate(roles) if role["name"] == mine), None)
        if position is None:
            return
        runs = not new["spec"].get("suspend") and (old is None or bool(old["spec"].get("suspend")))
        if runs and (js["spec"].get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder":
            for earlier in roles[:position]:
                if not self._has(uid, attempt, earlier, "started"):
                    yield f"Job {new['metadata']['name']} may run although {earlier['name']} has not started"
        if old is None or runs:
            for item in roles[position].get("dependsOn") or ():
                wanted = "complete" if item["status"] == "Complete" else "started"
                other = roles_of(js).get(item["name"])
                if other is not None and not self._has(uid, attempt, other, wanted):
                    yield f"Job {new['metadata']['name']} is there although {item['name']} is not {wanted}"

    def _has(self, uid: str, attempt: int, role: Tree, what: str) -> bool:
        return role.get("replicas", 1) == 0 or (uid, attempt, role["name"], what) in self._reached

    def _note(self, js: Tree, attempt: int, view: View) -> None:
        counts: dict[tuple[str, str], int] = {}
        for job in _children(js, view):
            if attempt_of(job) == attempt:
                role = label(job, names.REPLICATED_JOB)
                if job_ended(job) or _is_ready(job):
                    counts[role, "started"] = counts.get((role, "started"), 0) + 1
                if condition(job, "Complete") == "True":
                    counts[role, "complete"] = counts.get((role, "complete"), 0) + 1
        for role, tree in roles_of(js).items():
            for what in ("started", "complete"):
                if counts.get((role, what), 0) == tree.get("replicas", 1):
                    self._reached[js["metadata"]["uid"], attempt, role, what] = None


def _is_ready(job: Tree) -> bool:
    status, spec = job.get("status") or {}, job["spec"]
    parallelism = spec.get("parallelism", 1)
    return bool(status.get("succeeded", 0) + status.get("ready", 0) >= min(parallelism, spec.get("completions", parallelism)))


# ----------------------------------------------------------------------------------------------- status


class Counters(_Base):
    """Restarts rise one by one, each for a failed Job; those that count never exceed the limit."""

    name = "jobset-counters"

    def jobset(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Compare the counters before and after."""
        name, now, before = new["metadata"]["name"], _status(new), _status(old or {})
        restarts, counted = now.get("restarts", 0), now.get("restartsCountTowardsMax", 0)
        if not restarts >= counted >= 0:
            yield f"{name}: {counted} of {restarts} restarts count"
        limit = max(0, (new["spec"].get("failurePolicy") or {}).get("maxRestarts", 0))
        alone = sum(sum(role.get("jobRestartsCountTowardsMax") or ()) for role in now.get("replicatedJobsStatus") or ())
        if counted + alone > limit:
            yield f"{name}: {counted + alone} restarts count towards a limit of {limit}"
        if restarts < before.get("restarts", 0) or counted < before.get("restartsCountTowardsMax", 0):
            yield f"{name}: a counter of restarts fell"
        if old is not None and restarts > before.get("restarts", 0):
            if restarts != before.get("restarts", 0) + 1:
                yield f"{name}: restarts rose from {before.get('restarts', 0)} to {restarts}"
            if ended(old):
                yield f"{name}: restarted after its end"
        meta = new["metadata"]
        if (
            old is not None
            and new["spec"] == old["spec"]
            and meta.get("generation") != old["metadata"].get("generation")
            and "deletionTimestamp" not in meta
        ):
            yield f"{name}: generation rose without a change of the spec"


class Conditions(_Base):
    """A JobSet ends once and for good; conditions that exclude each other are never True together."""

    name = "jobset-conditions"

    def jobset(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Check the conditions after a change."""
        name = new["metadata"]["name"]
        completed, failed = condition(new, names.COMPLETED), condition(new, names.FAILED)
        if completed == failed == "True":
            yield f"{name} is Completed and Failed"
        expected = names.COMPLETED if completed == "True" else names.FAILED if failed == "True" else ""
        if _status(new).get("terminalState", "") != expected:
            yield f"{name} has terminalState {_status(new).get('terminalState', '')!r} with Completed={completed or None} and Failed={failed or None}"
        if old is not None:
            for type_ in (names.COMPLETED, names.FAILED):
                if condition(old, type_) == "True" and condition(new, type_) != "True":
                    yield f"{name} is no longer {type_}"
        if condition(new, names.STARTUP_IN_PROGRESS) == condition(new, names.STARTUP_COMPLETED) == "True":
            yield f"{name} is starting in order and has started"
        if condition(new, names.RESTARTING) == "True" and (ended(new) or not _status(new).get("restarts")):
            yield f"{name} is restarting with {_status(new).get('restarts', 0)} restarts, ended: {ended(new)}"

    def rest(self, js: Tree, view: View) -> Found:
        """Check that a suspended JobSet does not claim to restart."""
        if js["spec"].get("suspend") and condition(js, names.RESTARTING) == "True" and not foreign(js):
            yield f"{js['metadata']['name']} is suspended and restarting"


class RoleCounts(_Base):
    """There is one entry of counts per role, and none counts more Jobs than the role has."""

    name = "jobset-role-counts"

    def jobset(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Check the entries."""
        entries = _status(new).get("replicatedJobsStatus")
        if not entries:
            return
        name, roles = new["metadata"]["name"], roles_of(new)
        if sorted(entry["name"] for entry in entries) != sorted(roles):
            yield f"{name} counts roles {sorted(entry['name'] for entry in entries)} and has {sorted(roles)}"
            return
        for entry in entries:
            replicas = roles[entry["name"]].get("replicas", 1)
            if entry["ready"] + entry["succeeded"] + entry["failed"] > replicas or max(entry["suspended"], entry["active"]) > replicas:
                yield f"{name} counts more of {entry['name']} than {replicas}: {entry}"


# ----------------------------------------------------------------------------------------------- ends and rest


class Finished(_Base):
    """No Job is made for a JobSet that has ended; in the end none of its Jobs is active."""

    name = "jobset-finished"

    def job(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Check that a new Job's JobSet has not ended."""
        js = jobset_of(new, view)
        if old is None and js is not None and ended(js):
            yield f"Job {new['metadata']['name']} was made after the end of {js['metadata']['name']}"

    def rest(self, js: Tree, view: View) -> Found:
        """Check that nothing runs any more."""
        if ended(js) and not foreign(js):
            for job in _children(js, view):
                if not job_ended(job) and attempt_of(job) >= _status(js).get("restarts", 0):
                    yield f"Job {job['metadata']['name']} is active although {js['metadata']['name']} has ended"


class Settled(_Base):
    """At rest a running JobSet has all its Jobs, running; a suspended one has all it may have, suspended and without pods."""

    name = "jobset-settled"

    def rest(self, js: Tree, view: View) -> Found:
        """Compare the Jobs with the spec."""
        if ended(js) or foreign(js):
            return
        name, suspended = js["metadata"]["name"], bool(js["spec"].get("suspend"))
        children = _children(js, view)
        roles = roles_of(js)
        waits = (
            any(role.get("dependsOn") for role in roles.values()) or (js["spec"].get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
        )
        total = sum(role.get("replicas", 1) for role in roles.values())
        if len(children) != total and not waits:
            yield f"{name} has {len(children)} Jobs and should have {total}"
        for job in children:
            if attempt_of(job) < _status(js).get("restarts", 0):
                yield f"Job {job['metadata']['name']} of an earlier attempt is left"
            if not job_ended(job) and bool(job["spec"].get("suspend")) != suspended and (suspended or not waits):
                yield f"Job {job['metadata']['name']} is {'running' if suspended else 'suspended'}, {name} is not"
        if suspended and roles and condition(js, names.SUSPENDED) != "True":
            yield f"{name} is suspended and does not say so"
        if suspended:
            for pod in view.list(PODS, js["metadata"]["namespace"]):
                if label(pod, names.UID) == js["metadata"]["uid"] and (pod.get("status") or {}).get("phase") in ("Pending", "Running"):
                    yield f"pod {pod['metadata']['name']} runs although {name} is suspended"


class Belongings(_Base):
    """Service and claims: there while they are needed, owned or not as the policy says; nothing of a JobSet that somebody else manages."""

    name = "jobset-belongings"

    def other(self, table: str, new: Tree | None, old: Tree | None, view: View) -> Iterable[str]:
        """Check a new Service or claim of a JobSet, and that a Service keeps what it selects."""
        if new is None:
            return ()
        meta = new["metadata"]
        if old is not None:
            same = table != SERVICES.storage or owner_of(new) is None or new["spec"].get("selector") == old["spec"].get("selector")
            return () if same else [f"Service {meta['name']} selects {new['spec'].get('selector')} from now on"]
        js = jobset_of(new, view)
        if table == SERVICES.storage and js is not None:
            wanted = {names.NAME: js["metadata"]["name"]}
            if new["spec"].get("selector") != wanted or new["spec"].get("clusterIP") != "None" or foreign(js):
                return [f"Service {meta['name']} of {js['metadata']['name']} selects {new['spec'].get('selector')}"]
        if table == PERSISTENT_VOLUME_CLAIMS.storage and label(new, names.NAME):
            js = view.get(JOB_SETS, meta["namespace"], label(new, names.NAME))
            kept = _retained(js, meta["name"]) if js is not None else None
            if js is not None and kept is not None:
                if foreign(js):
                    return [f"claim {meta['name']} was made for {js['metadata']['name']}, which somebody else manages"]
                owners = [reference["uid"] for reference in meta.get("ownerReferences") or ()]
                if owners != ([] if kept else [js["metadata"]["uid"]]):
                    return [f"claim {meta['name']} is {'to stay' if kept else 'to go'}, and owned by {owners}"]
        return ()

    def rest(self, js: Tree, view: View) -> Found:
        """Check that an unfinished JobSet has its Service."""
        network = js["spec"].get("network") or {}
        name, namespace = js["metadata"]["name"], js["metadata"]["namespace"]
        if foreign(js):
            if _children(js, view) or _status(js):
                yield f"{name} is managed by somebody else and has Jobs or a status"
        elif network.get("enableDNSHostnames") and not ended(js) and view.get(SERVICES, namespace, network.get("subdomain") or name) is None:
            yield f"{name} has no Service"


def _retained(js: Tree, claim: str) -> bool | None:
    """Tell whether a claim is to stay; None for one that the JobSet does not have."""
    for policy in js["spec"].get("volumeClaimPolicies") or ():
        for template in policy.get("templates") or ():
            if f"{template['metadata']['name']}-{js['metadata']['name']}" == claim:
                return bool((policy.get("retentionPolicy") or {}).get("whenDeleted") == "Retain")
    return None


class Unchanging(_Base):
    """What cannot be changed does not change: the policies, the network and the claims where they stand before and after, and the roles but for their pod templates."""

    name = "jobset-unchanging"

    def jobset(self, new: Tree, old: Tree | None, view: View) -> Found:
        """Compare two specs."""
        if old is None or new["spec"] is old["spec"]:
            return
        name = new["metadata"]["name"]
        for field in ("network", "successPolicy", "failurePolicy", "startupPolicy", "volumeClaimPolicies"):
            one, other = old["spec"].get(field), new["spec"].get(field)
            if one is not None and other is not None and one != other:
                yield f"{name}: {field} went from {one} to {other}"
        if old["spec"].get("managedBy") != new["spec"].get("managedBy"):
            yield f"{name}: managedBy went from {old['spec'].get('managedBy')} to {new['spec'].get('managedBy')}"
        before, after = ([_fixed(role) for role in tree["spec"].get("replicatedJobs") or ()] for tree in (old, new))
        if before != after:
            yield f"{name}: its roles went from {before} to {after}"


def _fixed(role: Tree) -> tuple[Any, ...]:
    return role["name"], role.get("replicas", 1), role.get("groupName", "default"), role.get("dependsOn")


class Placement(_Base):
    """Exclusive placement: a follower never comes without its leader's domain; at rest a domain holds one Job, and a Job one domain."""

    name = "jobset-placement"

    def other(self, table: str, new: Tree | None, old: Tree | None, view: View) -> Iterable[str]:
        """Check a new follower's node selector."""
        if table != PODS.storage or new is None or old is not None:
            return ()
        key = _exclusive(new)
        if key is None or _is_leader(new):
            return ()
        domain = (new["spec"].get("nodeSelector") or {}).get(key)
        return () if domain else [f"follower {new['metadata']['name']} selects {key}={domain!r}"]

    def at_rest(self, view: View) -> Iterable[str]:
        """Check who is where."""
        jobs: dict[tuple[str, str], str] = {}
        domains: dict[tuple[str, str, str], str] = {}
        found: list[str] = []
        for pod in view.list(PODS):
            key, node = _exclusive(pod), view.get(NODES, "", pod["spec"].get("nodeName") or "")
            if key is None or node is None or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
                continue
            domain, job = (node["metadata"].get("labels") or {}).get(key, ""), label(pod, names.JOB_KEY)
            if jobs.setdefault((key, job), domain) != domain:
                found.append(f"pod {pod['metadata']['name']} is in {domain}, others of its Job in {jobs[key, job]}")
            if domains.setdefault((key, domain, label(pod, names.PRIORITY)), job) != job:
                found.append(f"pod {pod['metadata']['name']} shares {domain} with another Job")
        return found


def _exclusive(pod: Tree) -> str | None:
    annotations = pod["metadata"].get("annotations") or {}
    if names.NAME not in annotations or names.NODE_SELECTOR_STRATEGY in annotations:
        return None
    found: str | None = annotations.get(names.EXCLUSIVE_TOPOLOGY)
    return found


def _is_leader(pod: Tree) -> bool:
    return bool((pod["metadata"].get("annotations") or {}).get("batch.kubernetes.io/job-completion-index") == "0")
