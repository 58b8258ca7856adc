"""ResourceQuota: refuses what would exceed a quota of the namespace.

What is used follows from the stored objects at the moment of the write, so two writes can never both take the last of it. The
sums are kept from one write to the next and brought up to date by what changed in between.
Mirrors ``apiserver/pkg/admission/plugin/resourcequota`` (1.36), texts included.
"""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.api.trees import Tree
from kubemini.machinery import quantity, quota
from kubemini.machinery.errors import Forbidden
from kubemini.machinery.pod_requests import Amounts
from kubemini.machinery.quota_tally import Tally
from kubemini.server.admission import Admission, AdmissionRequest
from kubemini.server.strategy import Feed, Followable, Reader

QUOTAS = "resourcequotas"
_GROWING = ("pods", "services", "persistentvolumeclaims")
"""Kinds whose updates can use more than before."""


class ResourceQuota(Admission):
    """Holds new objects against the quotas of their namespace."""

    name = "ResourceQuota"
    subresources = ("", "resize")

    def __init__(self) -> None:
        self._ledger = _Ledger()

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
        used = self._ledger.used(limit, resource, request.namespace, request.ctx.reader, now)
        exceeded = sorted(name for name, size in wanted.items() if used[name] + size > quantity.nano(hard[name]))
        if exceeded:
            shown = {
                "requested": _listed(exceeded, wanted),
                "used": _listed(exceeded, used),
                "limited": ",".join(f"{name}={hard[name]}" for name in exceeded),
            }
            why = f"exceeded quota: {limit['metadata']['name']}, " + ", ".join(f"{key}: {text}" for key, text in shown.items())
            raise Forbidden.of(request.kind.plural, request.kind.group, request.name, why)


class _Ledger:
    """The tallies of all quotas, by resource and namespace, and the cursors that bring them up to date."""

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._feeds: dict[str, Feed] = {}
        self._tallies: dict[tuple[str, str], dict[str, Tally]] = {}

    def used(self, limit: Tree, resource: str, namespace: str, reader: Reader, now: float) -> Amounts:
        """Return what is used of a quota. O(changes since the last call)."""
        if not isinstance(reader, Followable):
            return quota.used(limit, ((resource, each) for each in reader.list(resource, namespace)), now)
        if reader is not self._reader:
            self._reader = reader
            self._feeds.clear()
            self._tallies.clear()
        self._catch_up(resource, reader)
        known = self._tallies.setdefault((resource, namespace), {})
        name = limit["metadata"]["name"]
        tally = known.get(name)
        if tally is None or tally.spec is not limit.get("spec"):
            self._forget_deleted(known, namespace, reader)
            tally = known[name] = Tally(limit, resource, reader.list(resource, namespace))
        return tally.used(now)

    def _catch_up(self, resource: str, reader: Followable) -> None:
        feed = self._feeds.get(resource)
        changes = feed.poll() if feed is not None else None
        if changes is None:
            self._feeds[resource] = reader.feed(resource)
            for key in [each for each in self._tallies if each[0] == resource]:
                del self._tallies[key]
            return
        for old, new in changes:
            metadata = (new or old or {})["metadata"]
            for tally in self._tallies.get((resource, metadata.get("namespace", "")), {}).values():
                tally.replace(old, new)

    def _forget_deleted(self, known: dict[str, Tally], namespace: str, reader: Reader) -> None:
        alive = {each["metadata"]["name"] for each in reader.list(QUOTAS, namespace)}
        for name in [each for each in known if each not in alive]:
            del known[name]


def _listed(names: list[str], amounts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={quota.shown(name, amounts[name])}" for name in names)
