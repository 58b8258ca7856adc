"""Nodes that fail under placed Workloads: one failed node is replaced in the assignment, a second one (or one without replacement) evicts.

Mirrors Kueue's ``pkg/controller/tas/node_controller.go`` and the scheduler's second pass. Keys are Workloads. Works for topologies that end in hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.kueue.assignments import Domain, decode
from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.api.wellknown.kubernetes import HOSTNAME
from kubemini.controllers.kueue import conditions, reservation
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.placing import untolerated
from kubemini.controllers.kueue.topology.placement import Values
from kubemini.controllers.kueue.topology.places import Finder, TopologyPlaces, Unplaceable
from kubemini.controllers.kueue.topology.ungater import workload_of
from kubemini.controllers.kueue.workloads import assignments, pod_sets_of
from kubemini.controllers.kueue.writing import write_status
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, key_of

SECOND_PASS_SECONDS = 1.0


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
        self._marked: dict[str, float] = {}
        self._nodes = ctx.informer(NODES)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("workload", workload_of, reads=("annotations",), marks=(names.WORKLOAD,))
        self.hub.workloads.add_index("host", hosts_of)
        self._nodes.on_change(self._on_node)
        self._pods.on_change(self._on_pod, reads=("annotations", "deletionTimestamp", "status"), marks=(names.WORKLOAD,))
        self.hub.workloads.on_change(self._on_workload)

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        if old is not None and new is not None and _ready(old) == _ready(new) and old["spec"].get("taints") == new["spec"].get("taints"):
            return
        host = (tree["metadata"].get("labels") or {}).get(HOSTNAME, tree["metadata"]["name"])
        for workload in self.hub.workloads.by_index("host", host):
            self.queue.add(key_of(workload))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is not None and (
            new is None or "deletionTimestamp" in new["metadata"] or (new.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        ):
            for key in workload_of(tree):
                # One that gets places later comes by itself
                if (workload := self.hub.workloads.get_key(key)) is not None and hosts_of(workload):
                    self.queue.add(key)

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and hosts_of(new):
            self.queue.add(key_of(new))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Mark failed nodes, and replace or evict."""
        workload = self.hub.workloads.get_key(key)
        if workload is None or not conditions.admitted(workload) or conditions.evicted(workload) or conditions.finished(workload):
            return None
        owner = controller_of(workload)
        if owner is not None and owner["kind"] == "Pod":
            return None
        hosts = hosts_of(workload)
        if not hosts:
            return None
        nodes = {(node["metadata"].get("labels") or {}).get(HOSTNAME, node["metadata"]["name"]): node for node in self._nodes.list()}
        known = [each["name"] for each in workload["status"].get("unhealthyNodes") or ()]
        failed = [host for host in hosts if self._failed(workload, host, nodes.get(host), known)]
        if len(failed) > 1:
            listed = ", ".join(sorted(failed))
            await self._evict(workload, f"Workload eviction triggered due to multiple TAS assigned node failures, including: {listed}")
            return None
        if failed != known:
            await self._mark(workload, failed)
            self._marked[key] = self._ctx.env.now()
            return SECOND_PASS_SECONDS if failed else None
        if failed:
            # A second node may fail right after the first: then the Workload is evicted as a whole
            left = self._marked.get(key, 0.0) + SECOND_PASS_SECONDS - self._ctx.env.now()
            return left if left > 0 else await self._replace(workload, failed[0])
        self._marked.pop(key, None)
        return None

    def _failed(self, workload: Tree, host: str, node: Tree | None, known: Sequence[str]) -> bool:
        if node is None or _ready(node) is None:
            return True
        alive = any(
            pod["spec"].get("nodeName") == node["metadata"]["name"]
            and "deletionTimestamp" not in pod["metadata"]
            and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
            for pod in self._pods.by_index("workload", key_of(workload))
        )
        if not _ready(node):
            return not alive
        if not self.config.on("TASReplaceNodeOnNodeTaints") or not node["spec"].get("taints"):
            return False
        tolerations = [each for pod_set in pod_sets_of(workload) for each in pod_set["template"]["spec"].get("tolerations") or ()]
        for assignment in assignments(workload):
            for flavor in (assignment.get("flavors") or {}).values():
                tree = self.hub.cache.flavors.get(flavor)
                tolerations += (tree["spec"].get("tolerations") or []) if tree is not None else []
        return untolerated(node["spec"]["taints"], tolerations) is not None and not alive

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
        if not self.config.on("TASFailedNodeReplacement"):
            return None
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
            return 30.0

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
            only = self._confined(pod_sets[each["name"]], tree.levels, kept, [leaf.values for leaf in leaves if leaf is not None])
            finder = Finder(tree, self.hub.cache.flavors[flavor], profile=self.config.on("TASProfileMixed"), only=only)
            missing = sum(domain.pods for domain in lost)
            found = finder.find({**pod_sets[each["name"]], "topologyRequest": {"unconstrained": True}}, missing)
            merged: dict[Values, int] = {leaf.values: domain.pods for domain, leaf in zip(kept, leaves, strict=True) if leaf is not None}
            for values, count in found.pods.items():
                merged[values] = merged.get(values, 0) + count
            assigned.append({**each, "topologyAssignment": places.encoded(tree, merged)})
        return {**workload["status"]["admission"], "podSetAssignments": assigned}

    @staticmethod
    def _confined(pod_set: Tree, levels: Sequence[str], kept: Sequence[Domain], paths: Sequence[Values]) -> Values | None:
        """Return the domain in which a replacement has to be: that of the required level, or of the broken slice."""
        request = pod_set.get("topologyRequest") or {}
        if not paths:
            return None
        slices, size = request.get("podSetSliceRequiredTopology"), request.get("podSetSliceSize", 1)
        if slices in levels and size > 1:
            depth = levels.index(slices) + 1
            sums: dict[Values, int] = {}
            for domain, path in zip(kept, paths, strict=True):
                sums[path[:depth]] = sums.get(path[:depth], 0) + domain.pods
            for path, count in sums.items():
                if count % size:
                    return path
        if request.get("required") in levels:
            return paths[0][: levels.index(request["required"]) + 1]
        return None


def hosts_of(workload: Tree) -> list[str]:
    """Return the hosts in a Workload's places, in order; nothing for topologies that do not end in hosts."""
    found: dict[str, None] = {}
    for each in assignments(workload):
        placed = each.get("topologyAssignment")
        if placed is not None and placed["levels"][-1] == HOSTNAME:
            found |= {domain.values[-1]: None for domain in decode(placed)}
    return list(found)


def _ready(node: Tree) -> bool | None:
    """Tell whether a node is ready; None where it does not say."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return bool(condition["status"] == "True")
    return None
