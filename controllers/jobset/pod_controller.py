"""The repair loop of exclusive placement: followers that are bound for another domain than their leader go, so that they are made anew.

It comes to that when a leader is replaced after followers got their node selector, and lands elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import NODES, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.api.wellknown.kubernetes import DISRUPTION_TARGET
from kubemini.controllers.jobset import exclusive
from kubemini.controllers.jobset.errors import Stalled
from kubemini.machinery.errors import ApiStatus, Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_uid, key_of

MESSAGE = "Pod violated JobSet exclusive placement policy"


class PlacementController(Controller):
    """Keys are leader pods that are bound."""

    name = "jobset-pod"
    measured_as = "pod"
    component = "jobset"

    def setup(self, ctx: Context) -> None:
        """Follow pods; nodes are looked up."""
        self._ctx = ctx
        self._nodes = ctx.informer(NODES)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("exclusive-job", _job_of, reads=("labels", "annotations"), marks=(names.EXCLUSIVE_TOPOLOGY,))
        self._pods.on_change(self._on_pod, marks=(names.EXCLUSIVE_TOPOLOGY,))

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and exclusive.topology_key(new) is not None and _leads(new):
            self.queue.add(key_of(new))

    async def reconcile(self, key: str) -> float | None:
        """Hold the followers of one leader against its domain."""
        leader = self._pods.get_key(key)
        if leader is None or not _leads(leader):
            return None
        topology_key = exclusive.topology_key(leader)
        if topology_key is None:
            return None
        meta = leader["metadata"]
        if names.JOB_KEY not in (meta.get("labels") or {}):
            raise Stalled(f"job key label not found on leader pod: {meta['name']!r}")
        owner = controller_uid(leader)
        if not owner:
            raise Stalled(f"leader pod {meta['name']!r} has no controller owner")
        followers = [
            pod for pod in self._pods.by_index("exclusive-job", _job_of(leader)[0]) if controller_uid(pod) == owner and not exclusive.is_leader(pod)
        ]
        domain = self._domain(leader, topology_key)
        if all((pod["spec"].get("nodeSelector") or {}).get(topology_key) == domain for pod in followers):
            return None
        if not domain:
            raise Stalled("leader topology is unknown (node not found)")
        await self._remove(followers)
        return None

    def _domain(self, leader: Tree, topology_key: str) -> str:
        """Return the domain of a leader's node, "" where the node is not there. Raise `Stalled` where the node names none."""
        node = self._nodes.get(leader["spec"]["nodeName"])
        if node is None:
            return ""
        domain: str | None = (node["metadata"].get("labels") or {}).get(topology_key)
        if domain is None:
            raise Stalled(f"node does not have topology label: {topology_key}")
        return domain

    async def _remove(self, followers: Sequence[Tree]) -> None:
        """Delete all followers of a Job, marked as disrupted so that a pod failure policy can leave them out of account."""
        first: ApiStatus | None = None
        for pod in followers:
            try:
                await self._remove_one(pod)
            except NotFound:
                continue
            except ApiStatus as refused:
                first = first or refused
        if first is not None:
            raise first

    async def _remove_one(self, pod: Tree) -> None:
        meta, status = pod["metadata"], pod.get("status") or {}
        conditions: list[Tree] = list(status.get("conditions") or ())
        place = next((index for index, each in enumerate(conditions) if each["type"] == DISRUPTION_TARGET), len(conditions))
        # One that is disrupted already, for whatever reason, stays as it is
        if not any(each["status"] == "True" for each in conditions[place : place + 1]):
            condition = {"type": DISRUPTION_TARGET, "status": "True", "reason": names.EXCLUSIVE_PLACEMENT_VIOLATION, "message": MESSAGE}
            conditions[place : place + 1] = [{**condition, "lastTransitionTime": self._ctx.env.stamp()}]
            await self._ctx.client.update_status(PODS, {**pod, "status": {**status, "conditions": conditions}})
        try:
            await self._ctx.client.delete(PODS, meta["name"], namespace=meta["namespace"], propagation="Background", uid=meta["uid"])
        except Conflict:
            # another pod has the name by now
            return


def _leads(pod: Tree) -> bool:
    """Tell whether a pod is a leader that is bound and stays."""
    return bool(pod["spec"].get("nodeName")) and "deletionTimestamp" not in pod["metadata"] and exclusive.is_leader(pod)


def _job_of(pod: Tree) -> tuple[str, ...]:
    """Return the namespace and key of the Job of a pod that is placed exclusively, as index values."""
    if exclusive.topology_key(pod) is None:
        return ()
    meta = pod["metadata"]
    key = (meta.get("labels") or {}).get(names.JOB_KEY)
    return () if key is None else (f"{meta['namespace']}/{key}",)
