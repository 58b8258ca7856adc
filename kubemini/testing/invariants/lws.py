"""What LeaderWorkerSets promise, commit by commit and at rest. The numbers are those of the list in the documentation of invariants."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from kubemini.api.resources import CONTROLLER_REVISIONS, LEADER_WORKER_SETS, NODES, PODS, SERVICES, STATEFUL_SETS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws.exclusive import unique_key
from kubemini.controllers.lws.groups import running_and_ready
from kubemini.controllers.lws.revisions import hash_of, key_of
from kubemini.controllers.lws.view import LwsView
from kubemini.runtime.keys import controller_of
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View

LWS, PODS_TABLE, SETS, REVISIONS = LEADER_WORKER_SETS.storage, PODS.storage, STATEFUL_SETS.storage, CONTROLLER_REVISIONS.storage
FOREGROUND = "foregroundDeletion"
JUST_NOW = 60
"""Commits by which a status may be behind."""


def lws_invariants(*, alone: bool = True) -> list[Invariant]:
    """Return all invariants of LeaderWorkerSets, fresh: they keep state. Unless `alone`, there may be no room for all pods."""
    settled = Settled(roomy=alone)
    return [Members(), OneRevision(), Startup(), Window(), Canary(), Incarnations(), Conditions(), History(), Exclusive(), settled]


def _labels(obj: Tree) -> Tree:
    found: Tree = obj["metadata"].get("labels") or {}
    return found


def is_member(pod: Tree) -> bool:
    """Tell whether a pod belongs to a LeaderWorkerSet."""
    return names.NAME in _labels(pod)


def group_of(pod: Tree) -> tuple[str, str, str]:
    """Return what names a pod's group."""
    labels = _labels(pod)
    return pod["metadata"]["namespace"], labels[names.NAME], labels.get(names.GROUP_INDEX, "")


