"""Who waits, and at which place: the API ``visibility.kueue.x-k8s.io``. Mirrors Kueue's ``pkg/visibility``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from kubemini.api.trees import Tree
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.workloads import Info
from kubemini.machinery.aggregation import AggregatedApi, AggregatedRequest, AggregatedResource
from kubemini.machinery.errors import BadRequest, NotFound
from kubemini.runtime.keys import key_of

GROUP: Final = "visibility.kueue.x-k8s.io"
SUMMARY: Final = "PendingWorkloadsSummary"
PENDING: Final = "pendingworkloads"
DEFAULT_LIMIT: Final = 1000
MOST: Final = 100_000
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid")


def visibility_api(hub: Hub) -> AggregatedApi:
    """Return the API over the queues of a hub."""

    def read(request: AggregatedRequest) -> Tree:
        offset, limit = _window(request.query)
        if request.plural == "localqueues":
            items = _in_local_queue(hub, request.namespace, request.name, offset, limit)
        else:
            items = _in_cluster_queue(hub, request.name, offset, limit)
        return {"kind": SUMMARY, "apiVersion": f"{GROUP}/{request.version}", "metadata": {}, "items": items}

    resources = (
        AggregatedResource("clusterqueues", "clusterqueue", False, SUMMARY, subresources=(PENDING,)),
        AggregatedResource("localqueues", "localqueue", True, SUMMARY, subresources=(PENDING,)),
    )
    return AggregatedApi(GROUP, ("v1beta2", "v1beta1"), resources, read)


def _window(query: Mapping[str, str]) -> tuple[int, int]:
    """Return (offset, limit) as a query asks for them, within bounds."""
    offset, limit = (_number(query, key) for key in ("offset", "limit"))
    return max(offset, 0), min(max(limit or DEFAULT_LIMIT, 0), MOST)


def _number(query: Mapping[str, str], key: str) -> int:
    text = query.get(key, "")
    try:
        return int(text) if text else 0
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def _in_cluster_queue(hub: Hub, name: str, offset: int, limit: int) -> list[Tree]:
    pending = hub.pending.get(name)
    if pending is None:
        raise NotFound.of("clusterqueue", GROUP, name)
    before: dict[str, int] = {}
    found = []
    for position, info in enumerate(pending.in_order()[: offset + limit]):
        place = before.get(info.local_queue, 0)
        before[info.local_queue] = place + 1
        if position >= offset:
            found.append(_shown(info, place, position))
    return found


def _in_local_queue(hub: Hub, namespace: str, name: str, offset: int, limit: int) -> list[Tree]:
    local = hub.local_queues.get(name, namespace)
    if local is None or local["spec"].get("stopPolicy", "None") != "None":
        raise NotFound.of("localqueue", GROUP, name)
    pending = hub.pending.get(local["spec"].get("clusterQueue", ""))
    waiting: Sequence[Info] = pending.in_order() if pending is not None else ()
    mine = [(position, info) for position, info in enumerate(waiting) if info.local_queue == key_of(local)]
    return [_shown(info, place, position) for place, (position, info) in enumerate(mine[offset : offset + limit], offset)]


def _shown(info: Info, in_local_queue: int, in_cluster_queue: int) -> Tree:
    meta, spec = info.tree["metadata"], info.tree["spec"]
    shown: Tree = {"name": meta["name"], "namespace": meta["namespace"], "creationTimestamp": meta["creationTimestamp"]}
    owners = [{field: each[field] for field in _OWNER_FIELDS} for each in meta.get("ownerReferences") or ()]
    if owners:
        shown["ownerReferences"] = owners
    return {
        "metadata": shown,
        "priority": spec.get("priority") or 0,
        "localQueueName": spec.get("queueName", ""),
        "positionInClusterQueue": in_cluster_queue,
        "positionInLocalQueue": in_local_queue,
    }
