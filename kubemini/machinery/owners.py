"""Owner references, as server and controllers read them."""

from __future__ import annotations

from kubemini.api.trees import Tree


def controller_of(obj: Tree) -> Tree | None:
    """Return the owner reference with ``controller: true``, or None."""
    for reference in obj["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            found: Tree = reference
            return found
    return None