class _Quiet:
    """An invariant that has nothing to say at rest."""

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Members(_Quiet):
    """1, 13, 15: a pod's name, labels, annotations and variables agree."""

    name = "lws members"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new pods."""
        if table != PODS_TABLE or change.new is None or change.old is not None or not is_member(change.new.obj):
            return ()
        return self._check(change.new.obj)

    def _check(self, pod: Tree) -> Iterator[str]:
        meta, labels = pod["metadata"], _labels(pod)
        name, lws = meta["name"], labels[names.NAME]
        size = (meta.get("annotations") or {}).get(names.SIZE)
        group, worker = labels.get(names.GROUP_INDEX), labels.get(names.WORKER_INDEX)
        leader = f"{lws}-{group}"
        if name != (leader if worker == "0" else f"{leader}-{worker}"):
            yield f"pod {name} is labelled as worker {worker} of group {group} of {lws}"
        if labels.get(names.GROUP_KEY) != unique_key(meta["namespace"], leader):
            yield f"pod {name} has the group key {labels.get(names.GROUP_KEY)}"
        if size is None:
            yield f"pod {name} knows no size"
        elif names.SUB_GROUP_SIZE in meta["annotations"] and worker is not None:
            yield from self._sub_group(meta, worker, int(size))
        wanted = [names.LEADER_ADDRESS_ENV, names.GROUP_SIZE_ENV, names.WORKER_INDEX_ENV]
        values = [f"{leader}.{pod['spec'].get('subdomain', '')}.{meta['namespace']}", size, worker]
        for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
            found = [(each["name"], each.get("value")) for each in container.get("env") or ()][:3]
            if found != list(zip(wanted, values, strict=True)):
                yield f"pod {name} has the variables {found}"

    @staticmethod
    def _sub_group(meta: Tree, worker: str, size: int) -> Iterator[str]:
        """Subgroups are filled in the order of indexes; a leader that is one too many goes with the first, or with none."""
        name, labels, annotations = meta["name"], meta["labels"], meta.get("annotations") or {}
        wanted = int(annotations[names.SUB_GROUP_SIZE])
        kind, number = annotations.get(names.SUB_GROUP_POLICY_TYPE), int(worker)
        if kind is None:
            yield f"pod {name} knows no type of subgroups"
        leaders_own = size % wanted != 0
        index: int | None = (number - 1) // wanted if leaders_own and number else number // wanted
        if number == 0:
            index = None if kind == "LeaderExcluded" else 0
        if labels.get(names.SUB_GROUP_INDEX) != (None if index is None else str(index)):
            yield f"pod {name} of {size} in subgroups of {wanted} is in {labels.get(names.SUB_GROUP_INDEX)}, not {index}"


class OneRevision(_Quiet):
    """2, 3: a group is of one revision: its leader, its workers' StatefulSet, which that leader controls, and its workers."""

    name = "lws groups of one revision"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new workers and their StatefulSets, and at StatefulSets that change."""
        if change.new is None or table not in (PODS_TABLE, SETS):
            return ()
        if change.old is not None and (table == PODS_TABLE or change.old.obj["spec"] is change.new.obj["spec"]):
            return ()
        return self._check(change.new.obj, table, view) if is_member(change.new.obj) else ()

    def _check(self, obj: Tree, table: str, view: View) -> Iterator[str]:
        meta = obj["metadata"]
        owner = controller_of(obj)
        if owner is None or owner["kind"] == "LeaderWorkerSet":
            return
        if table == SETS:
            if owner["kind"] != "Pod" or owner["name"] != meta["name"]:
                yield f"StatefulSet {meta['name']} is controlled by {owner['kind']} {owner['name']}"
            leader = view.get(PODS, meta["namespace"], meta["name"])
            if leader is not None and leader["metadata"]["uid"] == owner["uid"] and key_of(leader) != key_of(obj):
                yield f"StatefulSet {meta['name']} is of {key_of(obj)}, its leader of {key_of(leader)}"
            yield from self._as_recorded(obj, view)
            return
        above = view.get(STATEFUL_SETS, meta["namespace"], owner["name"])
        if (
            _labels(obj).get(names.WORKER_INDEX) != "0"
            and above is not None
            and above["metadata"]["uid"] == owner["uid"]
            and key_of(above) != key_of(obj)
        ):
            yield f"worker {meta['name']} is of {key_of(obj)}, its StatefulSet of {key_of(above)}"

    @staticmethod
    def _as_recorded(workers: Tree, view: View) -> Iterator[str]:
        """Workers are as many as their revision records, and made from its template, whatever the live spec says."""
        name, spec = workers["metadata"]["name"], workers["spec"]
        for revision in view.list(CONTROLLER_REVISIONS, workers["metadata"]["namespace"]):
            owner = controller_of(revision)
            if (
                owner is None
                or owner["kind"] != "LeaderWorkerSet"
                or owner["name"] != _labels(workers)[names.NAME]
                or key_of(revision) != key_of(workers)
            ):
                continue
            group = revision["data"]["spec"]["leaderWorkerTemplate"]
            if spec["replicas"] != group["size"] - 1:
                yield f"StatefulSet {name} has {spec['replicas']} workers, its revision {group['size'] - 1}"
            given = spec["template"]["metadata"].get("annotations") or {}
            recorded = (group["workerTemplate"].get("metadata") or {}).get("annotations") or {}
            if any(given.get(key) != value for key, value in recorded.items()):
                yield f"StatefulSet {name} is not what its revision records"


class Specs:
    """The specs of each LeaderWorkerSet that its controllers may still act on."""

    def __init__(self) -> None:
        self._seen: dict[str, list[LwsView]] = {}

    def note(self, new: Tree) -> None:
        """Take a commit of a LeaderWorkerSet."""
        known = self._seen.setdefault(new["metadata"]["uid"], [])
        if not known or known[-1].meta["generation"] != new["metadata"]["generation"]:
            known.append(LwsView(new))
        observed = (new.get("status") or {}).get("observedGeneration", 0)
        while len(known) > 1 and known[0].meta["generation"] < observed:
            del known[0]

    def of(self, uid: str) -> list[LwsView]:
        """Return the specs as views."""
        return self._seen.get(uid, [])


class Startup(_Quiet):
    """4, 10: under LeaderReady workers wait for their leader; under None no group goes as a whole."""

    name = "lws startup and restarts"

    def __init__(self) -> None:
        self._specs = Specs()
        self._ready: dict[str, None] = {}
        """Uids of leaders that have been ready."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Remember leaders that are ready; look at new workers, and at leaders that go with their groups."""
        if change.new is None:
            return ()
        new = change.new.obj
        if table == LWS:
            self._specs.note(new)
        elif table == SETS and change.old is None:
            return self._workers(new, view)
        elif table == PODS_TABLE and _labels(new).get(names.WORKER_INDEX) == "0":
            return self._leader(new, change, view)
        return ()

    def _workers(self, workers: Tree, view: View) -> Iterator[str]:
        owner = controller_of(workers)
        if owner is None or owner["kind"] != "Pod" or owner["uid"] in self._ready:
            return
        specs = self._of(workers, view)
        if specs and all(each.leader_ready_first for each in specs):
            yield f"StatefulSet {workers['metadata']['name']} was made before its leader was ready"

    def _leader(self, leader: Tree, change: Change, view: View) -> Iterator[str]:
        meta = leader["metadata"]
        if running_and_ready(leader):
            self._ready[meta["uid"]] = None
        begins = FOREGROUND in (meta.get("finalizers") or ()) and (
            change.old is None or FOREGROUND not in (change.old.obj["metadata"].get("finalizers") or ())
        )
        specs = self._of(leader, view)
        if begins and specs and all(each.restart_policy == "None" for each in specs):
            yield f"group of {meta['name']} goes as a whole, though a restart takes no group down"

    def _of(self, member: Tree, view: View) -> list[LwsView]:
        lws = view.get(LEADER_WORKER_SETS, member["metadata"]["namespace"], _labels(member).get(names.NAME, ""))
        return self._specs.of(lws["metadata"]["uid"]) if lws is not None and "deletionTimestamp" not in lws["metadata"] else []


