"""What StatefulSets promise, commit by commit and at rest. The numbers are those of the list in the documentation of invariants.

A controller acts on what its cache shows, so a deletion is judged by every spec that it may have seen: those since the generation that the status tells of. Pods that
somebody else deletes or breaks must be excused (`Deletions.excuse`) by whoever does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kubemini.api.resources import CONTROLLER_REVISIONS, PODS, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.api.wellknown.lws import NAME as LWS_NAME
from kubemini.controllers.stateful_set import pods
from kubemini.controllers.stateful_set.view import DELETE, SetView
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import controller_of
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View

SETS, PODS_TABLE, CLAIMS = STATEFUL_SETS.storage, PODS.storage, "persistentvolumeclaims"


def statefulset_invariants(*, alone: bool = True) -> list[Invariant]:
    """Return all invariants of StatefulSets, fresh: they keep state.

    Unless `alone`, others delete pods too, and there may be no room for all: then whom the controller deletes cannot be told from what others do.
    """
    always: list[Invariant] = [Counts(), Identity(), Revisions(), Order(), Owners(), Settled(roomy=alone)]
    return [*always, Deletions()] if alone else always


def set_of(pod: Tree, view: View) -> SetView | None:
    """Return the live set that controls a pod."""
    reference = controller_of(pod)
    if reference is None or reference["kind"] != "StatefulSet":
        return None
    found = view.get(STATEFUL_SETS, pod["metadata"]["namespace"], reference["name"])
    return SetView(found) if found is not None and found["metadata"]["uid"] == reference["uid"] else None


class Specs:
    """The specs of each set that its controller may still act on."""

    def __init__(self) -> None:
        self._seen: dict[str, list[Tree]] = {}

    def note(self, change: Change) -> None:
        """Take a commit of a set."""
        if change.new is None:
            return
        new = change.new.obj
        known = self._seen.setdefault(new["metadata"]["uid"], [])
        if not known or known[-1]["metadata"]["generation"] != new["metadata"]["generation"]:
            known.append(new)
        observed = (new.get("status") or {}).get("observedGeneration", 0)
        while len(known) > 1 and known[0]["metadata"]["generation"] < observed:
            del known[0]

    def of(self, owner: SetView) -> list[SetView]:
        """Return the specs as views."""
        return [SetView(each) for each in self._seen.get(owner.uid, ())]


class Counts:
    """10: counts fit together, and the observed generation neither runs ahead nor back."""

    name = "statefulset counts"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at a set's status."""
        return self._check(change) if table == SETS and change.new is not None else ()

    def _check(self, change: Change) -> Iterator[str]:
        new = change.new.obj if change.new is not None else {}
        status = new.get("status") or {}
        before = (change.old.obj.get("status") or {}) if change.old is not None else {}
        replicas, ready = status.get("replicas", 0), status.get("readyReplicas", 0)
        if not status.get("availableReplicas", 0) <= ready <= replicas:
            yield f"available {status.get('availableReplicas', 0)}, ready {ready}, replicas {replicas}"
        for name in ("currentReplicas", "updatedReplicas"):
            if not 0 <= status.get(name, 0) <= replicas:
                yield f"{name} {status.get(name, 0)} of {replicas}"
        observed = status.get("observedGeneration", 0)
        if observed > new["metadata"]["generation"] or observed < before.get("observedGeneration", 0):
            yield f"observedGeneration {observed} after {before.get('observedGeneration', 0)} at generation {new['metadata']['generation']}"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Identity:
    """6, 7: a new pod carries its identity, and is of a revision that exists and records what it is made from."""

    name = "statefulset identity"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new pods."""
        if table != PODS_TABLE or change.new is None or change.old is not None:
            return ()
        owner = set_of(change.new.obj, view)
        return self._check(change.new.obj, owner, view) if owner is not None else ()

    def _check(self, pod: Tree, owner: SetView, view: View) -> Iterator[str]:
        meta, spec = pod["metadata"], pod["spec"]
        if not pods.identity_matches(owner, pod):
            yield f"pod {meta['name']} has the labels {meta.get('labels')}"
        if spec.get("hostname") != meta["name"]:
            yield f"pod {meta['name']} has the host name {spec.get('hostname')}"
        if LWS_NAME not in meta["labels"] and spec.get("subdomain", "") != (owner.spec.get("serviceName") or ""):
            # Groups with a Service of their own say so by a webhook
            yield f"pod {meta['name']} has the subdomain {spec.get('subdomain')}, not {owner.spec.get('serviceName')}"
        revision = view.get(CONTROLLER_REVISIONS, owner.namespace, pods.revision_of(pod))
        if revision is None:
            yield f"pod {meta['name']} is of revision {pods.revision_of(pod)}, which is not there"
            return
        template = revision["data"]["spec"]["template"]
        made, recorded = ([(each["name"], each.get("image")) for each in part["containers"]] for part in (spec, template["spec"]))
        if made != recorded or any(meta["annotations"].get(key) != value for key, value in (template["metadata"].get("annotations") or {}).items()):
            yield f"pod {meta['name']} is not what revision {revision['metadata']['name']} records"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Revisions:
    """9, 16: what is rolled out is the template; one template has one revision; a new pod is of the revision that the partition gives it."""

    name = "statefulset revisions"

    def __init__(self) -> None:
        self._specs = Specs()
        self._names: dict[tuple[str, str], str] = {}
        """(uid of a set, template) → name of its revision."""
        self._current: dict[str, dict[str, None]] = {}
        """Uid of a set → every revision that was its current one."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at statuses and new pods."""
        if change.new is None:
            return ()
        new = change.new.obj
        if table == SETS:
            self._specs.note(change)
            before = (change.old.obj.get("status") or {}).get("currentRevision", "") if change.old is not None else ""
            return [*self._status(SetView(new), view), *self._completion(SetView(new), before, view)]
        if table == PODS_TABLE and change.old is None:
            owner = set_of(new, view)
            return self._pod(new, owner, view) if owner is not None else ()
        return ()

    def _status(self, owner: SetView, view: View) -> Iterator[str]:
        status = owner.status
        if status.get("currentRevision"):
            self._current.setdefault(owner.uid, {})[status["currentRevision"]] = None
        name = status.get("updateRevision")
        if not name or status.get("observedGeneration") != owner.meta["generation"] or owner.deleting:
            return
        revision = view.get(CONTROLLER_REVISIONS, owner.namespace, name)
        if revision is None:
            return
        template = owner.spec["template"]
        if _recorded(revision) != template:
            yield f"{owner.name} rolls out {name}, which does not record its template"
        known = self._names.setdefault((owner.uid, repr(template)), name)
        if known != name and view.get(CONTROLLER_REVISIONS, owner.namespace, known) is not None:
            yield f"{owner.name} has the revisions {known} and {name} of one template"
        self._names[owner.uid, repr(template)] = name

    def _completion(self, owner: SetView, before: str, view: View) -> Iterator[str]:
        """The update revision becomes current when all wanted pods are of it and ready, never under OnDelete; or where the current one is gone."""
        status, specs = owner.status, self._specs.of(owner)
        after = status.get("currentRevision", "")
        if before in ("", after) or view.get(CONTROLLER_REVISIONS, owner.namespace, before) is None:
            return
        counts = {status.get(name, 0) for name in ("replicas", "readyReplicas", "updatedReplicas")}
        if len(counts) > 1 or not any(each.replicas in counts and not each.on_delete for each in specs):
            yield f"{owner.name} took {after} for current, with {status} of {[each.replicas for each in specs]}"

    def _pod(self, pod: Tree, owner: SetView, view: View) -> Iterator[str]:
        revision = view.get(CONTROLLER_REVISIONS, owner.namespace, pods.revision_of(pod))
        if revision is None:
            return
        name, ordinal = revision["metadata"]["name"], pods.ordinal_of(pod)
        for spec in self._specs.of(owner):
            if spec.from_current(ordinal) and name in self._current.get(owner.uid, ()):
                return
            if (not spec.from_current(ordinal) or not self._current.get(owner.uid)) and _recorded(revision) == spec.spec["template"]:
                return
        yield f"pod {pod['metadata']['name']} is of {name}, which its set does not give it"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


