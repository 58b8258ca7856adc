"""What several action subresources share: the success answer, pod conditions, and admission of the posted object."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kubemini.api.trees import Tree
from kubemini.server.admission import AdmissionRequest
from kubemini.server.options import WriteOptions
from kubemini.server.registry import Kind
from kubemini.server.verbs import Verbs

CREATED: Tree = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
"""The answer of an action that makes no object."""


def with_condition(pod: Tree, kind: str, stamp: str, fields: Mapping[str, Any]) -> Tree:
    """Return the pod with a condition that is True; its transition time is kept where it was True before."""
    status: Tree = pod.get("status") or {}
    conditions: list[Tree] = status.get("conditions") or []
    if not conditions and not fields:
        return {**pod, "status": {**status, "conditions": _only(kind, stamp, pod["metadata"].get("generation") or 0)}}
    before = next((each for each in conditions if each.get("type") == kind), None)
    since = before.get("lastTransitionTime") if before is not None and before.get("status") == "True" else stamp
    condition: Tree = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": since or stamp, **fields}
    generation = pod["metadata"].get("generation")
    if generation:
        condition["observedGeneration"] = generation
    changed = [condition if each is before else each for each in conditions] if before is not None else [*conditions, condition]
    return {**pod, "status": {**status, "conditions": changed}}


@lru_cache(maxsize=1024)
def _only(kind: str, stamp: str, generation: int) -> list[Tree]:
    """Return the conditions of a pod that has but this one: the same list for all pods that got it in the same second."""
    condition: Tree = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": stamp}
    if generation:
        condition["observedGeneration"] = generation
    return [condition]


async def admitted(
    api: Verbs, kind: Kind, namespace: str, name: str, subresource: str, obj: Tree, options: WriteOptions, *, operation: str = "CREATE"
) -> Tree:
    """Bring an object that was posted to a subresource through admission, and return it as admission leaves it. Raise what refuses it."""
    ctx = api.context(options)
    request = AdmissionRequest(kind, operation, namespace, name, obj, None, ctx, subresource=subresource)
    api.chain.mutate(request)
    remote = [each for each in api.chain.remote if each.matches(request)]
    for each in remote:
        new = await each.mutate(request)
        if new is not None:
            request.obj = new
    api.chain.validate(request)
    for each in remote:
        await each.validate(request)
    return request.obj or obj
