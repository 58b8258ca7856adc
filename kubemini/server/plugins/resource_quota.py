"""ResourceQuota: refuses what would exceed a quota of the namespace.

What is used is counted from the stored objects at the moment of the write, so two writes can never both take the last of it.
Mirrors ``apiserver/pkg/admission/plugin/resourcequota`` (1.36), texts included.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.api.trees import Tree
from kubemini.machinery import quantity, quota
from kubemini.machinery.errors import Forbidden
from kubemini.machinery.pod_requests import Amounts
from kubemini.server.admission import Admission, AdmissionRequest

QUOTAS = "resourcequotas"
_GROWING = ("pods", "services", "persistentvolumeclaims")
"""Kinds whose updates can use more than before."""


class ResourceQuota(Admission):
    """Holds new objects against the quotas of their namespace."""

    name = "ResourceQuota"
    subresources = ("", "resize")

    def validate(self, request: AdmissionRequest) -> None:
        """Refuse what is too much. Raise `Forbidden`."""
        if not request.kind.namespaced or request.obj is None:
            return
        resource = request.kind.storage
        if request.operation == "UPDATE" and resource not in _GROWING:
            return
        quotas = request.ctx.reader.list(QUOTAS, request.namespace)
        if quotas:
            now = request.ctx.env.now()
            for each in quotas:
                self._hold(each, request, request.obj, resource, now)

    def _hold(self, limit: Tree, request: AdmissionRequest, obj: Tree, resource: str, now: float) -> None:
        hard: Mapping[str, str] = (limit.get("spec") or {}).get("hard") or {}
        amounts = quota.usage(resource, obj, now)
        if resource not in quota.resources_of(limit) or not quota.matches(limit, resource, obj):
            return
        if resource == "pods" and request.operation == "CREATE":
            missing = quota.missing_requests(obj, hard)
            if missing:
                why = f"failed quota: {limit['metadata']['name']}: must specify {missing}"
                raise Forbidden.of(request.kind.plural, request.kind.group, request.name, why)
        before: Amounts = {}
        if request.old is not None and quota.matches(limit, resource, request.old):
            before = quota.usage(resource, request.old, now)
        wanted = {name: amounts[name] - before.get(name, 0) for name in hard if name in amounts}
        wanted = {name: size for name, size in wanted.items() if size > 0}
        if not wanted:
            return
        objects = ((resource, each) for each in request.ctx.reader.list(resource, request.namespace))
        used = quota.used(limit, objects, now)
        exceeded = sorted(name for name, size in wanted.items() if used[name] + size > quantity.nano(hard[name]))
        if exceeded:
            shown = {
                "requested": _listed(exceeded, wanted),
                "used": _listed(exceeded, used),
                "limited": ",".join(f"{name}={hard[name]}" for name in exceeded),
            }
            why = f"exceeded quota: {limit['metadata']['name']}, " + ", ".join(f"{key}: {text}" for key, text in shown.items())
            raise Forbidden.of(request.kind.plural, request.kind.group, request.name, why)


def _listed(names: list[str], amounts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={quota.shown(name, amounts[name])}" for name in names)
