"""The loop over ProvisioningRequests. It follows nothing else, and reads nodes and pods when it has to decide: a cluster without requests pays for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from kubemini.api.resources import NODES, POD_TEMPLATES, PODS, PROVISIONING_REQUESTS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import provisioning as names
from kubemini.machinery.errors import NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

if TYPE_CHECKING:
    from kubemini.controllers.cluster_autoscaler.answers import Condition


class ProvisioningAnswers(Controller):
    """Keys are ProvisioningRequests. `latency`: seconds from acceptance to the answer where the request says nothing of it."""

    name = "cluster-autoscaler"
    component = "cluster-autoscaler"

    def __init__(self, latency: float) -> None:
        super().__init__()
        self._latency = latency

    def setup(self, ctx: Context) -> None:
        """Follow requests."""
        self._ctx = ctx
        self._requests = ctx.informer(PROVISIONING_REQUESTS)
        self._requests.on_change(lambda old, new: self.queue.add(key_of(new)) if new is not None else None)

    async def reconcile(self, key: str) -> float | None:
        """Take the next step with a request."""
        from kubemini.controllers.cluster_autoscaler import answers, script

        request = self._requests.get_key(key)
        if request is None or "deletionTimestamp" in request["metadata"] or request["spec"]["provisioningClassName"] not in answers.CLASSES:
            return None
        if answers.over(request):
            return None
        templates, missing = await self._templates(request)
        try:
            told = script.script_of(request, list(templates.values()))
        except script.BadScript as problem:
            await self._write(request, [(names.FAILED, True, "InvalidScript", str(problem))])
            return None
        now = self._ctx.env.now()
        step = answers.next_step(request, told, self._latency, now)
        if step is None and missing:
            await self._write(request, [(names.FAILED, True, answers.FAILED_TO_CREATE_PODS, missing)])
            return None
        if step is None:
            step = answers.next_step(request, told, self._latency, now, await self._room(request, templates))
        if step is None or not step.conditions:
            return step.again if step is not None else None
        provisioned = any(type_ == names.PROVISIONED and status for type_, status, _, _ in step.conditions)
        await self._write(request, step.conditions, told.details if provisioned else None)
        return step.again

    async def _templates(self, request: Tree) -> tuple[dict[str, Tree], str]:
        """Return the PodTemplates of a request by name, and what is wrong where one is missing."""
        found, missing = {}, ""
        for each in request["spec"]["podSets"]:
            name = each["podTemplateRef"]["name"]
            try:
                found[name] = await self._ctx.client.get(POD_TEMPLATES, name, request["metadata"]["namespace"])
            except NotFound as problem:
                missing = missing or str(problem)
        return found, missing

    async def _room(self, request: Tree, templates: Mapping[str, Tree]) -> bool:
        """Tell whether the pods of a request have a place, beside those of other requests for which room is set aside."""
        from kubemini.controllers.cluster_autoscaler.room import Room, asked, books, consumers, left

        client = self._ctx.client
        pods = await client.list(PODS)
        room, there = Room(await client.list(NODES), pods), consumers(pods)
        for other in await client.list(PROVISIONING_REQUESTS):
            meta = other["metadata"]
            if books(other) and meta["uid"] != request["metadata"]["uid"]:
                theirs, _ = await self._templates(other)
                room.take(left(asked(other, theirs), there.get((meta["namespace"], meta["name"]), 0)))
        return room.take(asked(request, templates))

    async def _write(self, request: Tree, conditions: Sequence[Condition], details: Mapping[str, str] | None = None) -> None:
        status, meta = request.get("status") or {}, request["metadata"]
        merged: dict[str, Tree] = {each["type"]: each for each in status.get("conditions") or ()}
        for type_, value, reason, message in conditions:
            merged[type_] = {
                "type": type_,
                "status": "True" if value else "False",
                "observedGeneration": meta["generation"],
                "lastTransitionTime": self._ctx.env.stamp(),
                "reason": reason,
                "message": message,
            }
        new = {**status, "conditions": list(merged.values()), **({"provisioningClassDetails": dict(details)} if details else {})}
        try:
            await self._ctx.client.update_status(PROVISIONING_REQUESTS, {**request, "status": new})
        except NotFound:
            return
