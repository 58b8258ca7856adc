"""Rolling updates of DaemonSets: which old pods go, and where new ones are made beside them. Pure functions of the pods by node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.daemon_set.placing import Daemon, old_and_new


@dataclass(slots=True)
class Step:
    """What one pass does: pods to delete, and nodes to make pods on."""

    delete: list[Tree] = field(default_factory=list)
    create: list[str] = field(default_factory=list)


def replace(daemon: Daemon, by_node: Mapping[str, Sequence[Tree]], limit: int, available: Callable[[Tree], bool]) -> Step:
    """Return which old pods go, so that at most `limit` are unavailable; those that are unavailable anyway go at once. New ones follow by themselves."""
    unavailable = 0
    useless: list[Tree] = []
    candidates: list[Tree] = []
    for pods in by_node.values():
        pair = old_and_new(daemon, pods)
        if pair is None:
            unavailable += 1
            continue
        old, new = pair
        if (old is None) == (new is None):
            unavailable += 1
        elif new is not None:
            unavailable += not available(new)
        elif old is not None:
            if not available(old):
                useless.append(old)
                unavailable += 1
            elif unavailable < limit:
                candidates.append(old)
    return Step(delete=[*useless, *candidates[: max(limit - unavailable, 0)]])


def surge(daemon: Daemon, by_node: Mapping[str, Sequence[Tree]], limit: int, nodes: Collection[str], available: Callable[[Tree], bool]) -> Step:
    """Return where new pods are made beside old ones, `limit` at a time, and which old ones their successors let go.

    An old pod on a node that is none of the daemon's `nodes` any more has no successor there: it goes when as many as are wanted are available without it.
    """
    surging = serving = 0
    found = Step()
    candidates: list[str] = []
    stray: list[Tree] = []
    for node, pods in by_node.items():
        pair = old_and_new(daemon, pods)
        if pair is None:
            surging += 1
            continue
        old, new = pair
        counted = old or new
        serving += counted is not None and available(counted)
        if old is None:
            continue
        if new is not None:
            if available(new):
                found.delete.append(old)
            else:
                surging += 1
        elif node not in nodes:
            (stray if available(old) else found.delete).append(old)
        elif not available(old):
            found.create.append(node)
        elif surging < limit:
            candidates.append(node)
    found.delete += stray[: max(serving - len(nodes), 0)]
    found.create += candidates[: max(limit - surging, 0)]
    return found