class Window(_Quiet):
    """5, 6: the leaders' StatefulSet has as many groups as are wanted and as surge allows, and never updates below the partition; the window only moves down."""

    name = "lws window"

    def __init__(self) -> None:
        self._specs = Specs()

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Remember specs that the controller may act on; look at the leaders' StatefulSets."""
        if change.new is None:
            return ()
        new = change.new.obj
        if table == LWS:
            self._specs.note(new)
        if table != SETS or (change.old is not None and change.old.obj["spec"] == new["spec"]):
            return ()
        owner = controller_of(new)
        if owner is None or owner["kind"] != "LeaderWorkerSet":
            return ()
        return self._check(new, change.old.obj if change.old is not None else None, self._specs.of(owner["uid"]))

    @staticmethod
    def _check(new: Tree, old: Tree | None, specs: list[LwsView]) -> Iterator[str]:
        name, replicas, partition = new["metadata"]["name"], new["spec"]["replicas"], partition_of(new)
        if not any(each.replicas <= replicas <= each.replicas + each.surge and partition >= each.partition for each in specs):
            yield f"leaders of {name}: {replicas} with partition {partition}, wanted {[(e.replicas, e.surge, e.partition) for e in specs]}"
        if (
            old is not None
            and key_of(old) == key_of(new)
            and partition > partition_of(old)
            and not any(each.partition == partition for each in specs)
        ):
            yield f"the window of {name} went back from {partition_of(old)} to {partition}"


