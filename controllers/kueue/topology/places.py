"""Topology-aware scheduling in a cycle: which flavors do, where pods go, and what that uses. Implements the cycle's `Places`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from sys import intern

from kubemini.api.kueue.assignments import Domain as Assigned
from kubemini.api.kueue.assignments import decode, encode
from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown.kubernetes import HOSTNAME
from kubemini.controllers.kueue.cache import MULTI_KUEUE, PROVISIONING, QueueState
from kubemini.controllers.kueue.cycle import Entry
from kubemini.controllers.kueue.flavors import Assignment, Choice, Mode, PodSetAssignment
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.placing import node_matches, untolerated
from kubemini.controllers.kueue.requests import PodSetRequest, pod_requests
from kubemini.controllers.kueue.reservation import PENDING, READY
from kubemini.controllers.kueue.topology.placement import Domain, Found, NoRoom, Search, Values, search
from kubemini.controllers.kueue.topology.requests import ASKING, annotations_of, asks
from kubemini.controllers.kueue.topology.snapshot import FlavorTree, Leaf
from kubemini.controllers.kueue.workloads import Info, assignments, pod_sets_of
from kubemini.machinery.memo import by_identity
from kubemini.runtime.controller import Context
from kubemini.runtime.keys import key_of

Amounts = Mapping[str, int]
_TERMINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Use:
    """So many pods of some size in one leaf of one flavor."""

    flavor: str
    values: Values
    pods: int
    single: Amounts


def single_of(spec: Tree) -> Amounts:
    """Return what one pod takes of a node, itself included; the same object for pods of one template."""
    return _with_itself(pod_requests(spec))


@by_identity()
def _with_itself(requests: dict[str, int]) -> Amounts:
    return {**requests, "pods": 1}


def uses_of(workload: Tree) -> list[Use]:
    """Return what the places in a Workload's admission use."""
    specs = {each["name"]: each["template"]["spec"] for each in pod_sets_of(workload)}
    found = []
    for each in assignments(workload):
        placed = each.get("topologyAssignment")
        flavor = next(iter((each.get("flavors") or {}).values()), "")
        if placed is not None and flavor:
            single = single_of(specs[each["name"]])
            found += [Use(flavor, domain.values, domain.pods, single) for domain in decode(placed)]
    return found


