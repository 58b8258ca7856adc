"""What LeaderWorkerSets promise, commit by commit and at rest. The numbers are those of the list in the documentation of invariants."""

from __future__ import annotations

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


def lws_invariants() -> list[Invariant]:
    """Return all invariants of LeaderWorkerSets, fresh: they keep state."""
    return [Members(), OneRevision(), Window(), Incarnations(), Conditions(), History(), Exclusive(), Settled()]


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
        wanted = [names.LEADER_ADDRESS_ENV, names.GROUP_SIZE_ENV, names.WORKER_INDEX_ENV]
        values = [f"{leader}.{pod['spec'].get('subdomain', '')}.{meta['namespace']}", size, worker]
        for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())):
            found = [(each["name"], each.get("value")) for each in container.get("env") or ()][:3]
            if found != list(zip(wanted, values, strict=True)):
                yield f"pod {name} has the variables {found}"


class OneRevision(_Quiet):
    """2, 3: a group is of one revision: its leader, its workers' StatefulSet, which that leader controls, and its workers."""

    name = "lws groups of one revision"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at new workers and their StatefulSets."""
        if change.new is None or change.old is not None or table not in (PODS_TABLE, SETS):
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


class Window(_Quiet):
    """5: the leaders' StatefulSet has as many groups as are wanted and as surge allows, and never updates below the partition."""

    name = "lws window"

    def __init__(self) -> None:
        self._specs: dict[str, list[LwsView]] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Remember specs that the controller may act on; look at the leaders' StatefulSets."""
        if change.new is None:
            return ()
        new = change.new.obj
        if table == LWS:
            self._note(new)
        if table != SETS or (change.old is not None and change.old.obj["spec"] == new["spec"]):
            return ()
        owner = controller_of(new)
        if owner is None or owner["kind"] != "LeaderWorkerSet" or owner["uid"] not in self._specs:
            return ()
        specs = self._specs[owner["uid"]]
        replicas, partition = new["spec"]["replicas"], ((new["spec"]["updateStrategy"] or {}).get("rollingUpdate") or {}).get("partition") or 0
        if any(each.replicas <= replicas <= each.replicas + each.surge and partition >= each.partition for each in specs):
            return ()
        return (
            f"leaders of {new['metadata']['name']}: {replicas} with partition {partition}, wanted {[(e.replicas, e.surge, e.partition) for e in specs]}",
        )

    def _note(self, new: Tree) -> None:
        known = self._specs.setdefault(new["metadata"]["uid"], [])
        if not known or known[-1].meta["generation"] != new["metadata"]["generation"]:
            known.append(LwsView(new))
        observed = (new.get("status") or {}).get("observedGeneration", 0)
        while len(known) > 1 and known[0].meta["generation"] < observed:
            del known[0]


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

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at revisions that are removed."""
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
        wanted = LwsView(lws).replicas
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


class Exclusive(_Quiet):
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


class Settled:
    """19: at rest there are the wanted groups of the wanted size, all of the live revision and ready, and no other revision is kept."""

    name = "lws at rest"

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
        if owner.partition == 0:
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
        not_ready = [each["metadata"]["name"] for each in pods if not running_and_ready(each)]
        if not_ready:
            yield f"{owner.name} has pods that are not ready: {not_ready}"
        if not any(each["type"] == names.AVAILABLE and each["status"] == "True" for each in status.get("conditions") or ()):
            yield f"{owner.name} is not available: {status}"
        if status.get("observedGeneration") != owner.meta["generation"]:
            yield f"{owner.name} is observed at {status.get('observedGeneration')} of {owner.meta['generation']}"
        if (owner.spec.get("networkConfig") or {}).get("subdomainPolicy") == "Shared" and view.get(SERVICES, owner.namespace, owner.name) is None:
            yield f"{owner.name} has no Service"
