"""The status of a ReplicaSet, from its pods."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.controllers.replica_set.pods import is_available, ready_since

FAILURE = "ReplicaFailure"


def calculated(owner: Tree, active: Sequence[Tree], terminating: int | None, failure: tuple[str, str] | None, now: float, stamp: str) -> Tree:
    """Return the status; `failure` is (reason, message) of what kept pods from being made or deleted, `terminating` None where it is not told."""
    spec, before = owner["spec"], owner.get("status") or {}
    min_ready: int = spec.get("minReadySeconds", 0)
    wanted = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    labelled = ready = available = 0
    for pod in active:
        labels = pod["metadata"].get("labels") or {}
        if labels is wanted or wanted.items() <= labels.items():
            labelled += 1
        if ready_since(pod) is not None:
            ready += 1
            if is_available(pod, min_ready, now):
                available += 1
    status: Tree = {"replicas": len(active)}
    counts = (("fullyLabeledReplicas", labelled), ("readyReplicas", ready), ("availableReplicas", available))
    status |= {name: count for name, count in counts if count}
    if terminating is not None:
        status["terminatingReplicas"] = terminating
    status["observedGeneration"] = owner["metadata"].get("generation", 0)
    conditions = _conditions(before.get("conditions") or [], failure, stamp)
    if conditions:
        status["conditions"] = conditions
    return status


def _conditions(before: list[Tree], failure: tuple[str, str] | None, stamp: str) -> list[Tree]:
    known = next((each for each in before if each["type"] == FAILURE), None)
    if failure is None:
        return [each for each in before if each is not known] if known is not None else before
    if known is not None:
        # Told once; a later reason does not replace the first
        return before
    reason, message = failure
    return [*before, {"type": FAILURE, "status": "True", "reason": reason, "message": message, "lastTransitionTime": stamp}]