def _recorded(revision: Tree) -> Tree:
    return {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}


class Order:
    """2: an ordered set makes a pod only once every pod below it has been ready."""

    name = "statefulset order"

    def __init__(self) -> None:
        self._ready: dict[str, dict[int, None]] = {}
        self._specs = Specs()

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Remember who has been ready; look at new pods."""
        if table == SETS:
            self._specs.note(change)
        if table != PODS_TABLE or change.new is None:
            return ()
        pod = change.new.obj
        reference = controller_of(pod)
        if reference is None or reference["kind"] != "StatefulSet":
            return ()
        been = self._ready.setdefault(reference["uid"], {})
        if pods.ready_since(pod) is not None:
            been[pods.ordinal_of(pod)] = None
        owner = set_of(pod, view)
        if change.old is not None or owner is None or not owner.ordered:
            return ()
        ordinal = pods.ordinal_of(pod)
        if any(all(each in been for each in range(spec.start, ordinal)) for spec in self._specs.of(owner)):
            return ()
        return (f"pod {pod['metadata']['name']} was made before all pods below it had been ready",)

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Deletions:
    """3, 4, 5, 8: whom a controller deletes: one at a time, from the top, none below the partition, none under OnDelete."""

    name = "statefulset deletions"

    def __init__(self) -> None:
        self._excused: dict[str, None] = {}
        self._specs = Specs()

    def excuse(self, uid: str) -> None:
        """Say that a pod is deleted or broken by somebody else."""
        self._excused[uid] = None

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at pods as their deletion begins."""
        if table == SETS:
            self._specs.note(change)
        if table != PODS_TABLE or change.old is None:
            return ()
        pod = change.old.obj
        begins = not pods.is_terminating(pod) and (change.new is None or pods.is_terminating(change.new.obj))
        if not begins or pod["metadata"]["uid"] in self._excused or pods.has_ended(pod):
            return ()
        owner = set_of(pod, view)
        if owner is None or owner.deleting:
            return ()
        if change.new is None:
            return self._check(pod, owner, view)
        going = change.new.obj["metadata"]
        now = from_stamp(going["deletionTimestamp"]) - going.get("deletionGracePeriodSeconds", 0)
        return [*self._check(pod, owner, view), *self._check_update(pod, owner, view, now)]

    def _check_update(self, pod: Tree, owner: SetView, view: View, now: float) -> Iterator[str]:
        """An update comes from the top, and waits for those above to be available again."""
        name, ordinal = pod["metadata"]["name"], pods.ordinal_of(pod)
        specs = self._specs.of(owner)
        if not all(each.wanted(ordinal) for each in specs):
            return
        for each in self._siblings(owner, view):
            known = pods.facts(each)
            if known.ordinal <= ordinal or not all(spec.wanted(known.ordinal) for spec in specs) or each["metadata"]["uid"] in self._excused:
                continue
            if known.revision == pods.revision_of(pod) and not known.terminating:
                yield f"pod {name} was updated before {each['metadata']['name']}"
            # Times are whole seconds
            if known.ready_since is None or all(known.ready_since + spec.min_ready > now + 1 for spec in specs):
                yield f"pod {name} was updated while {each['metadata']['name']} was not available"

    def _check(self, pod: Tree, owner: SetView, view: View) -> Iterator[str]:
        name, ordinal = pod["metadata"]["name"], pods.ordinal_of(pod)
        specs = self._specs.of(owner)
        updating = [each for each in specs if each.wanted(ordinal)]
        if len(updating) == len(specs):
            if all(each.on_delete for each in specs):
                yield f"pod {name} was deleted under OnDelete"
            if all(ordinal < each.start + (each.partition or 0) for each in specs):
                yield f"pod {name} is below the partition"
        others = [each for each in self._siblings(owner, view) if each["metadata"]["uid"] != pod["metadata"]["uid"]]
        going = [each for each in others if pods.is_terminating(each) and each["metadata"]["uid"] not in self._excused]
        if going and (owner.ordered or len(updating) == len(specs)):
            # A parallel set may be deleting surplus pods beside the one that it updates
            wanted = [each["metadata"]["name"] for each in going if owner.ordered or all(spec.wanted(pods.ordinal_of(each)) for spec in specs)]
            if wanted:
                yield f"pod {name} was deleted while {', '.join(wanted)} still went"
        if owner.ordered and not updating:
            above = [
                each["metadata"]["name"]
                for each in others
                if pods.ordinal_of(each) > ordinal and not any(s.wanted(pods.ordinal_of(each)) for s in specs)
            ]
            if above:
                yield f"pod {name} was deleted before {', '.join(above)}"

    @staticmethod
    def _siblings(owner: SetView, view: View) -> list[Tree]:
        found = []
        for each in view.list(PODS, owner.namespace):
            reference = controller_of(each)
            if reference is not None and reference["uid"] == owner.uid:
                found.append(each)
        return found

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Owners:
    """11: claims are owned only where a policy says so."""

    name = "statefulset claims"

    def __init__(self) -> None:
        self._deleting: dict[str, None] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Remember which sets ever had a policy; look at claims."""
        if change.new is None:
            return ()
        obj = change.new.obj
        if table == SETS:
            owner = SetView(obj)
            if DELETE in (owner.when_deleted, owner.when_scaled):
                self._deleting[owner.uid] = None
        if table != CLAIMS:
            return ()
        refs = [each for each in obj["metadata"].get("ownerReferences") or () if each["kind"] == "StatefulSet" and each["uid"] not in self._deleting]
        return (f"claim {obj['metadata']['name']} is owned by set {refs[0]['name']}, which retains its claims",) if refs else ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Kept:
    """6: at rest the revision of every pod is still there. Not where somebody deletes revisions."""

    name = "statefulset revisions kept"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing before that."""
        return ()

    def at_rest(self, view: View) -> Iterator[str]:
        """Yield pods without a revision."""
        for pod in view.list(PODS):
            if set_of(pod, view) is not None and view.get(CONTROLLER_REVISIONS, pod["metadata"]["namespace"], pods.revision_of(pod)) is None:
                yield f"pod {pod['metadata']['name']} is of revision {pods.revision_of(pod)}, which is gone"


