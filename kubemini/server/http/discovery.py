"""Discovery: what is served, in the legacy documents and in the aggregated one. Built once per registry generation."""

from __future__ import annotations

from hashlib import sha512

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.aggregation import AggregatedApi
from kubemini.server.http.aggregated import Apis, described, listed
from kubemini.server.registry import Kind, Registry, Served, Subresource

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_GROUP_ORDER = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
"""kube-apiserver's group priorities; other groups follow by name."""


class Discovery:
    """The documents of one registry."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.apis: Apis = tuple
        """What others serve behind this server: groups that come after all of its own."""
        self._others: tuple[AggregatedApi, ...] = ()
        self._generation = -1
        self._documents: dict[str, bytes] = {}
        self._aggregated: dict[str, tuple[bytes, str]] = {}

    def _fresh(self) -> None:
        others = tuple(self.apis())
        if self._generation != self._registry.generation or others != self._others:
            self._generation, self._others = self._registry.generation, others
            self._documents.clear()
            self._aggregated.clear()

    def groups(self) -> dict[str, list[str]]:
        """Return the served versions by group, in discovery order."""
        found = self._registry.group_versions()
        ordered = [group for group in _GROUP_ORDER if group in found]
        ordered += sorted(group for group in found if group not in _GROUP_ORDER)
        return {group: found[group] for group in ordered} | {each.group: list(each.versions) for each in self.apis()}

    # ------------------------------------------------------------------ legacy

    def document(self, path: str) -> bytes | None:
        """Return the legacy document at ``/apis``, ``/apis/GROUP``, ``/api/v1`` or ``/apis/GROUP/VERSION``, or None."""
        self._fresh()
        found = self._documents.get(path)
        if found is None:
            tree = self._document(path)
            if tree is None:
                return None
            found = self._documents[path] = orjson.dumps(tree)
        return found

    def _document(self, path: str) -> Tree | None:
        parts = path.strip("/").split("/")
        groups = self.groups()
        if parts == ["apis"]:
            listed = [self._group(group, versions) for group, versions in groups.items() if group]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        if parts[0] == "api" and len(parts) == 2 and parts[1] in groups.get("", ()):
            return self._resources("", parts[1])
        if parts[0] == "apis" and len(parts) == 2 and parts[1] in groups and parts[1]:
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1], groups[parts[1]])}
        if parts[0] == "apis" and len(parts) == 3 and parts[2] in groups.get(parts[1], ()):
            return self._resources(parts[1], parts[2])
        return None

    @staticmethod
    def _group(group: str, versions: list[str]) -> Tree:
        listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
        return {"name": group, "versions": listed, "preferredVersion": listed[0]}

    def _served(self, group: str, version: str) -> list[Served]:
        found = (self._registry.served(group, version, kind.plural) for kind in self._registry if kind.group == group)
        return [served for served in found if served is not None]

    def _resources(self, group: str, version: str) -> Tree:
        resources: list[Tree] = [entry for api in self._others if api.group == group for entry in listed(api)]
        for served in self._served(group, version):
            kind = served.kind
            entry: Tree = {
                "name": kind.plural,
                "singularName": kind.singular,
                "namespaced": kind.namespaced,
                "kind": kind.kind,
                "verbs": _verbs(kind),
            }
            if kind.short_names:
                entry["shortNames"] = list(kind.short_names)
            if kind.categories:
                entry["categories"] = list(kind.categories)
            resources.append(entry)
            for sub in _subresources(kind):
                below: Tree = {"name": f"{kind.plural}/{sub.name}", "singularName": "", "namespaced": kind.namespaced}
                if sub.version:
                    below |= {"group": sub.group, "version": sub.version}
                resources.append(below | {"kind": sub.kind, "verbs": list(sub.verbs)})
        resources.sort(key=lambda each: each["name"])
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{group}/{version}" if group else version, "resources": resources}

    # ------------------------------------------------------------------ aggregated

    def aggregated(self, root: str) -> tuple[bytes, str]:
        """Return the aggregated document of ``api`` or ``apis`` and its ETag."""
        self._fresh()
        found = self._aggregated.get(root)
        if found is None:
            groups = {group: versions for group, versions in self.groups().items() if (group == "") == (root == "api")}
            items = [self._aggregated_group(group, versions) for group, versions in groups.items()]
            body = orjson.dumps({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
            found = self._aggregated[root] = (body, f'"{sha512(body).hexdigest().upper()}"')
        return found

    def _aggregated_group(self, group: str, versions: list[str]) -> Tree:
        meta: Tree = {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None}
        return {
            "metadata": meta,
            "versions": [
                {
                    "version": version,
                    "resources": [
                        *(self._aggregated_resource(served) for served in self._served(group, version)),
                        *(entry for api in self._others if api.group == group for entry in described(api, version)),
                    ],
                    "freshness": "Current",
                }
                for version in versions
            ],
        }

    @staticmethod
    def _aggregated_resource(served: Served) -> Tree:
        kind = served.kind
        entry: Tree = {
            "resource": kind.plural,
            "responseKind": {"group": kind.group, "version": served.version.name, "kind": kind.kind},
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "singularResource": kind.singular,
            "verbs": _verbs(kind),
        }
        if kind.short_names:
            entry["shortNames"] = list(kind.short_names)
        if kind.categories:
            entry["categories"] = list(kind.categories)
        below = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.group if sub.version else kind.group,
                    "version": sub.version or served.version.name,
                    "kind": sub.kind,
                },
                "verbs": list(sub.verbs),
            }
            for sub in _subresources(kind)
        ]
        if below:
            entry["subresources"] = below
        return entry


_CUSTOM_ORDER = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")


def _verbs(kind: Kind) -> list[str]:
    """Return the verbs in the order in which the real server lists them: sorted, but for custom resources."""
    return [verb for verb in _CUSTOM_ORDER if verb in kind.verbs] if kind.custom else list(kind.verbs)


def _subresources(kind: Kind) -> list[Subresource]:
    """Return the declared subresources, with status and scale as the strategy serves them."""
    listed = {sub.name: sub for sub in kind.subresources}
    if kind.strategy.scale is not None:
        listed.setdefault("scale", Subresource("scale", "Scale", ("get", "patch", "update"), "autoscaling", "v1"))
    if kind.strategy.has_status:
        listed.setdefault("status", Subresource("status", kind.kind, ("get", "patch", "update")))
    return sorted(listed.values(), key=lambda each: each.name)