class TopologyPlaces:
    """The places of all flavors with a topology, kept in step with nodes, pods and Workloads."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.cache = hub.cache
        self.trees: dict[str, FlavorTree] = {}
        self.stale = True
        self.supposed: list[Use] = []
        self.others: dict[str, dict[str, int]] = {}
        """Node → what pods that are not placed by topology use."""
        self._pods: dict[str, tuple[str, Amounts]] = {}
        self._held: dict[str, list[Use]] = {}
        hub.cache.observers.append(self._on_held)

    def attach(self, ctx: Context) -> None:
        """Follow nodes and pods."""
        self.nodes = ctx.informer(NODES)
        self.nodes.on_change(self._on_node)
        ctx.informer(PODS).on_change(self._on_pod, reads=("spec", "status", "annotations"))

    # ------------------------------------------------------------------ events

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if old is not None and new is not None and _facts(old) == _facts(new):
            return
        self.stale = True
        if self.cache.topologies:
            self.hub.wake(queue for queue, state in self.cache.queues.items() if any(self._topology(flavor) for flavor in state.flavors()))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None or (old is not None and new is not None and old["spec"] is new["spec"] and _counts_alike(old, new)):
            return
        key = key_of(tree)
        before = self._pods.pop(key, None)
        if before is not None:
            self._count(before[0], before[1], -1)
        if new is not None and _counts(new):
            single = single_of(new["spec"])
            self._pods[intern(key)] = (new["spec"]["nodeName"], single)
            self._count(new["spec"]["nodeName"], single, 1)
        elif before is not None and self.cache.topologies:
            self.hub.wake(queue for queue, state in self.cache.queues.items() if any(self._topology(flavor) for flavor in state.flavors()))

    def _count(self, node: str, single: Amounts, sign: int) -> None:
        used = self.others.setdefault(node, {})
        for resource, value in single.items():
            used[resource] = used.get(resource, 0) + sign * value
        for tree in self.trees.values():
            leaf = tree.by_node.get(node)
            if leaf is not None:
                for resource, value in single.items():
                    leaf.others[resource] = leaf.others.get(resource, 0) + sign * value

    def _on_held(self, info: Info, sign: int) -> None:
        if sign < 0:
            self._use(self._held.pop(info.key, []), -1)
            return
        uses = info.places if info.places is not None else uses_of(info.tree)
        if uses:
            self._held[info.key] = uses
            self._use(uses, 1)

    def _use(self, uses: Iterable[Use], sign: int) -> None:
        for use in uses:
            for leaf in self._leaves(use):
                for resource, value in use.single.items():
                    leaf.placed[resource] = leaf.placed.get(resource, 0) + sign * value * use.pods

    def _leaves(self, use: Use) -> list[Leaf]:
        """Return the leaf that is used, in the tree of its flavor; hosts also in those of other flavors with the same nodes."""
        tree = self.trees.get(use.flavor)
        leaf = tree.leaf_of(use.values) if tree is not None else None
        if tree is None or leaf is None:
            return []
        if not tree.hosts:
            return [leaf]
        found = [leaf]
        for name, other in self.trees.items():
            if name != use.flavor and other.hosts:
                same = other.leaf_of((use.values[-1],))
                if same is not None:
                    found.append(same)
        return found

    # ------------------------------------------------------------------ trees

    def _topology(self, flavor: str) -> Tree | None:
        tree = self.cache.flavors.get(flavor)
        name = (tree["spec"].get("topologyName") or "") if tree is not None else ""
        return self.cache.topologies.get(name) if name else None

    def _named(self, flavor: str) -> str:
        tree = self.cache.flavors.get(flavor)
        return (tree["spec"].get("topologyName") or "") if tree is not None else ""

    def refresh(self) -> None:
        """Build the trees anew where nodes, flavors or topologies have changed."""
        version = self.cache.version
        if not self.stale and self._version == version:
            return
        self.stale, self._version = False, version
        self.trees = {}
        ready = [node for node in self.nodes.list() if _usable(node)]
        for name, flavor in self.cache.flavors.items():
            topology = self._topology(name)
            if topology is None:
                continue
            levels = [level["nodeLabel"] for level in topology["spec"]["levels"]]
            wanted: Mapping[str, str] = flavor["spec"].get("nodeLabels") or {}
            mine = [node for node in ready if _labelled(node, wanted, levels)]
            tree = self.trees[name] = FlavorTree(topology["metadata"]["name"], levels, mine)
            for node, used in self.others.items():
                leaf = tree.by_node.get(node)
                if leaf is not None:
                    for resource, value in used.items():
                        leaf.others[resource] = leaf.others.get(resource, 0) + value
        for uses in self._held.values():
            self._use(uses, 1)
        self._use(self.supposed, 1)

    _version = -1

    # ------------------------------------------------------------------ Places

    def begin(self) -> None:
        """Forget what the last cycle supposed."""
        self._use(self.supposed, -1)
        self.supposed = []
        self.refresh()

    def requested(self, queue: QueueState, pod_set: Tree) -> bool:
        """Tell whether a pod set is placed by topology: it asks, or its ClusterQueue has no other flavors."""
        return asks(pod_set.get("topologyRequest")) or self._implied(queue)

    def _implied(self, queue: QueueState) -> bool:
        flavors = list(queue.flavors())
        return bool(flavors) and all(self._named(flavor) for flavor in flavors)

    def mismatch(self, queue: QueueState, pod_set: Tree, flavor: str) -> str:
        """Return why a flavor does not do for a pod set's topology request, or ""."""
        explicit = asks(pod_set.get("topologyRequest"))
        named = self._named(flavor)
        if named and not (explicit or self._implied(queue)):
            return f'Flavor "{flavor}" supports only TopologyAwareScheduling'
        if not named:
            return f'Flavor "{flavor}" does not support TopologyAwareScheduling' if explicit else ""
        tree = self.trees.get(flavor)
        if tree is None:
            return f'Flavor "{flavor}" information missing in TAS cache'
        for level in self._levels(pod_set.get("topologyRequest") or {}):
            if level not in tree.levels:
                return f'Flavor "{flavor}" does not contain the requested level'
        return ""

    @staticmethod
    def _levels(request: Tree) -> list[str]:
        found = [request[key] for key in ("required", "preferred", "podSetSliceRequiredTopology") if request.get(key)]
        found += [each["topology"] for each in request.get("podsetSliceRequiredTopologyConstraints") or ()]
        if request.get("unconstrained") is False and not found:
            found.append("")
        return found

    def place(self, entry: Entry, assignment: Assignment, gone: Mapping[str, Info], *, empty: bool = False) -> str:
        """Place what is to be placed. Return why it cannot be, or ""."""
        self.refresh()
        return self._place(entry, assignment, gone, empty=empty)

    def suppose(self, assignment: Assignment) -> None:
        """Count an assignment's places until the next cycle."""
        for member in assignment.pod_sets:
            if member.places:
                self._use(member.places, 1)
                self.supposed += member.places

    def _place(self, entry: Entry, assignment: Assignment, gone: Mapping[str, Info], *, empty: bool) -> str:
        pod_sets = {each["name"]: each for each in entry.info.pod_sets}
        lifted = [use for key in gone for use in self._held.get(key, ())]
        self._use(lifted, -1)
        assumed: list[Use] = []
        try:
            for members in _groups(assignment.pod_sets, pod_sets):
                if not any(self.requested(entry.queue, pod_sets[member.name]) for member in members):
                    continue
                if self._delay(entry.queue, members):
                    continue
                problem = self._place_group(members, pod_sets, assumed, empty)
                if problem:
                    return problem
            return ""
        finally:
            self._use(assumed, -1)
            self._use(lifted, 1)

    def _delay(self, queue: QueueState, members: Sequence[PodSetAssignment]) -> bool:
        """Put placement off where an admission check brings the nodes: one of MultiKueue, or one of ProvisioningRequests that is for the flavor."""
        flavors = [choice.flavor for member in members for choice in member.flavors.values() if self._named(choice.flavor)]
        for check, on in queue.checks:
            tree = self.cache.checks.get(check)
            controller = tree["spec"].get("controllerName", "") if tree is not None else ""
            if controller == MULTI_KUEUE or (controller == PROVISIONING and flavors and (not on or any(flavor in on for flavor in flavors))):
                for member in members:
                    member.delayed = PENDING if member.request.count > 0 else ""
                return True
        return False

    def place_delayed(self, workload: Tree) -> Tree:
        """Return the admission of a Workload with places for the pod sets whose placement was put off. Raise `Unplaceable`."""
        self.refresh()
        pod_sets = {each["name"]: updated(workload, each) for each in pod_sets_of(workload)}
        members = [
            PodSetAssignment(
                each["name"],
                PodSetRequest(each["name"], each.get("count", 0), {}, {}),
                {resource: Choice(flavor, Mode.FIT, 0, -1) for resource, flavor in (each.get("flavors") or {}).items()},
            )
            for each in assignments(workload)
            if each.get("delayedTopologyRequest") == PENDING and each.get("topologyAssignment") is None
        ]
        assumed: list[Use] = []
        try:
            for group in _groups(members, pod_sets):
                problem = self._place_group(group, pod_sets, assumed, empty=False)
                if problem:
                    listed = "; ".join(f"couldn't assign flavors to pod set {member.name}: {problem}" for member in group)
                    raise Unplaceable(listed)
        finally:
            self._use(assumed, -1)
        placed = {member.name: member.topology for member in members if member.topology is not None}
        assigned = [
            {**each, "topologyAssignment": placed[each["name"]], "delayedTopologyRequest": READY} if each["name"] in placed else each
            for each in assignments(workload)
        ]
        return {**workload["status"]["admission"], "podSetAssignments": assigned}

    def _place_group(self, members: Sequence[PodSetAssignment], pod_sets: Mapping[str, Tree], assumed: list[Use], empty: bool) -> str:
        members = [member for member in members if member.request.count > 0]
        if not members:
            return ""
        flavors = list(dict.fromkeys(choice.flavor for member in members for choice in member.flavors.values() if self._named(choice.flavor)))
        if not flavors:
            return "no TAS flavor assigned"
        if len(flavors) > 1:
            return f"more than one TAS flavor assigned: {', '.join(flavors)}"
        flavor = flavors[0]
        tree = self.trees.get(flavor)
        if tree is None:
            return "workload requires Topology, but there is no TAS cache information"
        leader = min(members, key=lambda member: member.request.count) if len(members) == 2 else None
        worker = next(member for member in members if member is not leader)
        finder = Finder(tree, self.cache.flavors[flavor], empty=empty, profile=self.cache.config.on("TASProfileMixed"))
        leader_spec = pod_sets[leader.name]["template"]["spec"] if leader is not None else None
        try:
            found = finder.find(pod_sets[worker.name], worker.request.count, leader_spec)
        except Unplaceable as problem:
            return str(problem)
        for member, pods in ((worker, found.pods), (leader, {found.leader: 1} if found.leader is not None else {})):
            if member is None:
                continue
            single = single_of(pod_sets[member.name]["template"]["spec"])
            member.places = [Use(flavor, values, count, single) for values, count in pods.items()]
            member.topology = self.encoded(tree, pods)
            self._use(member.places, 1)
            assumed += member.places
        return ""

    def encoded(self, tree: FlavorTree, pods: Mapping[Values, int]) -> Tree:
        """Return the ``topologyAssignment`` of places."""
        by_prefix = self.cache.config.on("TASAssignmentsEncodingByHostnamePrefix")
        ordered = sorted(pods.items())
        if tree.hosts:
            return encode([HOSTNAME], [Assigned((values[-1],), count) for values, count in ordered], by_hostname_prefix=by_prefix)
        return encode(tree.levels, [Assigned(values, count) for values, count in ordered], by_hostname_prefix=by_prefix)


