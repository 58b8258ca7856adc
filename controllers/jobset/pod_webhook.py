"""The webhooks of pods: the priority label, and exclusive placement.

Followers are refused until their leader is bound; that is no failure but the way it works: the Job controller tries again. Both webhooks look at what is stored, so there
is no leader of the past to be taken for the one of today: pods that are being deleted, have ended, or belong to another Job do not lead.
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset import exclusive
from kubemini.machinery.memo import IdentityMemo
from kubemini.runtime.keys import controller_uid
from kubemini.runtime.webhooks import Denied, Reader, Webhook, WebhookRequest

_EMPTY: Tree = {}
_selectors: IdentityMemo[dict[tuple[str, str], Tree]] = IdentityMemo(1024)
"""Node selectors of followers by that of their template, so that followers in one domain share one."""


class NoLeader(Exception):
    """The leader of a follower cannot be told; the text says why."""


def mutate(request: WebhookRequest) -> Tree | None:
    """Label a JobSet's pod with its priority; a leader of exclusive placement gets affinities, a follower its leader's domain."""
    pod = request.obj
    if pod is None:
        return None
    meta = pod["metadata"]
    annotations = meta.get("annotations") or _EMPTY
    if not _concerned(meta, annotations):
        return None
    priority = pod["spec"].get("priority")
    if priority is not None:
        pod = {**pod, "metadata": {**meta, "labels": {**(meta.get("labels") or _EMPTY), names.PRIORITY: str(priority)}}}
    topology_key = annotations.get(names.EXCLUSIVE_TOPOLOGY)
    if topology_key is None:
        return pod
    if exclusive.is_leader(pod):
        return {**pod, "spec": {**pod["spec"], "affinity": _affinity(pod, topology_key)}}
    return _following(pod, topology_key, request)


def validate(request: WebhookRequest) -> None:
    """Refuse a follower whose leader is not bound yet."""
    pod = request.obj
    if pod is None:
        return
    annotations = pod["metadata"].get("annotations") or _EMPTY
    if not _concerned(pod["metadata"], annotations):
        return
    topology_key = annotations.get(names.EXCLUSIVE_TOPOLOGY)
    if topology_key is None or exclusive.is_leader(pod):
        return
    selector = pod["spec"].get("nodeSelector")
    if not selector:
        raise Denied("follower pod node selector not set")
    if topology_key not in selector:
        raise Denied(f"follower pod node selector for topology domain not found. missing selector: {topology_key}")
    try:
        leader = leader_of(pod, request.namespace, request.reader)
    except NoLeader as problem:
        raise Denied(str(problem)) from None
    if not leader["spec"].get("nodeName"):
        raise Denied("leader pod not yet scheduled, not creating follower pod. this is an expected, transient error")


def _concerned(meta: Tree, annotations: Tree) -> bool:
    """Tell whether a pod is a JobSet's and placed by the webhooks, which are asked about those only, as JobSet is installed, that its label selects."""
    return names.NAME in annotations and names.NODE_SELECTOR_STRATEGY not in annotations and names.NAME in (meta.get("labels") or _EMPTY)


def leader_of(pod: Tree, namespace: str, reader: Reader) -> Tree:
    """Return the one live leader of a follower's Job. Raise `NoLeader`."""
    labels = pod["metadata"].get("labels") or {}
    for key in (names.NAME, names.REPLICATED_JOB, names.JOB_INDEX):
        if key not in labels:
            raise NoLeader(f"pod missing label: {key}")
    name = f"{labels[names.NAME]}-{labels[names.REPLICATED_JOB]}-{labels[names.JOB_INDEX]}-0"
    found = [each for each in reader.starting("pods", namespace, f"{name}-") if _may_lead(each, name)]
    if len(found) != 1:
        raise NoLeader(f"expected 1 leader pod ({name}), but got {len(found)}. this is an expected, transient error")
    leader = found[0]
    mine, theirs = controller_uid(pod), controller_uid(leader)
    if not mine:
        raise NoLeader("follower pod has no owner reference")
    if not theirs:
        raise NoLeader(f'leader pod "{leader["metadata"]["name"]}" has no owner reference')
    if mine != theirs:
        raise NoLeader(f"follower pod owner UID ({mine[0]}) != leader pod owner UID ({theirs[0]})")
    return leader


def _may_lead(pod: Tree, name: str) -> bool:
    meta = pod["metadata"]
    if exclusive.without_suffix(meta["name"]) != name or "deletionTimestamp" in meta or exclusive.topology_key(pod) is None:
        return False
    return (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")


def _following(pod: Tree, topology_key: str, request: WebhookRequest) -> Tree:
    """Return a follower with its leader's domain as node selector; without a bound leader as it is, for the validating webhook to refuse."""
    try:
        leader = leader_of(pod, request.namespace, request.reader)
    except NoLeader:
        return pod
    node_name = leader["spec"].get("nodeName")
    if not node_name:
        return pod
    node = request.reader.get("nodes", "", node_name)
    if node is None:
        raise Denied(f'Node "{node_name}" not found', code=404, reason="NotFound")
    domain = (node["metadata"].get("labels") or {}).get(topology_key)
    if domain is None:
        raise Denied(f"node does not have topology label: {topology_key}")
    spec = pod["spec"]
    return {**pod, "spec": {**spec, "nodeSelector": _selector(spec.get("nodeSelector") or _EMPTY, topology_key, domain)}}


def _selector(base: Tree, key: str, value: str) -> Tree:
    known = _selectors.get(base)
    if known is None:
        known = _selectors.put(base, {})
    found = known.get((key, value))
    if found is None:
        found = known[key, value] = {**base, key: value}
    return found


def _affinity(pod: Tree, topology_key: str) -> Tree:
    """Return a leader's affinity: with its own Job's pods, away from those of other Jobs of the same priority, in every namespace."""
    labels = pod["metadata"].get("labels") or {}
    job, priority = labels.get(names.JOB_KEY, ""), labels.get(names.PRIORITY, "")
    together = _term(topology_key, [{"key": names.JOB_KEY, "operator": "In", "values": [job]}])
    apart = _term(
        topology_key,
        [
            {"key": names.JOB_KEY, "operator": "Exists"},
            {"key": names.JOB_KEY, "operator": "NotIn", "values": [job]},
            {"key": names.PRIORITY, "operator": "In", "values": [priority]},
        ],
    )
    affinity = pod["spec"].get("affinity") or {}
    return {
        **affinity,
        "podAffinity": _with_term(affinity.get("podAffinity"), together),
        "podAntiAffinity": _with_term(affinity.get("podAntiAffinity"), apart),
    }


def _term(topology_key: str, expressions: list[Tree]) -> Tree:
    return {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology_key, "namespaceSelector": {}}


def _with_term(affinity: Tree | None, term: Tree) -> Tree:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {**(affinity or {}), required: [*((affinity or {}).get(required) or ()), term]}


MUTATING = Webhook("mpod.kb.io", ("pods",), ("CREATE",), mutate=mutate)
VALIDATING = Webhook("vpod.kb.io", ("pods",), ("CREATE",), validate=validate)
