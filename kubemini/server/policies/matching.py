"""Which writes a webhook or policy is for: rules and selectors. Mirrors ``apiserver/pkg/admission/plugin/webhook/predicates`` (1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.labels import Selector, from_label_selector
from kubemini.server.admission import AdmissionRequest
from kubemini.server.registry import Kind, Served

_EXEMPT: Final = frozenset(
    f"{plural}.admissionregistration.k8s.io"
    for plural in (
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    )
)
"""What no webhook or policy is asked about, lest one lock everybody out."""


class Matcher:
    """The rules and selectors of one webhook, policy or binding. Without rules every resource fits."""

    def __init__(
        self,
        *,
        rules: Sequence[Tree] | None,
        excluded: Sequence[Tree] = (),
        namespaces: Tree | None = None,
        objects: Tree | None = None,
        exact: bool = False,
    ) -> None:
        self._rules = rules
        self._excluded = excluded
        self._namespaces = _selector(namespaces)
        self._objects = _selector(objects)
        self._exact = exact

    def served(self, request: AdmissionRequest) -> Served | None:
        """Return the kind in the version that fits, or None where the write is none of its business."""
        kind = request.kind
        if kind.storage in _EXEMPT:
            return None
        if any(_fits(rule, request, version.name) for rule in self._excluded for version in kind.versions if version.served):
            return None
        served = self._version(request)
        if served is None or not self._namespace_fits(request) or not self._object_fits(request):
            return None
        return served

    def _version(self, request: AdmissionRequest) -> Served | None:
        kind = request.kind
        names = [kind.storage_version]
        if not self._exact:
            names += [version.name for version in kind.versions if version.served and version.name != kind.storage_version]
        for name in names:
            if self._rules is None or any(_fits(rule, request, name) for rule in self._rules):
                return Served(kind, kind.by_name[name])
        return None

    def _namespace_fits(self, request: AdmissionRequest) -> bool:
        selector = self._namespaces
        if selector is None:
            return True
        if request.kind.storage == "namespaces":
            labels = _labels(request.obj if request.obj is not None else request.old)
        elif not request.namespace:
            return True
        else:
            labels = _labels(request.ctx.reader.get("namespaces", "", request.namespace))
        return selector.matches(labels)

    def _object_fits(self, request: AdmissionRequest) -> bool:
        selector = self._objects
        if selector is None:
            return True
        return any(selector.matches(_labels(obj)) for obj in (request.obj, request.old) if obj is not None)


def _selector(tree: Tree | None) -> Selector | None:
    """Return a selector, None for one that selects everything."""
    return from_label_selector(tree) if tree else None


def _labels(obj: Tree | None) -> Mapping[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _fits(rule: Tree, request: AdmissionRequest, version: str) -> bool:
    kind = request.kind
    return (
        _listed(rule.get("operations"), request.operation)
        and _listed(rule.get("apiGroups"), kind.group)
        and _listed(rule.get("apiVersions"), version)
        and _scope_fits(rule.get("scope") or "*", kind)
        and any(_resource_fits(each, kind.plural, request.subresource) for each in rule.get("resources") or ())
        and (not rule.get("resourceNames") or request.name in rule["resourceNames"])
    )


def _listed(values: Iterable[str] | None, wanted: str) -> bool:
    return any(each in ("*", wanted) for each in values or ())


def _resource_fits(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, sub = pattern.partition("/")
    return resource in ("*", plural) and sub in ("*", subresource)


def _scope_fits(scope: str, kind: Kind) -> bool:
    return scope == "*" or (scope == "Namespaced") == kind.namespaced
