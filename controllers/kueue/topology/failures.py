"""Nodes that fail under placed Workloads: one failed node is replaced in the assignment, a second one (or one without replacement) evicts.

Pods that were sent to a node that has shut, or that is no longer a place of their Workload, are let fail.

Mirrors Kueue's ``pkg/controller/tas/node_controller.go`` and the scheduler's second pass. Keys are Workloads. Works for topologies that end in hosts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubemini.api.kueue.assignments import decode
from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.api.wellknown.kubernetes import HOSTNAME
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.placing import HARD, untolerated
from kubemini.controllers.kueue.topology.placement import Values
from kubemini.controllers.kueue.topology.places import Finder, TopologyPlaces, Unplaceable
from kubemini.controllers.kueue.topology.ranking import gated
from kubemini.controllers.kueue.topology.ungater import workload_of
from kubemini.controllers.kueue.workloads import assignments, pod_sets_of
from kubemini.controllers.kueue.writing import write_status
from kubemini.machinery.errors import Conflict, Invalid, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import controller_of, key_of

SECOND_PASS_SECONDS, SECOND_PASS_LIMIT = 1.0, 30.0
"""A failed node is replaced so long after it was marked; a miss doubles the time to the next try."""
FAILURE_SECONDS = 30.0
"""How long a node has to be not ready before it counts as failed, where pods are not asked."""
BATCH_SECONDS = 0.1
ENDED = "Pod terminated by Kueue NodeController due to node taint"
FOR_GOOD, FOR_A_TIME, UNTOLERATED = "for good", "for a time", "not"
"""How taints are tolerated."""


class NodeFailures(Controller):
    """See the module."""

    name = "kueue-topology-failures"
    component = "kueue-tas-node-controller"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub
        self.config = hub.config

    def setup(self, ctx: Context) -> None:
        """Follow nodes, pods and Workloads."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._due: dict[str, float] = {}
        """When the next second pass of a Workload is due."""
        self._misses: dict[str, int] = {}
        """Workloads that no replacement was found for, and how often."""
        self._nodes = ctx.informer(NODES)
        self._nodes.add_index("host", lambda node: (host_of(node),))
        self._pods = ctx.informer(PODS)
        self._pods.add_index("awaited", awaited_host, marks=(names.WORKLOAD,))
        self._pods.add_index("slice", _slice_of, reads=("annotations",), marks=(names.WORKLOAD_SLICE_NAME,))
        self._pods.add_index("workload", workload_of, reads=("annotations",), marks=(names.WORKLOAD,))
        self.hub.workloads.add_index("host", hosts_of)
        self._nodes.on_change(self._on_node)
        self._pods.on_change(self._on_pod, reads=("annotations", "deletionTimestamp", "spec", "status"), marks=(names.WORKLOAD,))
        self.hub.workloads.on_change(self._on_workload)

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        if old is not None and new is not None and _ready(old) == _ready(new) and old["spec"].get("taints") == new["spec"].get("taints"):
            return
        host = host_of(tree)
        for workload in self.hub.workloads.by_index("host", host):
            self.queue.add(key_of(workload))
        for pod in self._pods.by_index("awaited", host):
            for key in workload_of(pod):
                self.queue.add(key)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        if new is None or "deletionTimestamp" in new["metadata"] or _over(new):
            for key in workload_of(tree):
                # One that gets places later comes by itself
                if (workload := self.hub.workloads.get_key(key)) is not None and hosts_of(workload):
                    self.queue.add(key)
            return
        for host in awaited_host(new):
            node = self._node(host)
            if node is None or not _ready(node) or node["spec"].get("taints") or not self._placed_on(workload_of(new), host):
                for key in workload_of(new):
                    self.queue.add_after(key, BATCH_SECONDS)

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        if new is None and old is not None:
            self._forget(key_of(old))
        elif new is not None and hosts_of(new):
            self.queue.add(key_of(new))

    def _forget(self, key: str) -> None:
        self._due.pop(key, None)
        self._misses.pop(key, None)

    def _node(self, host: str) -> Tree | None:
        node = self._nodes.get(host)
        if node is not None and host_of(node) == host:
            return node
        return next(iter(self._nodes.by_index("host", host)), None)

    def _placed_on(self, keys: Sequence[str], host: str) -> bool:
        return any(key_of(workload) in keys for workload in self.hub.workloads.by_index("host", host))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Mark failed nodes, replace or evict, and end pods that can get to their node no longer."""
        workload = self.hub.workloads.get_key(key)
        if workload is None or conditions.evicted(workload) or conditions.finished(workload):
            self._forget(key)
            return None
        if not self.config.on("TASFailedNodeReplacement"):
            return None
        places = hosts_of(workload)
        again, evicted = None, False
        if places and conditions.admitted(workload) and not _of_one_pod(workload):
            again, evicted = await self._watch_places(key, workload, places)
        if not evicted:
            for pod in self._pods.by_index("workload", key):
                if any(self._closed(workload, host, here=host in places) for host in awaited_host(pod)):
                    await self._end(pod)
        return again

    async def _watch_places(self, key: str, workload: Tree, places: Sequence[str]) -> tuple[float | None, bool]:
        """Mark, replace or evict. Return when to look again, and whether it was evicted."""
        meta = workload["metadata"]
        slice_ = f"{meta['namespace']}/{(meta.get('annotations') or {}).get(names.WORKLOAD_SLICE_NAME, meta['name'])}"
        pods = (*self._pods.by_index("workload", key), *self._pods.by_index("slice", slice_))
        alive = {pod["spec"].get("nodeName"): None for pod in pods if "deletionTimestamp" not in pod["metadata"] and not _over(pod)}
        known = [each["name"] for each in workload["status"].get("unhealthyNodes") or ()]
        failed, soonest = [], None
        for host in places:
            left = self._time_left(workload, host, self._node(host), alive)
            if left is not None and left <= 0:
                failed.append(host)
            elif left is not None:
                soonest = left if soonest is None else min(left, soonest)
        if len(failed) > 1:
            listed = ", ".join([*(host for host in known if host in failed), *sorted(host for host in failed if host not in known)])
            await self._evict(workload, f"Workload eviction triggered due to multiple TAS assigned node failures, including: {listed}")
            return None, True
        if failed != known:
            await self._mark(workload, failed)
            self._due[key] = self._ctx.env.now() + SECOND_PASS_SECONDS
            return (SECOND_PASS_SECONDS if failed else soonest), False
        if failed:
            # A second node may fail right after the first: then the Workload is evicted as a whole
            left = self._due.get(key, 0.0) - self._ctx.env.now()
            return (left if left > 0 else await self._replace(workload, failed[0])), False
        self._forget(key)
        return soonest, False

    def _time_left(self, workload: Tree, host: str, node: Tree | None, alive: Mapping[str | None, None]) -> float | None:
        """Return after how many seconds a node counts as failed for a Workload, 0 for at once; None for not as things are."""
        ready = _ready(node) if node is not None else None
        if node is None or ready is None:
            return 0.0
        after_pods = None if node["metadata"]["name"] in alive else 0.0
        by_pods = self.config.on("TASReplaceNodeOnPodTermination")
        if not ready:
            left = _not_ready_since(node) + FAILURE_SECONDS - self._ctx.env.now()
            if not by_pods:
                return max(left, 0.0)
            return max(left, 0.0) if after_pods is None and self.config.on("TASReplaceNodeDueToNotReadyOverFixedTime") else after_pods
        if not self.config.on("TASReplaceNodeOnNodeTaints"):
            return None
        answer = self._toleration(workload, host, node)
        if answer is UNTOLERATED and not by_pods:
            return 0.0
        return None if answer is FOR_GOOD else after_pods

    def _closed(self, workload: Tree, host: str, *, here: bool) -> bool:
        """Tell whether a pod that waits for a host will not get there: the node is shut, or no place of the Workload (`here`)."""
        node = self._node(host)
        if node is None or _ready(node) is None:
            return False
        if not here:
            return True
        if not _ready(node):
            return self.config.on("TASReplaceNodeOnPodTermination")
        if not self.config.on("TASReplaceNodeOnNodeTaints"):
            return False
        answer = self._toleration(workload, host, node)
        return answer is FOR_A_TIME or (answer is UNTOLERATED and self.config.on("TASReplaceNodeOnPodTermination"))

    def _toleration(self, workload: Tree, host: str, node: Tree) -> str:
        """Return how the pod sets with places on a host bear the taints of its node."""
        taints = [taint for taint in node["spec"].get("taints") or () if taint["effect"] in HARD]
        if not taints:
            return FOR_GOOD
        pod_sets = {each["name"]: each for each in pod_sets_of(workload)}
        answer = FOR_GOOD
        for assignment in assignments(workload):
            if host not in _hosts(assignment):
                continue
            tolerations = list(pod_sets[assignment["name"]]["template"]["spec"].get("tolerations") or ())
            for flavor in (assignment.get("flavors") or {}).values():
                tree = self.hub.cache.flavors.get(flavor)
                tolerations += (tree["spec"].get("tolerations") or []) if tree is not None else []
            for check in workload["status"].get("admissionChecks") or ():
                for update in check.get("podSetUpdates") or ():
                    tolerations += (update.get("tolerations") or []) if update["name"] == assignment["name"] else []
            if untolerated(taints, tolerations) is not None:
                return UNTOLERATED
            if untolerated(taints, [each for each in tolerations if each.get("tolerationSeconds") is None]) is not None:
                answer = FOR_A_TIME
        return answer

    async def _end(self, pod: Tree) -> None:
        """Let a pod fail that waits for a node in vain."""
        meta = pod["metadata"]
        condition: Tree = {
            "type": "TerminatedByKueue",
            "status": "True",
            "reason": "UnschedulableOnAssignedNode",
            "message": ENDED,
            "lastProbeTime": None,
            "lastTransitionTime": self._ctx.env.stamp(),
        }
        body = {"metadata": {"uid": meta["uid"]}, "status": {"phase": "Failed", "conditions": [condition]}}
        try:
            await self._ctx.client.patch(PODS, meta["name"], body, namespace=meta["namespace"], type="strategic", subresource="status")
        except (NotFound, Conflict, Invalid):
            return
        self._ctx.recorder.event(pod, "Normal", "PodTerminatedByKueue", ENDED)

    async def _mark(self, workload: Tree, failed: Sequence[str]) -> None:
        def change(draft: Draft) -> bool:
            if not conditions.admitted(draft.obj):
                return False
            draft.set("unhealthyNodes", [{"name": name} for name in failed] or None)
            return True

        await write_status(self._ctx, workload, change)

    async def _evict(self, workload: Tree, message: str) -> None:
        told = False

        def change(draft: Draft) -> bool:
            nonlocal told
            if conditions.evicted(draft.obj) or not conditions.reserved(draft.obj):
                return False
            told = reservation.evict(draft, names.EVICTED_BY_NODE_FAILURES, message, "", self._ctx.env.stamp())
            return True

        stored = await write_status(self._ctx, workload, change)
        if stored is not None and told:
            self._ctx.recorder.event(stored, "Normal", reservation.eviction_event(names.EVICTED_BY_NODE_FAILURES), message)

    # ------------------------------------------------------------------ replacing

    async def _replace(self, workload: Tree, host: str) -> float | None:
        """Give the pods of a failed node other places."""
        condition = conditions.find(workload, names.ADMITTED)
        if condition is None:
            return None
        try:
            admission = self._replaced(workload, host)
        except Unplaceable as problem:
            if self.config.on("TASFailedNodeReplacementFailFast"):
                await self._evict(workload, f"Workload was evicted as there was no replacement for unhealthy node(s): {host}")
                return None
            self._ctx.recorder.event(workload, "Warning", "SecondPassFailed", str(problem))
            key = key_of(workload)
            misses = self._misses[key] = self._misses.get(key, 0) + 1
            pause = min(SECOND_PASS_SECONDS * 2.0**misses, SECOND_PASS_LIMIT)
            self._due[key] = self._ctx.env.now() + pause
            return pause

        def change(draft: Draft) -> bool:
            # Nobody may have changed the admission meanwhile: a stale second pass must not put old places back
            if draft.get("admission") != workload["status"]["admission"] or not conditions.admitted(draft.obj) or conditions.evicted(draft.obj):
                return False
            draft.set("admission", admission)
            draft.set("unhealthyNodes", None)
            return True

        await write_status(self._ctx, workload, change)
        return None

    def _replaced(self, workload: Tree, host: str) -> Tree:
        """Return the admission with a host's pods elsewhere. Raise `Unplaceable`."""
        places = self.hub.places
        if not isinstance(places, TopologyPlaces):
            raise Unplaceable("workload requires Topology, but there is no TAS cache information")
        places.refresh()
        pod_sets = {each["name"]: each for each in pod_sets_of(workload)}
        assigned = []
        for each in assignments(workload):
            placed = each.get("topologyAssignment")
            flavor = next(iter((each.get("flavors") or {}).values()), "")
            tree = places.trees.get(flavor)
            lost = [domain for domain in decode(placed) if domain.values[-1] == host] if placed is not None else []
            if placed is None or not lost or tree is None:
                assigned.append(each)
                continue
            kept = [domain for domain in decode(placed) if domain.values[-1] != host]
            leaves = [tree.leaf_of(domain.values) for domain in kept]
            for domain, leaf in zip(kept, leaves, strict=True):
                if leaf is None:
                    stale = domain.values[-1]
                    raise Unplaceable(
                        f"Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale domain {stale}"
                    )
            missing = sum(domain.pods for domain in lost)
            rest = [(leaf.values, domain.pods) for domain, leaf in zip(kept, leaves, strict=True) if leaf is not None]
            request, only = wish(pod_sets[each["name"]].get("topologyRequest") or {}, tree.levels, rest, missing)
            finder = Finder(tree, self.hub.cache.flavors[flavor], profile=self.config.on("TASProfileMixed"), only=only)
            found = finder.find({**pod_sets[each["name"]], "topologyRequest": request}, missing)
            merged: dict[Values, int] = {leaf.values: domain.pods for domain, leaf in zip(kept, leaves, strict=True) if leaf is not None}
            for values, count in found.pods.items():
                merged[values] = merged.get(values, 0) + count
            assigned.append({**each, "topologyAssignment": places.encoded(tree, merged)})
        return {**workload["status"]["admission"], "podSetAssignments": assigned}


