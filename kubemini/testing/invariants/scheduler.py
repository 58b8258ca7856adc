"""What the scheduler, the kubelet and node life promise, commit by commit and at rest. The numbers are those of the list in the documentation of invariants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kubemini.api.resources import NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_GROUPS, PODS, RESOURCE_CLAIMS
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import affinity, spreading
from kubemini.controllers.scheduler.cache import Cache, ports_of, priority_of
from kubemini.controllers.scheduler.filters import fits, node_properties
from kubemini.controllers.scheduler.resources import amounts, requests_of
from kubemini.controllers.scheduler.terms import terms_of
from kubemini.controllers.scheduler.volumes import claim_names
from kubemini.machinery.node_matching import matches_term, tolerates
from kubemini.runtime.env import from_stamp
from kubemini.store import Change
from kubemini.testing.invariants.base import Invariant, View, tree_of
from kubemini.testing.invariants.pod_groups import driven_out_by_group, preempted

TERMINAL = ("Succeeded", "Failed")
RECENT = 500
"""Revisions for which the scheduler's view may be behind."""


def scheduler_invariants(*, lossless: bool = True) -> list[Invariant]:
    """Return all of them, fresh: they keep state.

    Unless `lossless`, the binding of one member of a gang may fail after those of others: it waits like any pod then, and somebody else may take its place.
    """
    return [
        Capacity(),
        OneNode(),
        Constraints(),
        GangQuorum(lossless=lossless),
        Preemption(),
        Verdicts(),
        Lives(),
        Devices(),
        ExclusiveDomains(),
        Disruptions(),
        Waiting(),
    ]


def ended(pod: Tree) -> bool:
    """Tell whether a pod has ended."""
    return (pod.get("status") or {}).get("phase") in TERMINAL


def condition(obj: Tree, type_: str) -> Tree | None:
    """Return a condition, whatever its status."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each["type"] == type_:
            found: Tree = each
            return found
    return None


def _name(pod: Tree) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _node_of(pod: Tree | None) -> str:
    return str(pod["spec"].get("nodeName") or "") if pod is not None else ""


class _OfPods:
    """An invariant that looks at pods' changes."""

    name = ""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at a pod's new state beside its old one."""
        if table != "pods":
            return ()
        old, new = tree_of(change.old), tree_of(change.new)
        if old is not None and new is not None and old["metadata"]["uid"] != new["metadata"]["uid"]:
            return [*self.changed(old, None, view), *self.changed(None, new, view)]
        return self.changed(old, new, view)

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Yield violations."""
        raise NotImplementedError

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


class Capacity(_OfPods):
    """1, 2, 17: what is bound to a node fits it, unless it was put there past the scheduler or the node shrank."""

    name = "node capacity"

    def __init__(self) -> None:
        self._used: dict[str, dict[str, int]] = {}
        self._excused: dict[str, None] = {}
        """Nodes that took a pod past the scheduler, or shrank."""

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Excuse nodes that shrink."""
        if table == "nodes" and change.old is not None and change.new is not None:
            before, after = (amounts((tree["status"] or {}).get("allocatable")) for tree in (change.old.obj, change.new.obj))
            if any(after.get(name, 0) < value for name, value in before.items()):
                self._excused[change.new.obj["metadata"]["name"]] = None
        return super().observe(table, change, view)

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Keep the sums, and look at them when a pod arrives."""
        before = old if old is not None and _node_of(old) and not ended(old) else None
        after = new if new is not None and _node_of(new) and not ended(new) else None
        if before is not None and after is not None and requests_of(before["spec"]).items == requests_of(after["spec"]).items:
            return
        if before is not None:
            self._add(before, -1)
        if after is None:
            return
        self._add(after, 1)
        node = _node_of(after)
        if before is not None or old is None:
            # Created with a node, or resized in place: not the scheduler's doing
            self._excused[node] = None
        tree = view.get(NODES, "", node)
        if tree is None or node in self._excused:
            return
        allocatable = amounts((tree.get("status") or {}).get("allocatable"))
        for name, value in self._used[node].items():
            if value > allocatable.get(name, 0):
                yield f"{_name(after)} was bound to {node}, which holds {value} of {name} now and has {allocatable.get(name, 0)}"

    def _add(self, pod: Tree, sign: int) -> None:
        used = self._used.setdefault(_node_of(pod), {})
        for name, value in requests_of(pod["spec"]).items:
            used[name] = used.get(name, 0) + sign * value


class OneNode(_OfPods):
    """3: a pod gets its node once, never while it is gated or being deleted."""

    name = "one node"

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Yield violations."""
        if old is None or new is None:
            return
        before, after = _node_of(old), _node_of(new)
        if before and before != after:
            yield f"{_name(new)} moved from {before} to {after or 'no node'}"
        if after and not before:
            if old["spec"].get("schedulingGates"):
                yield f"{_name(new)} was bound while it was gated"
            if "deletionTimestamp" in old["metadata"]:
                yield f"{_name(new)} was bound while it was being deleted"


