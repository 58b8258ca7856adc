"""Which ReplicaSet is the new one, and the annotations that carry revisions and sizes between a Deployment and its ReplicaSets. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.deployment.amounts import max_surge, number_annotation, replicas
from kubemini.controllers.replica_set.template_hash import template_hash
from kubemini.runtime.keys import owner_reference

HISTORY_LENGTH = 2000
"""Characters of a ReplicaSet's list of earlier revisions."""
ROLLBACK_TO = "deprecated.deployment.rollback.to"
"""Annotation of a Deployment: the revision to go back to, 0 for the last but one (what extensions/v1beta1 had a field for)."""
_NOT_COPIED = (
    names.LAST_APPLIED,
    names.DEPLOYMENT_REVISION,
    names.DEPLOYMENT_REVISION_HISTORY,
    names.DESIRED_REPLICAS,
    names.MAX_REPLICAS,
    ROLLBACK_TO,
)


def without_hash(template: Tree) -> Tree:
    """Return the template of a ReplicaSet as its Deployment has it."""
    meta = template.get("metadata") or {}
    labels = {name: value for name, value in (meta.get("labels") or {}).items() if name != names.POD_TEMPLATE_HASH}
    return {**template, "metadata": {**meta, "labels": labels}}


def same_template(one: Tree, other: Tree) -> bool:
    """Tell whether two templates make the same pods, apart from the hash label."""
    if one.get("spec") != other.get("spec"):
        return False
    left, right = without_hash(one), without_hash(other)
    return {key: value for key, value in left["metadata"].items() if value} == {key: value for key, value in right["metadata"].items() if value}


def by_creation(sets: Iterable[Tree]) -> list[Tree]:
    """Return ReplicaSets from the oldest to the newest."""
    return sorted(sets, key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]))


def find_new(deployment: Tree, sets: Iterable[Tree]) -> Tree | None:
    """Return the ReplicaSet of the Deployment's template: the oldest, should there be several."""
    template = deployment["spec"]["template"]
    for each in by_creation(sets):
        if same_template(each["spec"]["template"], template):
            return each
    return None


def revision(obj: Tree) -> int:
    """Return the revision of a ReplicaSet or Deployment, 0 where it has none."""
    return number_annotation(obj, names.DEPLOYMENT_REVISION) or 0


def last_but_one(sets: Iterable[Tree]) -> int:
    """Return the second greatest revision, 0 where there is none."""
    return sorted([0, 0, *map(revision, sets)])[-2]


def rollback_to(deployment: Tree) -> int | None:
    """Return the revision that a Deployment is to go back to, None where there is no such wish that can be read."""
    return number_annotation(deployment, ROLLBACK_TO)


def annotations_from(target: Tree, annotations: Tree) -> Tree:
    """Return the annotations of a Deployment that goes back to a ReplicaSet: that one's, which were its own then, and those that it keeps for itself."""
    kept = {name: value for name, value in annotations.items() if name in _NOT_COPIED}
    return {**kept, **{name: value for name, value in (target["metadata"].get("annotations") or {}).items() if name not in _NOT_COPIED}}


def next_revision(old_sets: Sequence[Tree]) -> int:
    """Return the number after the greatest of the old ones."""
    return max(map(revision, old_sets), default=0) + 1


def annotated(deployment: Tree, annotations: Tree, number: int) -> Tree:
    """Return the annotations of the new ReplicaSet: those of the Deployment, the revision, and the revisions that it was before. The same object where nothing changes."""
    found = annotations
    for name, value in (deployment["metadata"].get("annotations") or {}).items():
        if name not in _NOT_COPIED and found.get(name) != value:
            found = {**found, name: value}
    before = annotations.get(names.DEPLOYMENT_REVISION, "")
    if before and not before.lstrip("-").isdecimal():
        return found
    if int(before or 0) < number:
        found = {**found, names.DEPLOYMENT_REVISION: str(number)}
        if before:
            found[names.DEPLOYMENT_REVISION_HISTORY] = _history(annotations.get(names.DEPLOYMENT_REVISION_HISTORY, ""), before)
    return found


def _history(history: str, before: str) -> str:
    if not history:
        return before
    numbers = history.split(",")
    while numbers and len(",".join([*numbers, before])) > HISTORY_LENGTH:
        numbers.pop(0)
    return ",".join([*numbers, before])


def sized(deployment: Tree, annotations: Tree) -> Tree:
    """Return annotations that tell the sizes wished; the same object where they do."""
    wanted, most = str(replicas(deployment)), str(replicas(deployment) + max_surge(deployment))
    if annotations.get(names.DESIRED_REPLICAS) == wanted and annotations.get(names.MAX_REPLICAS) == most:
        return annotations
    return {**annotations, names.DESIRED_REPLICAS: wanted, names.MAX_REPLICAS: most}


def made(deployment: Tree, number: int, size: int) -> Tree:
    """Return a new ReplicaSet for the Deployment's template."""
    meta, spec = deployment["metadata"], deployment["spec"]
    template = spec["template"]
    hashed = template_hash(template, (deployment.get("status") or {}).get("collisionCount"))
    about = template.get("metadata") or {}
    labels = {**(about.get("labels") or {}), names.POD_TEMPLATE_HASH: hashed}
    selector = spec["selector"]
    made_spec: Tree = {
        "replicas": size,
        "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), names.POD_TEMPLATE_HASH: hashed}},
        "template": {**template, "metadata": {**about, "labels": labels}},
    }
    if spec.get("minReadySeconds"):
        made_spec["minReadySeconds"] = spec["minReadySeconds"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name']}-{hashed}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": sized(deployment, annotated(deployment, {}, number)),
            "ownerReferences": [owner_reference({**deployment, "apiVersion": "apps/v1", "kind": "Deployment"})],
        },
        "spec": made_spec,
    }
