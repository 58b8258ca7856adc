"""Adding and removing finalizers by path copy."""

from __future__ import annotations

from kubemini.api.trees import Tree


def has_finalizer(tree: Tree, name: str) -> bool:
    """Tell whether an object has a finalizer."""
    return name in (tree["metadata"].get("finalizers") or ())


def with_finalizer(tree: Tree, name: str) -> Tree:
    """Return the object with a finalizer; itself where it is there."""
    if has_finalizer(tree, name):
        return tree
    meta = tree["metadata"]
    return {**tree, "metadata": {**meta, "finalizers": [*(meta.get("finalizers") or ()), name]}}


def without_finalizer(tree: Tree, name: str) -> Tree | None:
    """Return the object without a finalizer, or None where it has none."""
    if not has_finalizer(tree, name):
        return None
    meta = dict(tree["metadata"])
    rest = [each for each in meta["finalizers"] if each != name]
    if rest:
        meta["finalizers"] = rest
    else:
        del meta["finalizers"]
    return {**tree, "metadata": meta}