def wish(request: Tree, levels: Sequence[str], rest: Sequence[tuple[Values, int]], missing: int) -> tuple[Tree, Values | None]:
    """Return what is asked for pods that lost their places, and the domain where they have to go (None = anywhere); `rest` has the places that are left.

    A broken slice is mended where the rest of it is, in the finest slices that the missing pods make up; else a required level keeps them with the rest.
    """
    layers = [(each["topology"], each["size"]) for each in request.get("podsetSliceRequiredTopologyConstraints") or ()]
    if not layers and request.get("podSetSliceRequiredTopology"):
        layers = [(request["podSetSliceRequiredTopology"], request.get("podSetSliceSize") or 1)]
    level = request.get("required") or request.get("preferred")
    if not rest or (level and level not in levels):
        return request, None
    broken = [layer for layer in layers if missing % layer[1]]
    if broken and missing % layers[0][1]:
        topology, size = broken[-1]
        only = _incomplete(levels.index(topology) + 1, size, rest, missing) if topology in levels else None
        if only is None:
            return request, None
        whole = [layer for layer in layers if not missing % layer[1]]
        mended = {key: value for key, value in request.items() if "lice" not in key}
        if whole:
            mended["podSetSliceRequiredTopology"], mended["podSetSliceSize"] = whole[-1]
        elif not level:
            mended["unconstrained"] = True
        return mended, only
    return request, rest[0][0][: levels.index(request["required"]) + 1] if request.get("required") else None


