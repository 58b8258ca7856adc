"""The mutating webhook of pods: what a pod of a group is told of its place, and where it may run. Every pod that carries the name label passes it on create."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws import tpu
from kubemini.controllers.lws.exclusive import unique_key, with_affinities
from kubemini.controllers.lws.pod_groups import group_name
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest


def mutate(request: WebhookRequest, *, gang: bool = False) -> Tree | None:
    """Return a pod with its labels, affinities and variables. `gang`: Volcano schedules groups."""
    pod = request.obj
    if pod is None:
        return None
    meta = pod["metadata"]
    labels = meta.get("labels")
    if not labels or names.NAME not in labels:
        return None
    annotations = meta.get("annotations") or {}
    name, namespace = meta.get("name", ""), request.namespace
    size = _size(annotations, name)
    pod = {**pod, "metadata": {**meta, "labels": dict(labels)}}
    pod = _as_leader(pod, namespace) if labels.get(names.WORKER_INDEX) == "0" else _as_worker(pod, size)
    if gang:
        given = {**annotations, names.VOLCANO_GROUP: group_name(pod["metadata"]["labels"])}
        pod = {**pod, "metadata": {**pod["metadata"], "annotations": given}}
    if tpu.pod_requests(pod["spec"]):
        try:
            pod = tpu.with_variables(pod, size)
        except (KeyError, ValueError):
            raise Denied('strconv.Atoi: parsing "": invalid syntax') from None
    return _with_variables(pod, namespace, annotations[names.SIZE])


def _size(annotations: Tree, name: str) -> int:
    text = annotations.get(names.SIZE)
    if text is None:
        raise Denied(f"size annotation is unexpectedly missing for pod {name}")
    return _number(text)


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise Denied(f'strconv.Atoi: parsing "{text}": invalid syntax') from None


def _ordinal(name: str) -> str:
    digits = name.rpartition("-")[2]
    if digits == name or not (digits.isascii() and digits.isdigit()):
        raise Denied(f"parsing pod ordinal for pod {name}")
    return str(int(digits))


def _as_leader(pod: Tree, namespace: str) -> Tree:
    """Return a leader with its group; `labels` of the pod are a copy that may be written."""
    meta = pod["metadata"]
    name: str = meta.get("name", "")
    labels, annotations = meta["labels"], meta.get("annotations") or {}
    if names.GROUP_INDEX not in labels:
        labels[names.GROUP_INDEX] = _ordinal(name)
    if annotations.get(names.SUBDOMAIN_POLICY) == "UniquePerReplica":
        pod = {**pod, "spec": {**pod["spec"], "subdomain": name}}
    key: str = labels.setdefault(names.GROUP_KEY, unique_key(namespace, name))
    topology_key = annotations.get(names.EXCLUSIVE_TOPOLOGY)
    if topology_key is not None:
        pod = with_affinities(pod, key, topology_key, names.GROUP_KEY)
    if names.SUB_GROUP_SIZE in annotations and annotations.get(names.SUB_GROUP_POLICY_TYPE) != "LeaderExcluded":
        pod = _in_sub_group(pod, name, "0")
    return pod


def _as_worker(pod: Tree, size: int) -> Tree:
    meta = pod["metadata"]
    annotations = meta.get("annotations") or {}
    index = _ordinal(meta.get("name", ""))
    meta["labels"][names.WORKER_INDEX] = index
    sub_group_size = annotations.get(names.SUB_GROUP_SIZE)
    if sub_group_size is None:
        return pod
    return _in_sub_group(pod, annotations.get(names.LEADER_NAME, ""), str(sub_group_of(size, _number(sub_group_size), int(index))))


def sub_group_of(size: int, sub_group_size: int, worker: int) -> int:
    """Return the subgroup of a worker in a group of `size`: where the leader is one too many it goes with the first subgroup.

    >>> [sub_group_of(5, 2, worker) for worker in (1, 2, 3, 4)], [sub_group_of(4, 2, worker) for worker in (1, 2, 3)]
    ([0, 0, 1, 1], [0, 1, 1])
    """
    if (size - 1) % sub_group_size == 0 and size % sub_group_size != 0:
        return (worker - 1) // sub_group_size
    return worker // sub_group_size


def _in_sub_group(pod: Tree, leader: str, index: str) -> Tree:
    meta = pod["metadata"]
    if meta["labels"].get(names.SUB_GROUP_INDEX):
        return pod
    key = unique_key(leader, index)
    meta["labels"] |= {names.SUB_GROUP_INDEX: index, names.SUB_GROUP_KEY: key}
    topology_key = (meta.get("annotations") or {}).get(names.SUB_GROUP_EXCLUSIVE_TOPOLOGY)
    return pod if topology_key is None else with_affinities(pod, key, topology_key, names.SUB_GROUP_KEY)


def _with_variables(pod: Tree, namespace: str, size: str) -> Tree:
    """Return a pod whose every container knows its leader's address, the group's size and its own index, before whatever the user gave."""
    labels, spec = pod["metadata"]["labels"], pod["spec"]
    if names.GROUP_INDEX not in labels:
        about = f"{namespace}/{pod['metadata'].get('name', '')}"
        raise Denied(f"Failure constructing environment variables, no group index label found for pod {about}")
    address = f"{labels[names.NAME]}-{labels[names.GROUP_INDEX]}.{spec.get('subdomain', '')}.{namespace}"
    ours: list[Tree] = [
        {"name": names.LEADER_ADDRESS_ENV, "value": address},
        {"name": names.GROUP_SIZE_ENV, "value": size},
        {"name": names.WORKER_INDEX_ENV, "value": labels[names.WORKER_INDEX]},
    ]
    spec = dict(spec)
    for part in ("containers", "initContainers"):
        if spec.get(part):
            spec[part] = [{**each, "env": _joined(ours, each.get("env") or ())} for each in spec[part]]
    return {**pod, "spec": spec}


def _joined(ours: Sequence[Tree], theirs: Sequence[Tree]) -> list[Tree]:
    """Return our variables, then those of the user whose names are new, each name once."""
    if not theirs:
        return list(ours)
    first: dict[str, Tree] = {}
    for each in (*ours, *theirs):
        first.setdefault(each["name"], each)
    return list(first.values())


def webhook(*, gang: bool) -> Webhook:
    """Return the webhook. Its validating twin upstream accepts everything."""
    return Webhook("mpod.kb.io", ("pods",), ("CREATE",), mutate=lambda request: mutate(request, gang=gang))
