"""Writes `status.typeChecking` of every policy, once for each generation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS, VALIDATING_ADMISSION_POLICIES
from kubemini.api.trees import Tree
from kubemini.machinery.errors import NotFound
from kubemini.runtime.controller import Context, Controller

if TYPE_CHECKING:
    from kubemini.controllers.admission_policies.object_types import ObjectTypes


class PolicyStatusController(Controller):
    """Keys are names of policies."""

    name = "validatingadmissionpolicy-status"
    component = "validatingadmissionpolicy-status-controller"

    def __init__(self, kubernetes_version: str) -> None:
        super().__init__()
        self._version = kubernetes_version
        self._types: ObjectTypes | None = None

    def setup(self, ctx: Context) -> None:
        """Follow the policies, and definitions for the types of their kinds."""
        self._ctx = ctx
        self._policies = ctx.informer(VALIDATING_ADMISSION_POLICIES)
        self._definitions = ctx.informer(CUSTOM_RESOURCE_DEFINITIONS)
        self._policies.on_change(lambda old, new: self.queue.add(new["metadata"]["name"]) if new is not None else None)

    async def reconcile(self, key: str) -> float | None:
        """Check the expressions of one policy that was not checked since its spec changed."""
        policy = self._policies.get(key)
        if policy is None:
            return None
        generation = policy["metadata"].get("generation", 0)
        before: Tree = policy.get("status") or {}
        if before.get("observedGeneration", 0) >= generation:
            return None
        # Imported here: most clusters have no policy, and the language and all its types are a lot to load
        from kubemini.controllers.admission_policies.checking import warnings
        from kubemini.controllers.admission_policies.matching import kinds_of
        from kubemini.controllers.admission_policies.object_types import ObjectTypes

        if self._types is None:
            self._types = ObjectTypes(self._version, self._definitions)
        found = warnings(policy["spec"], kinds_of(policy["spec"], self._ctx.client.resources()), self._types)
        checked: Tree = {"expressionWarnings": found} if found else {}
        try:
            await self._ctx.client.update_status(
                VALIDATING_ADMISSION_POLICIES, {**policy, "status": {**before, "observedGeneration": generation, "typeChecking": checked}}
            )
        except NotFound:
            return None
        return None