class Unplaceable(Exception):
    """A pod set cannot be placed; the text says why."""


class Finder:
    """Searches one flavor's tree for one pod set."""

    def __init__(self, tree: FlavorTree, flavor: Tree, *, empty: bool = False, profile: bool = True, only: Values | None = None) -> None:
        self.tree = tree
        self.flavor = flavor
        self.empty = empty
        self.profile = profile
        self.only = only
        """Values that a leaf's path must begin with."""
        self.excluded: dict[str, int] = {}
        self.seen = 0

    def find(self, pod_set: Tree, count: int, leader: Tree | None = None) -> Found:
        """Return the places. Raise `Unplaceable`."""
        request = pod_set.get("topologyRequest") or {}
        wanted = self._search(request, count, leader is not None)
        if not self.tree.leaves:
            raise Unplaceable(f"no topology domains at level: {self.tree.levels[wanted.level]}")
        spec = pod_set["template"]["spec"]
        single = single_of(spec)
        beside = single_of(leader) if leader is not None else {}

        def leaf(domain: Domain) -> tuple[int, bool, int]:
            return self._leaf(self.tree.leaves[domain.values], spec, single, beside, leader is not None)

        try:
            return search(self.tree.root, wanted, leaf)
        except NoRoom as problem:
            raise Unplaceable(self._message(problem.fits, wanted)) from None

    def _search(self, request: Tree, count: int, leader: bool) -> Search:
        levels = self.tree.levels
        lowest = len(levels) - 1
        layers = request.get("podsetSliceRequiredTopologyConstraints") or []
        slice_topology = request.get("podSetSliceRequiredTopology") or (layers[0]["topology"] if layers else None)
        size = request.get("podSetSliceSize") or (layers[0]["size"] if layers else 1)
        unconstrained = False
        if request.get("required") or request.get("preferred"):
            level = self._index(request.get("required") or request["preferred"], "no requested topology level: ")
        elif slice_topology and request.get("unconstrained") is None:
            level, unconstrained = 0, True
        else:
            level, unconstrained = lowest, True
        slice_level = self._index(slice_topology, "no requested topology level for slices: ") if slice_topology else lowest
        if slice_topology and level > slice_level:
            raise Unplaceable(f"podset slice topology {slice_topology} is above the podset topology {levels[level]}")
        inner: dict[int, int] = {}
        above, outer = slice_level, size
        for layer in layers[1:]:
            index = self._index(layer["topology"], "no requested topology level for slices: ")
            if index <= above:
                raise Unplaceable(f"additional slice layer topology {layer['topology']} must be at a lower level than {levels[above]}")
            if outer % layer["size"]:
                raise Unplaceable(f"additional slice layer size {layer['size']} must evenly divide parent layer size {outer}")
            inner[index] = layer["size"]
            above, outer = index, layer["size"]
        least_free = self.profile and unconstrained
        return Search(count, level, slice_level, size, bool(request.get("required")), unconstrained, leader, least_free, inner)

    def _index(self, level: str, complaint: str) -> int:
        if level not in self.tree.levels:
            raise Unplaceable(f"{complaint}{level}")
        return self.tree.levels.index(level)

    def _leaf(self, leaf: Leaf, spec: Tree, single: Amounts, beside: Amounts, leader: bool) -> tuple[int, bool, int]:
        self.seen += 1
        why = self._unfit(leaf, spec)
        if why:
            self.excluded[why] = self.excluded.get(why, 0) + 1
            return 0, False, 0
        pods, short = self._fit(leaf, single, {})
        if not pods and short:
            why = f'resource "{short}"'
            self.excluded[why] = self.excluded.get(why, 0) + 1
        if not leader:
            return pods, False, pods
        hosts = self._fit(leaf, beside, {})[0] > 0
        return pods, hosts, self._fit(leaf, single, beside)[0] if hosts else pods

    def _fit(self, leaf: Leaf, single: Amounts, taken: Amounts) -> tuple[int, str]:
        best, short = None, ""
        for resource, value in single.items():
            if value <= 0:
                continue
            free = leaf.capacity.get(resource, 0) - leaf.others.get(resource, 0) if self.empty else leaf.free(resource)
            number = max(0, free - taken.get(resource, 0)) // value
            if best is None or number < best:
                best, short = number, resource
        return best or 0, short

    def _unfit(self, leaf: Leaf, spec: Tree) -> str:
        if self.only is not None and leaf.values[: len(self.only)] != self.only:
            return "topologyDomain"
        if not self.tree.hosts:
            return ""
        node = leaf.nodes[0]
        taint = untolerated(node["spec"].get("taints"), [*(spec.get("tolerations") or ()), *(self.flavor["spec"].get("tolerations") or ())])
        if taint is not None:
            value = f"={taint['value']}" if taint.get("value") else ""
            return f'taint "{taint["key"]}{value}:{taint["effect"]}"'
        labels = node["metadata"].get("labels") or {}
        if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
            return "nodeSelector"
        if not node_matches(spec, node):
            return "affinity"
        return ""

    def _message(self, fits: int, wanted: Search) -> str:
        unit = "slice(s)" if wanted.slice_size > 1 else "pod(s)"
        name = self.tree.topology
        if fits:
            text = f'topology "{name}" allows to fit only {fits} out of {wanted.needed} {unit}'
        else:
            text = f'topology "{name}" doesn\'t allow to fit any of {wanted.needed} {unit}'
        if self.excluded:
            listed = ", ".join(sorted(f"{why}: {number}" for why, number in self.excluded.items()))
            text += f". Total nodes: {self.seen}; excluded: {listed}"
        return text


