"""Pods from templates: what a pod has that its template has not."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.memo import by_identity


@by_identity()
def pod_spec(template: Tree) -> Tree:
    """Return the spec of a template as that of a pod: Go defaults ``enableServiceLinks`` in pods alone. The same object for the same spec."""
    return template if "enableServiceLinks" in template else {**template, "enableServiceLinks": True}
