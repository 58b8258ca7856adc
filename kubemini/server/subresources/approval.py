"""``certificatesigningrequests/approval``: who may say yes or no to a request may change nothing else of it.

Mirrors the approval strategy of ``pkg/registry/certificates`` (1.36).
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.server.kinds.groups.signing import conditions_with_times, status_problems
from kubemini.server.registry import Kind
from kubemini.server.strategy import WriteContext
from kubemini.server.subresources.base import ObjectSubresource


class ApprovalSubresource(ObjectSubresource):
    """Approves or denies a request."""

    name = "approval"

    def merge(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> Tree:
        """Take the conditions, with their times."""
        found = conditions_with_times(new, old, ctx.env.stamp())
        status = {key: value for key, value in (old.get("status") or {}).items() if key != "conditions"}
        return {**old, "metadata": new["metadata"], "status": {**status, "conditions": found} if found else status}

    def validate(self, new: Tree, old: Tree, kind: Kind, ctx: WriteContext) -> list[FieldError]:
        """Check the conditions."""
        return list(status_problems(new, old))
