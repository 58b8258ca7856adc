"""APIs that others serve behind this one: found by group, told in discovery, asked for what they have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from kubemini.api.trees import Tree
from kubemini.machinery.aggregation import GET, AggregatedApi, AggregatedRequest, AggregatedResource
from kubemini.machinery.errors import MethodNotAllowed
from kubemini.server.http.paths import ResourcePath

Apis = Callable[[], Iterable[AggregatedApi]]


def read(apis: Iterable[AggregatedApi], method: str, where: ResourcePath, query: Mapping[str, str]) -> Tree | None:
    """Return the answer of the API that a path belongs to, or None where none has such a path. Raise what it answers otherwise, and `MethodNotAllowed`."""
    for api in apis:
        if api.group != where.group or where.version not in api.versions:
            continue
        resource = api.find(where.plural, where.subresource)
        if resource is None or resource.namespaced != (where.namespace is not None) or where.tail:
            return None
        if method not in ("GET", "HEAD"):
            raise MethodNotAllowed
        return api.read(AggregatedRequest(where.version, where.plural, where.namespace or "", where.name, where.subresource, query))
    return None


def listed(api: AggregatedApi) -> list[Tree]:
    """Return the resources of an API as the legacy documents list them."""
    found: list[Tree] = []
    for each in api.resources:
        shared: Tree = {"namespaced": each.namespaced, "kind": each.kind}
        found.append({"name": each.plural, "singularName": each.singular, **shared, "verbs": list(each.verbs)})
        found += [{"name": f"{each.plural}/{sub}", "singularName": "", **shared, "verbs": list(GET)} for sub in each.subresources]
    return found


def described(api: AggregatedApi, version: str) -> list[Tree]:
    """Return the resources of a version as the aggregated document lists them."""
    return [_described(api.group, version, each) for each in api.resources]


def _described(group: str, version: str, resource: AggregatedResource) -> Tree:
    kind = {"group": group, "version": version, "kind": resource.kind}
    return {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
        "subresources": [{"subresource": each, "responseKind": kind, "verbs": list(GET)} for each in resource.subresources],
    }
