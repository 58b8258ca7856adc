"""Which pod of an admitted pod set goes to which domain: by rank where the pods have one, else wherever there is room."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubemini.api.kueue.assignments import Domain
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names


def label(pod: Tree, name: str) -> str:
    """Return a label of a pod, or ""."""
    found: str = (pod["metadata"].get("labels") or {}).get(name, "")
    return found


def gated(pod: Tree) -> bool:
    """Tell whether a pod waits for its place."""
    return any(each["name"] == names.TOPOLOGY_GATE for each in pod["spec"].get("schedulingGates") or ())


def where(pod: Tree, levels: Sequence[str]) -> tuple[str, ...]:
    """Return the domain that a pod's node selector names."""
    selector: Mapping[str, str] = pod["spec"].get("nodeSelector") or {}
    return tuple(selector.get(level, "") for level in levels)


def assign(
    pods: Sequence[Tree], pod_set: Tree, levels: Sequence[str], domains: Sequence[Domain], *, offset: int = 0
) -> Iterator[tuple[Tree, tuple[str, ...]]]:
    """Yield (pod, values of its domain) for pods that wait; `offset` is the rank of the first pod (behind a leader)."""
    places = [domain.values for domain in domains for _ in range(domain.pods)]
    ranks = _ranks(pods, pod_set, offset)
    if ranks is not None and all(rank < len(places) for rank in ranks.values()):
        by_uid = {pod["metadata"]["uid"]: pod for pod in pods}
        settled = all(gated(by_uid[uid]) or where(by_uid[uid], levels) == places[rank] for uid, rank in ranks.items())
        if settled:
            for uid, rank in ranks.items():
                if gated(by_uid[uid]):
                    yield by_uid[uid], places[rank]
            return
    yield from _greedy(pods, levels, domains)


def _ranks(pods: Sequence[Tree], pod_set: Tree, offset: int) -> dict[str, int] | None:
    """Return the rank of each pod by uid, or None where the pods have no ranks to go by."""
    request = pod_set.get("topologyRequest") or {}
    index_label, group_label = request.get("podIndexLabel"), request.get("subGroupIndexLabel")
    if not index_label:
        return None
    size = pod_set["count"]
    single = size
    if group_label:
        groups = request.get("subGroupCount") or 0
        if groups <= 0:
            return None
        single = size // groups
    found: dict[str, int] = {}
    taken: set[int] = set()
    for pod in pods:
        text = label(pod, index_label)
        if not text.isdigit():
            return None
        shift = (pod["metadata"].get("annotations") or {}).get(names.POD_INDEX_OFFSET, "0")
        index = int(text) - (int(shift) if shift.isdigit() else 0) - offset
        if index >= single:
            return None
        if group_label:
            group = label(pod, group_label)
            if not group.isdigit():
                return None
            index += int(group) * single
        if not 0 <= index < size or index in taken:
            return None
        taken.add(index)
        found[pod["metadata"]["uid"]] = index
    return found


def _greedy(pods: Sequence[Tree], levels: Sequence[str], domains: Sequence[Domain]) -> Iterator[tuple[Tree, tuple[str, ...]]]:
    used: dict[tuple[str, ...], int] = {}
    waiting = []
    for pod in pods:
        if gated(pod):
            waiting.append(pod)
        else:
            place = where(pod, levels)
            used[place] = used.get(place, 0) + 1
    for domain in domains:
        for _ in range(max(0, domain.pods - used.get(domain.values, 0))):
            if not waiting:
                return
            yield waiting.pop(0), domain.values