class Constraints(_OfPods):
    """4: when a pod is bound, every hard constraint holds: selector, affinity, taints, ports, spread, pods both ways, volumes, claims.

    The scheduler decides on a view that is a moment old, and what it cannot know is forgiven: nodes that changed their labels or taints, and where spread and
    affinity count on pods or nodes, that one of those has just left or come.
    """

    name = "hard constraints"

    def __init__(self) -> None:
        self._restless: dict[str, None] = {}
        """Nodes whose labels or taints changed after they were first seen."""
        self._moved = -RECENT
        """The revision at which a pod left last, or a node came or went."""
        self._revision = 0

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Note restless nodes and leaving pods."""
        self._revision = change.revision
        if (table == "nodes" and (change.old is None or change.new is None)) or (
            table == "pods" and _leaves(tree_of(change.old), tree_of(change.new))
        ):
            self._moved = change.revision
        if table == "nodes" and change.old is not None and change.new is not None:
            old, new = change.old.obj, change.new.obj
            if old["metadata"].get("labels") != new["metadata"].get("labels") or _added_taints(old, new):
                self._restless[new["metadata"]["name"]] = None
        return super().observe(table, change, view)

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Look at a pod that was just bound."""
        if old is None or new is None or _node_of(old) or not _node_of(new):
            return
        node = view.get(NODES, "", _node_of(new))
        if node is None:
            return
        name = node["metadata"]["name"]
        if name not in self._restless:
            refused = node_properties(new["spec"], node)
            if refused is not None:
                yield f"{_name(new)} was bound to {name}: {refused.reasons[0]}"
        yield from self._beside_others(new, node, view)
        yield from _volumes(new, node, view)

    def _beside_others(self, pod: Tree, node: Tree, view: View) -> Iterator[str]:
        spec, name = pod["spec"], node["metadata"]["name"]
        spread = [each for each in spec.get("topologySpreadConstraints") or () if each["whenUnsatisfiable"] == "DoNotSchedule"]
        ports = ports_of(spec)
        placed = [each for each in view.list(PODS) if _node_of(each) and not ended(each) and each["metadata"]["uid"] != pod["metadata"]["uid"]]
        if ports:
            taken = [port for other in placed if _node_of(other) == name for port in ports_of(other["spec"])]
            if any(
                protocol == p and number == n and (address == a or "0.0.0.0" in (address, a))  # noqa: S104
                for protocol, number, address in ports
                for p, n, a in taken
            ):
                yield f"{_name(pod)} was bound to {name}, where its host port is taken"
        if not spread and not terms_of(spec) and not any(terms_of(other["spec"]).anti for other in placed):
            return
        cache = Cache()
        for each in view.list(NODES):
            cache.set_node(each)
        for other in placed:
            cache.place(other, _node_of(other))
        info = cache.nodes[name]
        labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in view.list(NAMESPACES)}
        refused = affinity.compute(pod, cache, lambda namespace: labels.get(namespace, {})).refusal(info) or spreading.compute(pod, cache).refusal(
            info
        )
        if refused is affinity.NO_AFFINITY or refused is spreading.SKEWED:
            refused = refused if self._revision - self._moved > RECENT else None
        if refused is not None:
            yield f"{_name(pod)} was bound to {name}: {refused.reasons[0]}"


