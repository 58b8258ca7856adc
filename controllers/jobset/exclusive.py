"""Exclusive placement, what its webhook and its repair loop have in common: who leads a Job's pods, and what a pod says about it.

The pod of completion index 0 leads: affinities put it where no other Job is. The others follow it by a node selector for its topology domain.
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
NAME_PARTS = 5
"""``<jobset>-<role>-<job>-<pod>-<suffix>`` has at least so many parts; shorter names belong to no pod of a JobSet."""


def topology_key(pod: Tree) -> str | None:
    """Return the node label whose domains hold one Job each, None for a pod that is not placed exclusively."""
    found: str | None = (pod["metadata"].get("annotations") or {}).get(names.EXCLUSIVE_TOPOLOGY)
    return found


def is_leader(pod: Tree) -> bool:
    """Tell whether a pod has completion index 0."""
    return (pod["metadata"].get("annotations") or {}).get(COMPLETION_INDEX) == "0"


def without_suffix(name: str) -> str | None:
    """Return a pod's name without its random suffix, None for one that is too short.

    >>> without_suffix("train-worker-0-1-x7f2c"), without_suffix("a-b-c")
    ('train-worker-0-1', None)
    """
    parts = name.split("-")
    return None if len(parts) < NAME_PARTS else "-".join(parts[:-1])