def partition_of(leaders: Tree) -> int:
    """Return the partition of a StatefulSet."""
    found: int = ((leaders["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}).get("partition") or 0
    return found


class Canary(_Quiet):
    """8: a group below the partition is made again of the revision that it had.

    As long as the leaders' StatefulSet has no current revision on record, there is nothing to go back to: it takes the update's.
    """

    name = "lws canary"

    def __init__(self) -> None:
        self._keys: dict[tuple[str, str], dict[int, str]] = {}
        """LeaderWorkerSet → index → revision key of groups that no update has come to since their leader was made."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Follow the window, and look at new leaders."""
        if table not in (SETS, PODS_TABLE) or change.new is None or not is_member(change.new.obj):
            return ()
        new = change.new.obj
        known = self._keys.setdefault((new["metadata"]["namespace"], _labels(new)[names.NAME]), {})
        if table == SETS:
            if (controller_of(new) or {}).get("kind") == "LeaderWorkerSet":
                held = range(min(partition_of(new), new["spec"]["replicas"]))
                for index in [each for each in known if each not in held]:
                    del known[index]
            return ()
        if change.old is not None or _labels(new).get(names.WORKER_INDEX) != "0":
            return ()
        leaders = view.get(STATEFUL_SETS, new["metadata"]["namespace"], _labels(new)[names.NAME])
        index, key = int(_labels(new)[names.GROUP_INDEX]), key_of(new)
        before = known.pop(index, key)
        if leaders is not None and index < partition_of(leaders):
            known[index] = key
        if leaders is not None and "currentRevision" not in (leaders.get("status") or {}):
            return ()
        return (f"leader {new['metadata']['name']} is of {key}, was of {before} and lies below the partition",) if before != key else ()


class Incarnations(_Quiet):
    """9: a group that is taken down as a whole is gone before its next leader is made."""

    name = "lws incarnations"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at leaders that are removed for good, and whether workers that they waited for are left."""
        if table != PODS_TABLE or change.new is not None or change.old is None:
            return ()
        leader = change.old.obj
        if not is_member(leader) or _labels(leader).get(names.WORKER_INDEX) != "0" or FOREGROUND not in (leader["metadata"].get("finalizers") or ()):
            return ()
        workers = view.get(STATEFUL_SETS, leader["metadata"]["namespace"], leader["metadata"]["name"])
        owner = controller_of(workers) if workers is not None else None
        if owner is not None and owner["uid"] == leader["metadata"]["uid"]:
            return (f"leader {leader['metadata']['name']} went before its workers",)
        return ()


class Conditions(_Quiet):
    """12, 16: Available excludes the two others; what is observed does not run ahead."""

    name = "lws conditions"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at statuses."""
        if table != LWS or change.new is None:
            return ()
        return self._check(change.new.obj)

    def _check(self, lws: Tree) -> Iterator[str]:
        status = lws.get("status") or {}
        true = [each["type"] for each in status.get("conditions") or () if each["status"] == "True"]
        if names.AVAILABLE in true and len(true) > 1:
            yield f"{true} at once"
        if status.get("observedGeneration", 0) > lws["metadata"]["generation"]:
            yield f"observed {status['observedGeneration']} at generation {lws['metadata']['generation']}"


class History(_Quiet):
    """18: the revision of a group that lives is kept."""

    name = "lws history"

    def __init__(self) -> None:
        self._specs = Specs()

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at revisions that are removed."""
        if table == LWS and change.new is not None:
            self._specs.note(change.new.obj)
        if table != REVISIONS or change.new is not None or change.old is None:
            return ()
        gone = change.old.obj
        owner = controller_of(gone)
        if owner is None or owner["kind"] != "LeaderWorkerSet":
            return ()
        lws = view.get(LEADER_WORKER_SETS, gone["metadata"]["namespace"], owner["name"])
        if lws is None or lws["metadata"]["uid"] != owner["uid"] or "deletionTimestamp" in lws["metadata"]:
            return ()
        key = key_of(gone)
        # By the specs that the controller may have seen
        wanted = min(each.replicas for each in self._specs.of(owner["uid"]))
        for pod in view.list(PODS, gone["metadata"]["namespace"]):
            labels = _labels(pod)
            if (
                labels.get(names.NAME) != owner["name"]
                or labels.get(names.WORKER_INDEX) != "0"
                or key_of(pod) != key
                or "deletionTimestamp" in pod["metadata"]
            ):
                continue
            if int(labels[names.GROUP_INDEX]) < wanted and not self._kept(key, owner["uid"], gone, view):
                return (f"revision {key} went, and group {labels[names.GROUP_INDEX]} of {owner['name']} is of it",)
        return ()

    @staticmethod
    def _kept(key: str, owner: str, gone: Tree, view: View) -> bool:
        revisions = view.list(CONTROLLER_REVISIONS, gone["metadata"]["namespace"])
        return any(key_of(each) == key and (controller_of(each) or {}).get("uid") == owner for each in revisions)


class Exclusive:
    """14: exclusive groups keep to one topology domain each, and to themselves."""

    name = "lws exclusive placement"

    def __init__(self) -> None:
        self._domains: dict[tuple[str, str], dict[str, tuple[str, str, str]]] = {}
        """(topology key, domain) → uid of each pod there → its group."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at pods as they are bound."""
        if table != PODS_TABLE:
            return ()
        pod = change.new.obj if change.new is not None else change.old.obj if change.old is not None else {}
        if change.new is None or pod.get("status", {}).get("phase") in ("Failed", "Succeeded"):
            # What has ended holds no place, for the scheduler neither
            for pods in self._domains.values():
                pods.pop(pod["metadata"]["uid"], None)
            return ()
        key = (pod["metadata"].get("annotations") or {}).get(names.EXCLUSIVE_TOPOLOGY)
        node_name = pod["spec"].get("nodeName")
        if key is None or not node_name or not is_member(pod) or (change.old is not None and change.old.obj["spec"].get("nodeName")):
            return ()
        node = view.get(NODES, "", node_name)
        domain = _labels(node).get(key) if node is not None else None
        if domain is None:
            return (f"pod {pod['metadata']['name']} runs outside of every domain",)
        group = group_of(pod)
        there = self._domains.setdefault((key, domain), {})
        others = sorted({other[1:] for other in there.values() if other != group})
        there[pod["metadata"]["uid"]] = group
        return (f"pod {pod['metadata']['name']} shares domain {domain} with {others}",) if others else ()

    def at_rest(self, view: View) -> Iterator[str]:
        """Yield groups whose pods stand in several domains."""
        for key, domains in itertools.groupby(sorted(self._domains, key=lambda each: each[0]), key=lambda each: each[0]):
            found: dict[tuple[str, str, str], list[str]] = {}
            for each in domains:
                for group in dict.fromkeys(self._domains[each].values()):
                    found.setdefault(group, []).append(each[1])
            for group, places in found.items():
                if len(places) > 1:
                    yield f"group {group} stands in {sorted(places)} of {key}"


class Settled:
    """19: at rest there are the wanted groups of the wanted size, all of the live revision and ready, and no other revision is kept.

    Unless `roomy`, pods may have found no room: a set with one that is not ready has come only so far.
    """

    name = "lws at rest"

    def __init__(self, *, roomy: bool = True) -> None:
        self._roomy = roomy

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing before that."""
        return ()

    def at_rest(self, view: View) -> Iterator[str]:
        """Yield violations."""
        for tree in view.list(LEADER_WORKER_SETS):
            yield from self._check(LwsView(tree), view)

    def _check(self, owner: LwsView, view: View) -> Iterator[str]:
        status = owner.status
        pods = [each for each in view.list(PODS, owner.namespace) if _labels(each).get(names.NAME) == owner.name]
        leaders = view.get(STATEFUL_SETS, owner.namespace, owner.name)
        if leaders is None:
            yield f"{owner.name} has no leaders"
            return
        not_ready = [each["metadata"]["name"] for each in pods if not running_and_ready(each)]
        stuck = bool(not_ready) and not self._roomy
        if owner.partition == 0 and not stuck:
            found = sorted(each["metadata"]["name"] for each in pods)
            wanted = [f"{owner.name}-{group}" for group in range(owner.replicas)]
            wanted += [f"{leader}-{worker}" for leader in wanted for worker in range(1, owner.size)]
            if found != sorted(wanted):
                yield f"{owner.name} has the pods {found}, wants {sorted(wanted)}"
            key = hash_of(owner.spec)
            stale = sorted({key_of(each) for each in (*pods, leaders)} - {key})
            if stale:
                yield f"{owner.name} has pods of {stale}, wants {key}"
            kept = [each for each in view.list(CONTROLLER_REVISIONS, owner.namespace) if (controller_of(each) or {}).get("uid") == owner.uid]
            if not kept or any(key_of(each) != key for each in kept):
                yield f"{owner.name} keeps {[key_of(each) for each in kept]}, wants {key}"
            for name in ("replicas", "readyReplicas", "updatedReplicas"):
                if status.get(name, 0) != owner.replicas:
                    yield f"{owner.name} has {name} {status.get(name, 0)}, wants {owner.replicas}"
            if leaders["spec"]["replicas"] != owner.replicas:
                yield f"{owner.name} keeps {leaders['spec']['replicas']} leaders, wants {owner.replicas}"
        if not_ready and not stuck:
            yield f"{owner.name} has pods that are not ready: {not_ready}"
        if not stuck and not any(each["type"] == names.AVAILABLE and each["status"] == "True" for each in status.get("conditions") or ()):
            yield f"{owner.name} is not available: {status}"
        if status.get("observedGeneration") != owner.meta["generation"]:
            yield f"{owner.name} is observed at {status.get('observedGeneration')} of {owner.meta['generation']}"
        if (owner.spec.get("networkConfig") or {}).get("subdomainPolicy") == "Shared" and view.get(SERVICES, owner.namespace, owner.name) is None:
            yield f"{owner.name} has no Service"
        for name, value in owner.labels.items():
            if _labels(leaders).get(name) != value:
                yield f"the leaders of {owner.name} do not carry its label {name}"
        for name in (owner.name, *(f"{owner.name}-{group}" for group in range(owner.replicas))):
            service = view.get(SERVICES, owner.namespace, name)
            if service is not None and not service["spec"].get("publishNotReadyAddresses"):
                yield f"Service {name} hides pods that are not ready"


def timely_lws_invariants() -> list[Invariant]:
    """Return what holds only where caches are never late, and nobody makes a group unready: fresh."""
    return [Budget(), Told()]


def _ready_groups(lws: LwsView, view: View) -> dict[int, str]:
    """Return the revision keys of the groups that are ready, by index: their leader and every worker that its StatefulSet wants."""
    found: dict[int, str] = {}
    for leader in view.list(PODS, lws.namespace):
        labels = _labels(leader)
        if labels.get(names.NAME) != lws.name or labels.get(names.WORKER_INDEX) != "0" or not running_and_ready(leader):
            continue
        workers = view.get(STATEFUL_SETS, lws.namespace, leader["metadata"]["name"])
        if lws.size > 1:
            if workers is None or (controller_of(workers) or {}).get("uid") != leader["metadata"]["uid"]:
                continue
            pods = (view.get(PODS, lws.namespace, f"{leader['metadata']['name']}-{index + 1}") for index in range(workers["spec"]["replicas"]))
            if not all(pod is not None and running_and_ready(pod) for pod in pods):
                continue
        found[int(labels[names.GROUP_INDEX])] = key_of(leader)
    return found


class Budget(_Quiet):
    """7: the window never opens so far that fewer groups than promised (replicas - maxUnavailable) would be ready if all in it were replaced at once."""

    name = "lws budget"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at the leaders' StatefulSets as they change."""
        if table != SETS or change.new is None or change.old is None or change.old.obj["spec"] is change.new.obj["spec"]:
            return ()
        new, old = change.new.obj, change.old.obj
        owner = controller_of(new)
        tree = (
            view.get(LEADER_WORKER_SETS, new["metadata"]["namespace"], owner["name"])
            if owner is not None and owner["kind"] == "LeaderWorkerSet"
            else None
        )
        if tree is None:
            return ()
        lws = LwsView(tree)
        ready, key = _ready_groups(lws, view), key_of(new)

        def safe(leaders: Tree) -> int:
            return sum(1 for index, its in ready.items() if index < leaders["spec"]["replicas"] and (its == key or index < partition_of(leaders)))

        after, promised = safe(new), lws.replicas - lws.unavailable
        if after < promised and after < safe(old):
            return (
                f"{lws.name}: {after} groups ready for sure of {promised} promised, with {new['spec']['replicas']} groups and partition {partition_of(new)}",
            )
        return ()


class Told(_Quiet):
    """A status tells of no more ready groups than there were just now."""

    name = "lws ready groups"

    def __init__(self) -> None:
        self._ready: dict[str, list[tuple[int, int]]] = {}
        """Key of a LeaderWorkerSet → (revision, groups that were ready from then on), of the last commits."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Follow pods; look at statuses."""
        obj = change.new.obj if change.new is not None else change.old.obj if change.old is not None else {}
        if table in (PODS_TABLE, SETS) and is_member(obj):
            tree = view.get(LEADER_WORKER_SETS, obj["metadata"]["namespace"], _labels(obj)[names.NAME])
            if tree is not None:
                lws = LwsView(tree)
                known = self._ready.setdefault(lws.key, [])
                known.append((change.revision, len(_ready_groups(lws, view))))
                while len(known) > 1 and known[1][0] < change.revision - JUST_NOW:
                    del known[0]
        if table != LWS or change.new is None:
            return ()
        lws = LwsView(change.new.obj)
        told, most = lws.status.get("readyReplicas", 0), max((ready for _, ready in self._ready.get(lws.key, ())), default=0)
        return (f"{lws.name} tells of {told} ready groups, {most} are",) if told > most else ()


class Serving(_Quiet):
    """7: while a spec is rolled out, no fewer groups serve than promised (replicas - maxUnavailable), but for those that somebody broke (`excuse`).

    A group serves while all of its pods are ready and none is being deleted. O(1) per commit.
    """

    name = "lws serving"

    def __init__(self) -> None:
        self._ready: dict[tuple[str, str, str], dict[str, None]] = {}
        """Group → its pods that serve."""
        self._serving: dict[tuple[str, str], dict[str, None]] = {}
        """LeaderWorkerSet → its groups that serve."""
        self._excused: dict[tuple[str, str, str], None] = {}
        """Groups that were broken and have not served since."""
        self._promised: dict[tuple[str, str], int] = {}
        """LeaderWorkerSet → groups promised, once they have all been there."""
        self.fewest = 1 << 30
        """The smallest number of groups that served since then, those excused among them."""

    def excuse(self, pod: Tree) -> None:
        """Say that a pod is broken or deleted by somebody else: its group is excused until it serves again."""
        self._excused[group_of(pod)] = None

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Follow pods."""
        if table == LWS and change.new is not None:
            lws = LwsView(change.new.obj)
            mark = (lws.namespace, lws.name)
            if mark in self._promised or len(self._serving.get(mark, ())) >= lws.replicas > 0:
                self._promised[mark] = lws.replicas - lws.unavailable
            return ()
        obj = change.new.obj if change.new is not None else change.old.obj if change.old is not None else {}
        if table != PODS_TABLE or not is_member(obj):
            return ()
        group, name = group_of(obj), obj["metadata"]["name"]
        ready = self._ready.setdefault(group, {})
        if change.new is not None and "deletionTimestamp" not in obj["metadata"] and running_and_ready(obj):
            ready[name] = None
        else:
            ready.pop(name, None)
        mark = group[:2]
        serving = self._serving.setdefault(mark, {})
        if len(ready) == int(obj["metadata"]["annotations"][names.SIZE]):
            serving[group[2]] = None
            self._excused.pop(group, None)
            return ()
        serving.pop(group[2], None)
        promised = self._promised.get(mark)
        if promised is None:
            return ()
        excused = sum(1 for each in self._excused if each[:2] == mark)
        self.fewest = min(self.fewest, len(serving) + excused)
        return (
            (f"{len(serving)} groups of {mark[1]} serve and {excused} are excused, {promised} are promised",)
            if len(serving) + excused < promised
            else ()
        )