def _leaves(old: Tree | None, new: Tree | None) -> bool:
    """Tell whether a pod went, ended, or began to go."""
    if old is None:
        return False
    return new is None or (ended(new) and not ended(old)) or ("deletionTimestamp" in new["metadata"] and "deletionTimestamp" not in old["metadata"])


def _added_taints(old: Tree, new: Tree) -> bool:
    before = [(taint["key"], taint["effect"]) for taint in old["spec"].get("taints") or ()]
    return any((taint["key"], taint["effect"]) not in before for taint in new["spec"].get("taints") or ()) or (
        bool(new["spec"].get("unschedulable")) and not old["spec"].get("unschedulable")
    )


def _volumes(pod: Tree, node: Tree, view: View) -> Iterator[str]:
    namespace, labels, name = pod["metadata"]["namespace"], node["metadata"].get("labels") or {}, node["metadata"]["name"]
    for claim_name, _ in claim_names(pod):
        claim = view.get(PERSISTENT_VOLUME_CLAIMS, namespace, claim_name)
        if claim is None or not claim["spec"].get("volumeName"):
            yield f"{_name(pod)} was bound, but its claim {claim_name} is not"
            continue
        volume = view.get(PERSISTENT_VOLUMES, "", claim["spec"]["volumeName"])
        terms = (((volume or {}).get("spec") or {}).get("nodeAffinity") or {}).get("required", {}).get("nodeSelectorTerms")
        if terms and not any(matches_term(term, labels, name) for term in terms):
            yield f"{_name(pod)} was bound to {name}, which its volume {claim['spec']['volumeName']} does not reach"
    for entry in pod["spec"].get("resourceClaims") or ():
        made = {each["name"]: each.get("resourceClaimName") for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
        device_claim = view.get(RESOURCE_CLAIMS, namespace, entry.get("resourceClaimName") or made.get(entry["name"]) or "")
        if device_claim is None or not any(
            each["uid"] == pod["metadata"]["uid"] for each in (device_claim.get("status") or {}).get("reservedFor") or ()
        ):
            yield f"{_name(pod)} was bound, but its device claim {entry['name']} is not reserved for it"


class GangQuorum(_OfPods):
    """5: the first member of a gang is bound only when there are enough of them, and soon enough of them are bound."""

    name = "gang quorum"

    def __init__(self, *, lossless: bool) -> None:
        self._lossless = lossless
        self._started: dict[tuple[str, str], None] = {}
        """Gangs that were bound in sufficient number once: what they lose later is not the scheduler's doing."""
        self._left: dict[tuple[str, str], list[int]] = {}
        """The revisions at which members went or failed, which the scheduler may not know yet: a gang may lose all of them at once."""
        self._revision = 0

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Note members that go."""
        self._revision = change.revision
        old, new = (tree_of(change.old), tree_of(change.new)) if table == "pods" else (None, None)
        if old is not None and (key := self._group(old)) is not None and _counts(old) and (new is None or not _counts(new)):
            self._left.setdefault(key, []).append(change.revision)
        return super().observe(table, change, view)

    def _group(self, pod: Tree) -> tuple[str, str] | None:
        group = pod["spec"].get("schedulingGroup")
        return (pod["metadata"]["namespace"], group["podGroupName"]) if group and group.get("podGroupName") else None

    def _members(self, key: tuple[str, str], view: View) -> list[Tree]:
        return [pod for pod in view.list(PODS, key[0]) if self._group(pod) == key]

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Look at a member that was just bound."""
        if old is None or new is None or _node_of(old) or not _node_of(new) or (key := self._group(new)) is None:
            return
        minimum = _minimum(key, view)
        everybody = self._members(key, view)
        members = [pod for pod in everybody if (pod.get("status") or {}).get("phase") != "Failed"]
        unseen = sum(1 for revision in self._left.get(key, ()) if self._revision - revision <= RECENT)
        unseen += sum(1 for pod in everybody if (pod.get("status") or {}).get("phase") == "Failed" and preempted(pod))
        if minimum and len(members) + unseen < minimum:
            yield f"{_name(new)} was bound while its gang {key[1]} had {len(members)} of {minimum} members"
        if sum(1 for pod in members if _node_of(pod)) >= minimum:
            self._started[key] = None

    def at_rest(self, view: View) -> Iterable[str]:
        """At rest a gang is bound in sufficient number or not at all (members that were lost later apart)."""
        found: dict[tuple[str, str], list[Tree]] = {}
        for pod in view.list(PODS):
            key = self._group(pod)
            if key is not None and (pod.get("status") or {}).get("phase") != "Failed":
                found.setdefault(key, []).append(pod)
        for key, members in found.items():
            bound, minimum = sum(1 for pod in members if _node_of(pod)), _minimum(key, view)
            if self._lossless and key not in self._started and 0 < bound < minimum <= len(members):
                yield f"{bound} members of gang {key[1]} are bound, {minimum} must be"


def _counts(pod: Tree) -> bool:
    """Tell whether a member counts for its gang; who is preempted does until it has gone."""
    return (pod.get("status") or {}).get("phase") != "Failed" or preempted(pod)


def _minimum(key: tuple[str, str], view: View) -> int:
    try:
        group = view.get(POD_GROUPS, *key)
    except KeyError:
        return 0
    gang = (((group or {}).get("spec") or {}).get("schedulingPolicy") or {}).get("gang") or {}
    return int(gang.get("minCount", 0))


class Preemption(_OfPods):
    """6, 7: whoever is preempted by a pod gives way to one of strictly higher priority that may preempt."""

    name = "preemption"

    def __init__(self) -> None:
        self._gone: list[tuple[int, Tree]] = []
        """Pods that went lately, and when: the scheduler may not know yet that nobody needs the room."""
        self._revision = 0

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Note pods that go."""
        self._revision = change.revision
        old = tree_of(change.old) if table == "pods" and change.new is None else None
        if old is not None:
            self._gone = [*(each for each in self._gone if change.revision - each[0] <= RECENT), (change.revision, old)]
        return super().observe(table, change, view)

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Look at a pod that was just chosen as a victim."""
        if old is None or new is None:
            return
        mark, before = condition(new, "DisruptionTarget"), condition(old, "DisruptionTarget")
        if mark is None or before is not None or mark.get("reason") != "PreemptionByScheduler" or driven_out_by_group(old, new):
            return
        node = _node_of(new)
        above = [
            pod
            for pod in view.list(PODS)
            if self._may(pod, new) and not ended(pod) and node in (_node_of(pod), (pod.get("status") or {}).get("nominatedNodeName"))
        ]
        # One that went meanwhile may have gone before it was nominated
        above += [pod for revision, pod in self._gone if self._revision - revision <= RECENT and self._may(pod, new)]
        if not above:
            yield f"{_name(new)} was preempted on {node}, but no pod of higher priority that may preempt is nominated there"

    def _may(self, pod: Tree, victim: Tree) -> bool:
        return priority_of(pod) > priority_of(victim) and pod["spec"].get("preemptionPolicy") != "Never"


class Verdicts(_OfPods):
    """9: PodScheduled is True exactly where there is a node, and the counts of a refusal add up to all nodes at least."""

    name = "scheduling verdicts"

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Look at a pod's condition."""
        if new is None:
            return
        found = condition(new, "PodScheduled")
        if found is None:
            return
        if found["status"] == "True" and not _node_of(new):
            yield f"{_name(new)} is PodScheduled without a node"
        if found["status"] == "False" and _node_of(new) and (old is None or not _node_of(old)):
            yield f"{_name(new)} was bound and is not PodScheduled"
        before = condition(old, "PodScheduled") if old is not None else None
        if found.get("reason") == "Unschedulable" and (before is None or before.get("message") != found.get("message")):
            text = found.get("message", "")
            head, _, rest = text.partition(" nodes are available: ")
            parts = rest.partition(". ")[0].rstrip(".").split(", ")
            if (
                head.startswith("0/")
                and parts[0][:1].isdigit()
                and sum(int(part.split(" ", 1)[0]) for part in parts if part[:1].isdigit()) < int(head[2:])
            ):
                yield f"{_name(new)}: the counts do not cover all nodes: {text}"


class Lives(_OfPods):
    """10, 11: phases go forward, what has ended stays so, restarts are counted up, and Ready is what it says."""

    name = "pod lives"
    _ORDER: Mapping[str, int] = {"": 0, "Pending": 0, "Running": 1, "Succeeded": 2, "Failed": 2}

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Yield violations."""
        if old is None or new is None:
            return
        was, now = (old.get("status") or {}).get("phase", ""), (new.get("status") or {}).get("phase", "")
        if self._ORDER.get(now, 0) < self._ORDER.get(was, 0):
            yield f"{_name(new)} went from {was} back to {now}"
        if was in TERMINAL and now != was:
            yield f"{_name(new)} had ended as {was} and is {now} now"
        before = {each["name"]: each.get("restartCount", 0) for each in (old.get("status") or {}).get("containerStatuses") or ()}
        for each in (new.get("status") or {}).get("containerStatuses") or ():
            if each.get("restartCount", 0) < before.get(each["name"], 0):
                yield f"{_name(new)}: the restart count of {each['name']} went down"

    def at_rest(self, view: View) -> Iterable[str]:
        """At rest no pod is both ready and on its way out, and Ready comes with its parts."""
        for pod in view.list(PODS):
            ready = condition(pod, "Ready")
            if ready is None or ready["status"] != "True":
                continue
            parts = [condition(pod, type_) for type_ in ("Initialized", "ContainersReady")]
            if pod["status"].get("phase") == "Running" and any(each is not None and each["status"] != "True" for each in parts):
                yield f"{_name(pod)} is Ready without its parts"


class Devices:
    """14: a device belongs to one allocation at most, and an allocation to somebody."""

    name = "devices"

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str, str], str] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Follow allocations."""
        if table != "resourceclaims.resource.k8s.io":
            return
        for tree in (tree_of(change.old),):
            for device in _allocated(tree):
                self._owners.pop(device, None)
        new = tree_of(change.new)
        for device in _allocated(new):
            other = self._owners.get(device)
            if other is not None and new is not None and other != new["metadata"]["uid"]:
                yield f"device {'/'.join(device)} is in two allocations"
            if new is not None:
                self._owners[device] = new["metadata"]["uid"]

    def at_rest(self, view: View) -> Iterable[str]:
        """At rest an allocation is reserved for somebody, and the other way round."""
        for claim in view.list(RESOURCE_CLAIMS):
            status = claim.get("status") or {}
            if status.get("reservedFor") and not status.get("allocation"):
                yield f"{_name(claim)} is reserved without an allocation"


def _allocated(claim: Tree | None) -> list[tuple[str, str, str]]:
    results = ((((claim or {}).get("status") or {}).get("allocation") or {}).get("devices") or {}).get("results") or ()
    return [(each["driver"], each["pool"], each["device"]) for each in results if not each.get("adminAccess")]


class ExclusiveDomains(_OfPods):
    """15: a topology domain holds one JobSet job (or LeaderWorkerSet group) of exclusive placement, among pods of equal priority."""

    name = "exclusive domains"
    _KINDS = (
        ("alpha.jobset.sigs.k8s.io/exclusive-topology", "jobset.sigs.k8s.io/job-key"),
        ("leaderworkerset.sigs.k8s.io/exclusive-topology", "leaderworkerset.sigs.k8s.io/group-key"),
    )

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Look at an exclusive pod that was just bound."""
        if new is None or not _node_of(new) or _node_of(old) or ended(new):
            return
        for annotation, label in self._KINDS:
            key = (new["metadata"].get("annotations") or {}).get(annotation)
            mine = (new["metadata"].get("labels") or {}).get(label)
            node = view.get(NODES, "", _node_of(new))
            domain = (node or {"metadata": {}})["metadata"].get("labels", {}).get(key) if key else None
            if mine is None or domain is None:
                continue
            for other in view.list(PODS):
                theirs = (other["metadata"].get("labels") or {}).get(label)
                if theirs in (None, mine) or not _node_of(other) or ended(other) or priority_of(other) != priority_of(new):
                    continue
                if (other["metadata"].get("annotations") or {}).get(annotation) != key:
                    continue
                there = view.get(NODES, "", _node_of(other))
                if (there or {"metadata": {}})["metadata"].get("labels", {}).get(key) == domain:
                    yield f"{_name(new)} and {_name(other)} of different exclusive groups share {key}={domain}"


class Disruptions(_OfPods):
    """13, 19: who is evicted by a taint or preempted is told so before it is deleted, and not before its time."""

    name = "disruptions"

    def changed(self, old: Tree | None, new: Tree | None, view: View) -> Iterator[str]:
        """Look at a pod that was just marked."""
        if old is None or new is None:
            return
        mark = condition(new, "DisruptionTarget")
        if mark is None or condition(old, "DisruptionTarget") is not None:
            return
        if mark.get("reason") in ("PreemptionByScheduler", "DeletionByTaintManager") and "deletionTimestamp" in new["metadata"]:
            yield f"{_name(new)} was deleted before it was told why"
        if mark.get("reason") == "DeletionByTaintManager":
            node = view.get(NODES, "", _node_of(new))
            yield from _too_early(new, node, mark)


def _too_early(pod: Tree, node: Tree | None, mark: Tree) -> Iterator[str]:
    """Yield a violation where every NoExecute taint is tolerated and the tolerated time since the oldest of them is not over."""
    taints = [taint for taint in ((node or {"spec": {}})["spec"].get("taints") or ()) if taint["effect"] == "NoExecute"]
    if not taints:
        return
    stays: list[float] = []
    for taint in taints:
        matching = [each for each in pod["spec"].get("tolerations") or () if tolerates(each, taint)]
        if not matching:
            return
        seconds = [float(each["tolerationSeconds"]) for each in matching if each.get("tolerationSeconds") is not None]
        if seconds and taint.get("timeAdded"):
            stays.append(from_stamp(taint["timeAdded"]) + min(seconds))
    if stays and from_stamp(mark["lastTransitionTime"]) < min(stays) - 1.0:
        yield f"{_name(pod)} was evicted before its toleration ran out"


class Waiting:
    """8: at rest, no pod waits that would fit a node as it is, with all that its selectors and tolerations ask for."""

    name = "nobody waits in vain"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Nothing before rest."""
        return ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Look at pending pods that depend on nodes alone."""
        pending = [pod for pod in view.list(PODS) if _plain(pod) and not ended(pod)]
        if not pending:
            return
        cache = Cache()
        for node in view.list(NODES):
            cache.set_node(node)
        for pod in view.list(PODS):
            kept = _node_of(pod) or (pod.get("status") or {}).get("nominatedNodeName")
            if kept and not ended(pod) and pod not in pending:
                cache.place(pod, kept)
        stated = bool(cache.terms.stated)
        for pod in pending:
            for info in cache.live():
                there = info.node
                if there is None or stated or fits(requests_of(pod["spec"]), info) is not None:
                    continue
                if node_properties(pod["spec"], there) is None:
                    yield f"{_name(pod)} waits, but fits {info.name}"
                    break


def _plain(pod: Tree) -> bool:
    spec = pod["spec"]
    return not (
        spec.get("nodeName")
        or spec.get("schedulingGates")
        or spec.get("schedulingGroup")
        or spec.get("resourceClaims")
        or spec.get("topologySpreadConstraints")
        or ports_of(spec)
        or terms_of(spec)
        or claim_names(pod)
        or "deletionTimestamp" in pod["metadata"]
        or spec.get("schedulerName", "default-scheduler") != "default-scheduler"
    )
