"""``pods/binding``: gives a pod its node. Mirrors ``BindingREST`` of ``pkg/registry/core/pod/storage`` (1.36).

Schedulers bind thousands of pods in a row, so a binding goes past the general update path, as it does upstream: what it
may change is fixed, and nothing else of the pod has to be looked at again.
"""

from __future__ import annotations

from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Conflict, FieldError, ServerError, not_supported, required
from kubemini.machinery.memo import by_identity
from kubemini.server.options import Outcome, WriteOptions
from kubemini.server.registry import Served
from kubemini.server.subresources.answers import CREATED, admitted, with_condition
from kubemini.server.subresources.base import ActionSubresource
from kubemini.server.verbs import Verbs

TOPOLOGY_LABELS: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")
"""Labels of a node that its pods get when they are bound (PodTopologyLabelsAdmission, on since 1.35)."""


class BindingSubresource(ActionSubresource):
    """Binds a pod to a node; the node need not exist."""

    name = "binding"

    async def act(self, api: Verbs, served: Served, namespace: str, name: str, body: Tree, options: WriteOptions) -> Outcome:
        """Assign the node. Raise `NotFound`, `Conflict`, `BadRequest`, `ServerError` (a malformed binding is no API error upstream)."""
        kind = served.kind
        if name != (body.get("metadata") or {}).get("name"):
            raise BadRequest("name in URL does not match name in Binding object")
        problems = binding_problems(body)
        if problems:
            raise ServerError(str(problems[0]) if len(problems) == 1 else f"[{', '.join(map(str, problems))}]")
        binding = await admitted(api, kind, namespace, name, self.name, body, options)
        record = api.live(kind, namespace, name)
        node = api.reader.get("nodes", "", binding["target"]["name"])
        pod = bound(record.obj, binding, node, api.env.stamp())
        if not options.dry_run:
            api.store.table(kind.storage).update(record.key, pod)
        return Outcome(CREATED, None, 201)


def binding_problems(binding: Tree) -> list[FieldError]:
    """Return what is wrong with the target of a Binding."""
    target: Tree = binding.get("target") or {}
    found: list[FieldError] = []
    if target.get("kind") not in (None, "", "Node"):
        found.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        found.append(required("target.name"))
    return found


def bound(pod: Tree, binding: Tree, node: Tree | None, stamp: str) -> Tree:
    """Return the pod assigned to the binding's target. Raise `Conflict` where it cannot be.

    Annotations and labels of the binding and the topology labels of the node are written over the pod's.
    """
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    asked: Tree = binding.get("metadata") or {}
    _same_object(meta, asked)
    if "deletionTimestamp" in meta:
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")
    labels = _topology((node["metadata"].get("labels") if node is not None else None) or _NONE)
    if asked.get("labels"):
        labels = {**asked["labels"], **labels}
    annotations: Tree = asked.get("annotations") or {}
    if labels or annotations:
        meta = {**meta}
        if labels:
            meta["labels"] = {**(meta.get("labels") or {}), **labels}
        if annotations:
            meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
    assigned = {**pod, "metadata": meta, "spec": {**spec, "nodeName": binding["target"]["name"]}}
    if "nominatedNodeName" in (pod.get("status") or {}):
        assigned["status"] = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    return with_condition(assigned, "PodScheduled", stamp, {})


_NONE: Tree = {}


@by_identity()
def _topology(labels: Tree) -> Tree:
    return {key: labels[key] for key in TOPOLOGY_LABELS if key in labels}


def _same_object(meta: Tree, asked: Tree) -> None:
    """Raise `Conflict` where the binding is for another pod of that name, or for another version of it."""
    for field, what in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        wanted = asked.get(field)
        if wanted and wanted != meta[field]:
            why = f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {meta[field]}"
            raise Conflict.of("pods", "", meta["name"], why)


def _refused(name: str, why: str) -> Conflict:
    return Conflict.of("pods/binding", "", name, why)
