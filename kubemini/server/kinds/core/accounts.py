"""The rules of ServiceAccounts."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.server.kinds.tables import SERVICE_ACCOUNT
from kubemini.server.strategy import Strategy, WriteContext

_MOUNTABLE = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(Strategy):
    """ServiceAccounts."""

    metadata_again = "after"
    table = SERVICE_ACCOUNT
    returns_deleted = True

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Name an annotation that goes out of use, where it was not there before."""
        before = old is not None and _MOUNTABLE in (old["metadata"].get("annotations") or {})
        if before or _MOUNTABLE not in (new["metadata"].get("annotations") or {}):
            return []
        return [f"metadata.annotations[{_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"]
