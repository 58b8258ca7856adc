"""A suspended child Job on its way back: what the JobSet's template says by now reaches the Job before it runs.

Labels, annotations and tolerations are merged into the Job's, for others (the Job controller, an admission webhook) may have added theirs; the template wins. Node
selectors and scheduling gates are taken over as a whole: an entry of an earlier admission that stayed behind would keep the pods pending for ever.
"""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset.view import Role


def resumed(job: Tree, role: Role) -> Tree:
    """Return a Job with suspend off and the scheduling fields of its role's template."""
    spec = job["spec"]
    return {**job, "spec": {**spec, "suspend": False, "template": _merged(spec["template"], role)}}


def _merged(template: Tree, role: Role) -> Tree:
    theirs_meta, theirs = role.pod_template.get("metadata") or {}, role.pod_spec
    meta, spec = template.get("metadata") or {}, template["spec"]
    selector = dict(theirs.get("nodeSelector") or {})
    own = (spec.get("nodeSelector") or {}).get(names.NAMESPACED_JOB)
    if own is not None:
        # the node-selector strategy's, made for this Job
        selector[names.NAMESPACED_JOB] = own
    new_meta = _with(
        meta, labels=_maps(meta.get("labels"), theirs_meta.get("labels")), annotations=_maps(meta.get("annotations"), theirs_meta.get("annotations"))
    )
    new_spec = _with(
        spec,
        nodeSelector=selector,
        tolerations=_lists(spec.get("tolerations"), theirs.get("tolerations")),
        schedulingGates=theirs.get("schedulingGates") or [],
    )
    return template if new_meta is meta and new_spec is spec else {**template, "metadata": new_meta, "spec": new_spec}


def _with(tree: Tree, **fields: Any) -> Tree:
    """Return a tree with fields replaced, empty ones left out; the same one where nothing changes."""
    changed = {name: value for name, value in fields.items() if (tree.get(name) or None) != (value or None)}
    if not changed:
        return tree
    return {name: value for name, value in {**tree, **changed}.items() if value or name not in changed}


def _maps(old: Tree | None, new: Tree | None) -> Tree:
    return {**(old or {}), **(new or {})}


def _lists(old: list[Tree] | None, new: list[Tree] | None) -> list[Tree]:
    kept = list(old or ())
    return kept + [item for item in new or () if item not in kept]
