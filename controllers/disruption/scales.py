"""How many pods the controllers of a budget's pods are told to have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubemini.api.resources import DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, Resource
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, NotFound, qualified
from kubemini.runtime.controller import Context
from kubemini.runtime.informer import Informer
from kubemini.runtime.keys import controller_of

_KNOWN = (REPLICATION_CONTROLLERS, REPLICA_SETS, STATEFUL_SETS)


class UnknownScale(Exception):
    """The expected number of pods cannot be told; the message is upstream's."""


@dataclass(slots=True)
class Expected:
    """What is expected of a budget's pods: the sum of their controllers' sizes, and the pods without a controller."""

    pods: int = 0
    unmanaged: list[str] = field(default_factory=list)


class Scales:
    """Finds the sizes of controllers: of the workloads that it follows in its caches, of others through their Scale."""

    def __init__(self, ctx: Context) -> None:
        self._client = ctx.client
        self._sets: dict[tuple[str, str], Informer] = {(each.group, each.kind): ctx.informer(each) for each in _KNOWN}
        self._deployments = ctx.informer(DEPLOYMENTS)
        self._resources: dict[tuple[str, str], Resource] = {}

    async def expected(self, pods: Sequence[Tree]) -> Expected:
        """Sum up. Raise `UnknownScale`."""
        found = Expected()
        seen: dict[str, None] = {}
        sizes: dict[str, int] = {}
        for pod in pods:
            owner = controller_of(pod)
            if owner is None:
                found.unmanaged.append(pod["metadata"]["name"])
            elif owner["uid"] not in seen:
                seen[owner["uid"]] = None
                # The ReplicaSets of a Deployment count together, once
                uid, size = await self._size(owner, pod)
                sizes[uid] = size
        found.pods = sum(sizes.values())
        return found

    async def _size(self, owner: Tree, pod: Tree) -> tuple[str, int]:
        """Return (uid of what is sized, its size)."""
        namespace, group = pod["metadata"]["namespace"], owner["apiVersion"].rpartition("/")[0]
        informer = self._sets.get((group, owner["kind"]))
        if informer is not None:
            above = informer.get(owner["name"], namespace)
            if above is not None and above["metadata"]["uid"] == owner["uid"]:
                top = controller_of(above)
                deployment = self._deployments.get(top["name"], namespace) if top is not None and top["kind"] == "Deployment" else None
                if deployment is not None and top is not None and deployment["metadata"]["uid"] == top["uid"]:
                    above = deployment
                size: int = above["spec"].get("replicas", 1)
                return above["metadata"]["uid"], size
        else:
            scale = await self._scale(owner, namespace)
            if scale is not None and scale["metadata"].get("uid") == owner["uid"]:
                size = scale["spec"].get("replicas", 0)
                return owner["uid"], size
        raise UnknownScale(f'found no controllers for pod "{pod["metadata"]["name"]}"')

    async def _scale(self, owner: Tree, namespace: str) -> Tree | None:
        resource = self._resource(owner["apiVersion"], owner["kind"])
        if resource is None:
            raise UnknownScale(f'no matches for kind "{owner["kind"]}" in version "{owner["apiVersion"]}"')
        try:
            return await self._client.scale(resource, owner["name"], namespace)
        except NotFound as missing:
            if missing.details.get("name"):
                return None
            raise UnknownScale(f"{qualified(resource.plural, resource.group)} does not implement the scale subresource") from None
        except ApiStatus as refused:
            raise UnknownScale(refused.message) from refused

    def _resource(self, api_version: str, kind: str) -> Resource | None:
        if (api_version, kind) not in self._resources:
            self._resources = {(each.api_version, each.kind): each for each in self._client.resources()}
        return self._resources.get((api_version, kind))
