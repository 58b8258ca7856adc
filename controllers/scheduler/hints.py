"""Whether a change of a node may help a pod that was refused: what each plugin that refused it says of the node as it was and as it is.

Mirrors the queueing hints of upstream's plugins for updates of nodes (``isSchedulableAfterNodeChange``). A plugin without a hint here may be helped by any change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.resources import amounts, requests_of
from kubemini.machinery.memo import by_identity
from kubemini.machinery.node_matching import matches_node, tolerates_hard

Hint = Callable[[Tree, Tree, Tree], bool]
"""Called with a pod's spec, the node as it was, and as it is."""


def _uncordoned(spec: Tree, old: Tree, new: Tree) -> bool:
    return bool(old["spec"].get("unschedulable")) and not new["spec"].get("unschedulable")


def _tolerated(spec: Tree, old: Tree, new: Tree) -> bool:
    return tolerates_hard(spec, new) and not tolerates_hard(spec, old)


def _matching(spec: Tree, old: Tree, new: Tree) -> bool:
    return matches_node(spec, new) and not matches_node(spec, old)


def _roomier(spec: Tree, old: Tree, new: Tree) -> bool:
    before, after = _allocatable(old), _allocatable(new)
    wanted = requests_of(spec).fit
    return any(after.get(name, 0) > before.get(name, 0) for name in wanted) and all(value <= after.get(name, 0) for name, value in wanted.items())


def _elsewhere(spec: Tree, old: Tree, new: Tree) -> bool:
    """What was refused for the sake of other pods is not the node's to change."""
    return False


def _allocatable(node: Tree) -> Mapping[str, int]:
    found = (node.get("status") or {}).get("allocatable")
    return _amounts(found) if found else {}


_amounts = by_identity(1024)(amounts)


HINTS: Mapping[str, Hint] = {
    "NodeUnschedulable": _uncordoned,
    "TaintToleration": _tolerated,
    "NodeAffinity": _matching,
    "NodePorts": _elsewhere,
    "NodeResourcesFit": _roomier,
}


def may_help(plugins: Iterable[str], spec: Tree, old: Tree, new: Tree) -> bool:
    """Tell whether a change of a node may turn a refusal by one of these plugins."""
    for plugin in plugins:
        hint = HINTS.get(plugin)
        if hint is None or hint(spec, old, new):
            return True
    return False
