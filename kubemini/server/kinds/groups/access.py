"""rbac.authorization.k8s.io: roles and bindings. Mirrors ``pkg/apis/rbac/validation`` (1.36)."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import invalid, not_supported, required
from kubemini.server.kinds.core.formats import Errors, wrong
from kubemini.server.kinds.internal_types import Struct

RBAC = "rbac.authorization.k8s.io"
_ROLE_REF = Struct(APIGroup="", Kind="", Name="")


def role(obj: Tree) -> Errors:
    """Check a Role."""
    yield from _rules(obj, namespaced=True)


def cluster_role(obj: Tree) -> Errors:
    """Check a ClusterRole."""
    yield from _rules(obj, namespaced=False)
    selectors = (obj.get("aggregationRule") or {}).get("clusterRoleSelectors")
    if obj.get("aggregationRule") is not None and not selectors:
        yield required("aggregationRule.clusterRoleSelectors", "at least one clusterRoleSelector required if aggregationRule is non-nil")
    for index, selector in enumerate(selectors or ()):
        yield from labels.validate_label_selector(selector, f"aggregationRule.clusterRoleSelectors[{index}]")


def _rules(obj: Tree, *, namespaced: bool) -> Errors:
    for index, rule in enumerate(obj.get("rules") or ()):
        here = f"rules[{index}]"
        if not rule.get("verbs"):
            yield required(f"{here}.verbs", "verbs must contain at least one value")
        if rule.get("nonResourceURLs"):
            if namespaced:
                yield invalid(f"{here}.nonResourceURLs", rule["nonResourceURLs"], "namespaced rules cannot apply to non-resource URLs")
            if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
                yield invalid(
                    f"{here}.nonResourceURLs", rule["nonResourceURLs"], "rules cannot apply to both regular resources and non-resource URLs"
                )
            continue
        if not rule.get("apiGroups"):
            yield required(f"{here}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{here}.resources", "resource rules must supply at least one resource")


def role_binding(obj: Tree) -> Errors:
    """Check a RoleBinding."""
    yield from _binding(obj, ("ClusterRole", "Role"), namespaced=True)


def cluster_role_binding(obj: Tree) -> Errors:
    """Check a ClusterRoleBinding."""
    yield from _binding(obj, ("ClusterRole",), namespaced=False)


def _binding(obj: Tree, kinds: tuple[str, ...], *, namespaced: bool) -> Errors:
    reference = obj.get("roleRef") or {}
    if reference.get("apiGroup") != RBAC:
        yield not_supported("roleRef.apiGroup", reference.get("apiGroup", ""), (RBAC,))
    if reference.get("kind") not in kinds:
        yield not_supported("roleRef.kind", reference.get("kind", ""), kinds)
    if reference.get("name"):
        yield from wrong(names.path_segment, reference["name"], "roleRef.name")
    else:
        yield required("roleRef.name")
    for index, subject in enumerate(obj.get("subjects") or ()):
        yield from _subject(subject, f"subjects[{index}]", namespaced=namespaced)


def _subject(subject: Tree, path: str, *, namespaced: bool) -> Errors:
    kind, group, name = subject.get("kind", ""), subject.get("apiGroup", ""), subject.get("name", "")
    if not name:
        yield required(f"{path}.name")
    match kind:
        case "ServiceAccount":
            if name:
                yield from wrong(names.dns1123_subdomain, name, f"{path}.name")
            if group:
                yield not_supported(f"{path}.apiGroup", group, ("",))
            if not subject.get("namespace") and not namespaced:
                yield required(f"{path}.namespace")
        case "User" | "Group":
            if group != RBAC:
                yield not_supported(f"{path}.apiGroup", group, (RBAC,))
        case _:
            yield not_supported(f"{path}.kind", kind, ("Group", "ServiceAccount", "User"))


def binding_change(new: Tree, old: Tree) -> Errors:
    """The role that is bound stays."""
    if new.get("roleRef") != old.get("roleRef"):
        yield invalid("roleRef", _ROLE_REF.shown(new.get("roleRef")), "cannot change roleRef")
