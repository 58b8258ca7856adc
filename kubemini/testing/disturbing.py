"""Disturbances of a running cluster, by name: what wears, breaks or is broken. Each can be mended, so that a life can end well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from kubemini.api.resources import CLUSTER_QUEUES, NODES
from kubemini.api.trees import Tree
from kubemini.machinery.errors import AlreadyExists, ApiStatus, ConfigError, Conflict, NotFound
from kubemini.machinery.quantity import from_milli, milli
from kubemini.sim.cluster import SimCluster
from kubemini.testing.plans import Step

T = TypeVar("T")
LOST = "kubemini.dev/lost"


class Disturber:
    """Disturbs one cluster. `work` are the objects that its users made, each as they wrote it and as it was stored: what they may delete, and apply again.

    `tell` hears of each disturbance in words, right before it happens.
    """

    def __init__(self, cluster: SimCluster, work: Sequence[tuple[Tree, Tree]] = (), tell: Callable[[str], object] = lambda text: None) -> None:
        self.cluster = cluster
        self._tell = tell
        self._work = [pair for pair in work if pair[1]["metadata"].get("namespace") and not pair[1]["apiVersion"].startswith("kueue.x-k8s.io/")]
        self._quotas: dict[str, list[Tree]] = {}
        """The resource groups of ClusterQueues as they were."""

    async def do(self, step: Step) -> bool:
        """Do what a step says; tell whether there was something to do it to. Raise `ConfigError` for an unknown action."""
        action = ACTIONS.get(step.action)
        if action is None:
            raise ConfigError(f"steps: there is no action {step.action!r}; there are {', '.join(ACTIONS)}")
        try:
            return await action(self, step.which)
        except (NotFound, Conflict, AlreadyExists):
            return False

    async def mend(self) -> None:
        """Bring lost nodes and quotas back."""
        while await self.recover_node(0):
            pass
        for name in list(self._quotas):
            await self._set_quota(name, self._quotas.pop(name))

    # ------------------------------------------------------------------ pods and nodes

    async def fail_pod(self, which: int) -> bool:
        """Let the containers of a running pod crash."""
        pod = _chosen([each for each in await self.cluster.list("pod") if each["spec"].get("nodeName") and _lives(each)], which)
        if pod is None:
            return False
        meta = pod["metadata"]
        self._tell(f"pod {meta['namespace']}/{meta['name']} crashes")
        await self.cluster.fail_pod(meta["namespace"], meta["name"], uid=meta["uid"])
        return True

    async def delete_pod(self, which: int) -> bool:
        """Delete a pod as a user does."""
        pod = _chosen([each for each in await self.cluster.list("pod") if _lives(each)], which)
        if pod is None:
            return False
        meta = pod["metadata"]
        self._tell(f"pod {meta['namespace']}/{meta['name']} is deleted")
        await self.cluster.delete_pod(meta["namespace"], meta["name"], uid=meta["uid"])
        return True

    async def lose_node(self, which: int) -> bool:
        """Let a node that has pods fall silent."""
        busy = {pod["spec"]["nodeName"]: None for pod in await self.cluster.list("pod") if pod["spec"].get("nodeName")}
        name = _chosen([name for name in sorted(busy) if not _lost(await self.cluster.client.get(NODES, name))], which)
        if name is None:
            return False
        self._tell(f"node {name} falls silent")
        await self.cluster.lose_node(name)
        return True

    async def recover_node(self, which: int) -> bool:
        """Let a node that fell silent answer again."""
        node = _chosen([each for each in await self.cluster.client.list(NODES) if _lost(each)], which)
        if node is None:
            return False
        self._tell(f"node {node['metadata']['name']} answers again")
        await self.cluster.recover_node(node["metadata"]["name"])
        return True

    # ------------------------------------------------------------------ the control plane and its users

    async def restart(self, which: int) -> bool:
        """Kill a controller process wherever it is, and start it with cold caches."""
        name = _chosen(sorted(self.cluster.managers), which)
        if name is None:
            return False
        self._tell(f"{name} is killed and starts again")
        await self.cluster.restart(name)
        return True

    async def halve_quota(self, which: int) -> bool:
        """Take half of a ClusterQueue's nominal quotas away."""
        queue = _chosen([each for each in await self.cluster.client.list(CLUSTER_QUEUES) if each["spec"].get("resourceGroups")], which)
        if queue is None:
            return False
        name, groups = queue["metadata"]["name"], queue["spec"]["resourceGroups"]
        self._tell(f"ClusterQueue {name} loses half of its quotas")
        await self._set_quota(name, [_halved(group) for group in groups])
        self._quotas.setdefault(name, groups)
        return True

    async def restore_quota(self, which: int) -> bool:
        """Give a ClusterQueue back what was taken away."""
        name = _chosen(sorted(self._quotas), which)
        if name is None:
            return False
        self._tell(f"ClusterQueue {name} has its quotas again")
        await self._set_quota(name, self._quotas.pop(name))
        return True

    async def _set_quota(self, name: str, groups: list[Tree]) -> None:
        await self.cluster.client.patch(CLUSTER_QUEUES, name, {"spec": {"resourceGroups": groups}})

    async def delete_object(self, which: int) -> bool:
        """Delete something that users made, its children in the background."""
        pair = _chosen(self._work, which)
        if pair is None:
            return False
        _, made = pair
        self._tell(f"{reference(made)} is deleted")
        await self.cluster.delete(reference(made), namespace=made["metadata"]["namespace"])
        return True

    async def apply_again(self, which: int) -> bool:
        """Apply something that users wrote once more, whether it is still there or not."""
        pair = _chosen(self._work, which)
        if pair is None:
            return False
        written, made = pair
        self._tell(f"{reference(made)} is applied again")
        try:
            await self.cluster.apply(written)
        except ApiStatus as refused:
            self._tell(f"and refused: {refused.message}")
        return True


ACTIONS: Mapping[str, Callable[[Disturber, int], Awaitable[bool]]] = {
    "fail pod": Disturber.fail_pod,
    "delete pod": Disturber.delete_pod,
    "restart": Disturber.restart,
    "lose node": Disturber.lose_node,
    "recover node": Disturber.recover_node,
    "delete object": Disturber.delete_object,
    "apply again": Disturber.apply_again,
    "halve quota": Disturber.halve_quota,
    "restore quota": Disturber.restore_quota,
}
"""Every disturbance; the number chooses among what is there."""


def _chosen(candidates: Sequence[T], which: int) -> T | None:
    return candidates[which % len(candidates)] if candidates else None


def _lives(pod: Tree) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") in ("Pending", "Running")


def _lost(node: Tree) -> bool:
    return (node["metadata"].get("annotations") or {}).get(LOST) == "true"


def reference(obj: Tree) -> str:
    """Return ``kind/name``."""
    return f"{obj['kind'].lower()}/{obj['metadata']['name']}"


def _halved(group: Tree) -> Tree:
    def half(resource: Tree) -> Tree:
        return {**resource, "nominalQuota": from_milli(milli(resource["nominalQuota"]) // 2000 * 1000)}

    return {**group, "flavors": [{**flavor, "resources": [half(each) for each in flavor["resources"]]} for flavor in group["flavors"]]}