def _incomplete(depth: int, size: int, rest: Sequence[tuple[Values, int]], missing: int) -> Values | None:
    """Return the domain, of so many values, whose slices the missing pods would make whole."""
    sums: dict[Values, int] = {}
    for path, pods in rest:
        sums[path[:depth]] = sums.get(path[:depth], 0) + pods
    return next((path for path, pods in sums.items() if not (pods + missing) % size), None)


def hosts_of(workload: Tree) -> list[str]:
    """Return the hosts in a Workload's places, in order; nothing for topologies that do not end in hosts."""
    return list(dict.fromkeys(host for each in assignments(workload) for host in _hosts(each)))


def _hosts(assignment: Tree) -> list[str]:
    """Return the hosts in a pod set's places."""
    placed = assignment.get("topologyAssignment")
    return [domain.values[-1] for domain in decode(placed)] if placed is not None and placed["levels"][-1] == HOSTNAME else []


def host_of(node: Tree) -> str:
    """Return the host that a node is in topologies."""
    found: str = (node["metadata"].get("labels") or {}).get(HOSTNAME, node["metadata"]["name"])
    return found


def awaited_host(pod: Tree) -> tuple[str, ...]:
    """Return the host that a pod was sent to and has not reached, as index values."""
    spec = pod["spec"]
    if spec.get("nodeName") or (pod.get("status") or {}).get("phase", "Pending") != "Pending" or gated(pod):
        return ()
    host = (spec.get("nodeSelector") or {}).get(HOSTNAME)
    return (host,) if host and workload_of(pod) else ()


def _slice_of(pod: Tree) -> tuple[str, ...]:
    name = (pod["metadata"].get("annotations") or {}).get(names.WORKLOAD_SLICE_NAME)
    return (f"{pod['metadata']['namespace']}/{name}",) if name else ()


def _over(pod: Tree) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _of_one_pod(workload: Tree) -> bool:
    """Tell whether a Workload is that of a single pod: it goes with its pod, nothing can be moved."""
    owner = controller_of(workload)
    return owner is not None and owner["kind"] == "Pod"


def _not_ready_since(node: Tree) -> float:
    condition = next(each for each in node["status"]["conditions"] if each["type"] == "Ready")
    return from_stamp(condition["lastTransitionTime"])


def _ready(node: Tree) -> bool | None:
    """Tell whether a node is ready; None where it does not say."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return bool(condition["status"] == "True")
    return None