def updated(workload: Tree, pod_set: Tree) -> Tree:
    """Return a pod set with the node selectors and tolerations that its checks give its pods."""
    spec = pod_set["template"]["spec"]
    selector, tolerations = dict(spec.get("nodeSelector") or {}), list(spec.get("tolerations") or ())
    for check in workload["status"].get("admissionChecks") or ():
        for update in (check.get("podSetUpdates") or ()) if check["state"] == READY else ():
            if update["name"] == pod_set["name"]:
                selector |= update.get("nodeSelector") or {}
                tolerations += update.get("tolerations") or []
    return {**pod_set, "template": {**pod_set["template"], "spec": {**spec, "nodeSelector": selector, "tolerations": tolerations}}}


def _groups(members: Sequence[PodSetAssignment], pod_sets: Mapping[str, Tree]) -> list[list[PodSetAssignment]]:
    found: dict[str, list[PodSetAssignment]] = {}
    for member in members:
        group = (pod_sets[member.name].get("topologyRequest") or {}).get("podSetGroupName")
        found.setdefault(f"g/{group}" if group else f"p/{member.name}", []).append(member)
    return list(found.values())


def _counts(pod: Tree) -> bool:
    """Tell whether a pod uses a node without having been placed by topology."""
    if not pod["spec"].get("nodeName") or _ended(pod):
        return False
    annotations = annotations_of(pod)
    return not annotations or annotations.keys().isdisjoint(ASKING)


def _counts_alike(old: Tree, new: Tree) -> bool:
    """Tell whether a pod with an unchanged spec counts as it did before: nearly every change of a status leaves that as it is."""
    same = old["metadata"].get("annotations") is new["metadata"].get("annotations") and _ended(old) == _ended(new)
    return same or _counts(old) == _counts(new)


def _ended(pod: Tree) -> bool:
    return (pod.get("status") or {}).get("phase") in _TERMINAL


def _usable(node: Tree) -> bool:
    if node["spec"].get("unschedulable") or "deletionTimestamp" in node["metadata"]:
        return False
    return any(each["type"] == "Ready" and each["status"] == "True" for each in (node.get("status") or {}).get("conditions") or ())


def _labelled(node: Tree, wanted: Mapping[str, str], levels: Sequence[str]) -> bool:
    labels = node["metadata"].get("labels") or {}
    return all(labels.get(key) == value for key, value in wanted.items()) and all(level in labels for level in levels)


def _facts(node: Tree) -> tuple[object, ...]:
    status = node.get("status") or {}
    return (
        node["metadata"].get("labels"),
        node["spec"].get("unschedulable"),
        node["spec"].get("taints"),
        status.get("allocatable"),
        _usable(node),
    )