class Settled:
    """12, 14: at rest every set has exactly its pods, all available, and of one revision where nothing holds the update; its history is cut.

    Unless `roomy`, pods may have found no room: a set with one that is not ready has come only so far, and says so.
    """

    name = "statefulset at rest"

    def __init__(self, *, roomy: bool = True) -> None:
        self._roomy = roomy

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing before that."""
        return ()

    def at_rest(self, view: View) -> Iterator[str]:
        """Yield violations."""
        owned: dict[str, list[Tree]] = {}
        for pod in view.list(PODS):
            reference = controller_of(pod)
            if reference is not None:
                owned.setdefault(reference["uid"], []).append(pod)
        for tree in view.list(STATEFUL_SETS):
            yield from self._check(SetView(tree), owned.get(tree["metadata"]["uid"], []), view)

    def _check(self, owner: SetView, found: list[Tree], view: View) -> Iterator[str]:
        names = sorted(each["metadata"]["name"] for each in found)
        wanted = sorted(pods.pod_name(owner, owner.start + index) for index in range(owner.replicas))
        ready = sum(pods.facts(each).ready_since is not None for each in found)
        stuck = not self._roomy and ready < len(found)
        if names != wanted and not stuck:
            yield f"{owner.name} has the pods {names}, wants {wanted}"
        status = owner.status
        counts = {"replicas": len(found), "readyReplicas": ready, "availableReplicas": ready} if stuck else {}
        for name in ("replicas", "readyReplicas", "availableReplicas"):
            if status.get(name, 0) != counts.get(name, owner.replicas):
                yield f"{owner.name} has {name} {status.get(name, 0)}, wants {counts.get(name, owner.replicas)}"
        if status.get("observedGeneration") != owner.meta["generation"]:
            yield f"{owner.name} is observed at {status.get('observedGeneration')} of {owner.meta['generation']}"
        if not owner.on_delete and not owner.partition and not stuck:
            labels = {pods.revision_of(each) for each in found} | {status.get("currentRevision", "")}
            if labels != {status.get("updateRevision", "")}:
                yield f"{owner.name} is at {sorted(labels)}, wants {status.get('updateRevision')}"
        live = {status.get("currentRevision"), status.get("updateRevision"), *(pods.revision_of(each) for each in found)}
        kept = [each for each in view.list(CONTROLLER_REVISIONS, owner.namespace) if (controller_of(each) or {}).get("uid") == owner.uid]
        dead = [each for each in kept if each["metadata"]["name"] not in live]
        if 0 <= owner.history_limit < len(dead):
            yield f"{owner.name} keeps {len(dead)} old revisions, wants {owner.history_limit}"
