"""Exclusive placement: affinities that give a group, or a subgroup, a topology domain of its own."""

from __future__ import annotations

from hashlib import sha1

from kubemini.api.trees import Tree

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def unique_key(above: str, name: str) -> str:
    """Return the hash that the pods of a group or subgroup share.

    >>> unique_key("default", "web-0")
    '24d07f86e30eab612295c79e83a2b82dd6badd03'
    """
    return sha1(f"{above}/{name}".encode(), usedforsecurity=False).hexdigest()


def with_affinities(pod: Tree, key: str, topology_key: str, label: str) -> Tree:
    """Return a pod that shares its topology domain with the pods whose `label` is `key`, and with no others that carry the label. Applied once."""
    affinity: Tree = pod["spec"].get("affinity") or {}
    together, apart = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    if _placed(together, topology_key) and _placed(apart, topology_key):
        return pod
    mine: Tree = {"key": label, "operator": "In", "values": [key]}
    others: list[Tree] = [{"key": label, "operator": "Exists"}, {"key": label, "operator": "NotIn", "values": [key]}]
    changed = {**affinity, "podAffinity": _with_term(together, [mine], topology_key), "podAntiAffinity": _with_term(apart, others, topology_key)}
    return {**pod, "spec": {**pod["spec"], "affinity": changed}}


def _placed(affinity: Tree, topology_key: str) -> bool:
    return any(term.get("topologyKey") == topology_key for term in affinity.get(REQUIRED) or ())


def _with_term(affinity: Tree, expressions: list[Tree], topology_key: str) -> Tree:
    term = {"labelSelector": {"matchExpressions": expressions}, "topologyKey": topology_key}
    return {**affinity, REQUIRED: [*(affinity.get(REQUIRED) or ()), term]}
