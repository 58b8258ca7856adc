"""RBAC as a decision: may a user do something, and which binding says so. Mirrors ``plugin/pkg/auth/authorizer/rbac`` (1.36)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.server.strategy import Reader

MASTERS: Final = "system:masters"
"""The group that may do everything, whatever the bindings say."""
_ACCOUNT = "system:serviceaccount:"
ROLES, CLUSTER_ROLES = "roles.rbac.authorization.k8s.io", "clusterroles.rbac.authorization.k8s.io"
BINDINGS, CLUSTER_BINDINGS = "rolebindings.rbac.authorization.k8s.io", "clusterrolebindings.rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Attributes:
    """What somebody wants to do: a verb on a resource, or, with `path`, on a URL that is no resource."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    name: str = ""
    namespace: str = ""
    path: str = ""

    @property
    def whole_resource(self) -> str:
        """``resource`` or ``resource/subresource``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether it is allowed, and why."""

    allowed: bool
    reason: str = ""


def decide(reader: Reader, user: str, groups: Sequence[str], wanted: Attributes) -> Decision:
    """Return whether a user may do something. Cluster-wide bindings are asked first. O(bindings)."""
    if MASTERS in groups:
        return Decision(allowed=True)
    for binding, subject, rules in _granted(reader, user, groups, wanted.namespace):
        if any(allows(rule, wanted) for rule in rules):
            return Decision(allowed=True, reason=_reason(binding, subject))
    return Decision(allowed=False)


def rules_of(reader: Reader, user: str, groups: Sequence[str], namespace: str) -> list[Tree]:
    """Return all rules that hold for a user in a namespace."""
    found = [rule for _, _, rules in _granted(reader, user, groups, namespace) for rule in rules]
    if MASTERS in groups and not found:
        found = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    return found


def refusal(user: str, wanted: Attributes) -> str:
    """Return the text of a refusal, behind ``RESOURCE is forbidden: ``."""
    if wanted.path:
        return f'User "{user}" cannot {wanted.verb} path "{wanted.path}"'
    where = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    return f'User "{user}" cannot {wanted.verb} resource "{wanted.whole_resource}" in API group "{wanted.group}" {where}'


def allows(rule: Tree, wanted: Attributes) -> bool:
    """Tell whether one rule allows something."""
    if not _matches(rule.get("verbs"), wanted.verb):
        return False
    if wanted.path:
        return any(_matches_path(each, wanted.path) for each in rule.get("nonResourceURLs") or ())
    if not _matches(rule.get("apiGroups"), wanted.group) or not _matches_resource(rule.get("resources") or (), wanted):
        return False
    names = rule.get("resourceNames") or ()
    return not names or wanted.name in names


def _matches(values: Any, wanted: str) -> bool:
    return any(each in ("*", wanted) for each in values or ())


def _matches_resource(values: Sequence[str], wanted: Attributes) -> bool:
    return any(each in ("*", wanted.whole_resource) or (wanted.subresource and each == f"*/{wanted.subresource}") for each in values)


def _matches_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def _granted(reader: Reader, user: str, groups: Sequence[str], namespace: str) -> Iterator[tuple[Tree, Tree, list[Tree]]]:
    """Yield binding, subject and rules of each binding that is for a user."""
    for binding in reader.list(CLUSTER_BINDINGS):
        subject = _subject(binding, user, groups, "")
        if subject is not None:
            yield binding, subject, _rules(reader, binding, "")
    if namespace:
        for binding in reader.list(BINDINGS, namespace):
            subject = _subject(binding, user, groups, namespace)
            if subject is not None:
                yield binding, subject, _rules(reader, binding, namespace)


def _subject(binding: Tree, user: str, groups: Sequence[str], namespace: str) -> Tree | None:
    for subject in binding.get("subjects") or ():
        kind, name = subject.get("kind"), subject.get("name", "")
        if kind == "User":
            fits = user == name
        elif kind == "Group":
            fits = name in groups
        else:
            fits = kind == "ServiceAccount" and user == f"{_ACCOUNT}{subject.get('namespace') or namespace}:{name}"
        if fits:
            return dict(subject)
    return None


def _rules(reader: Reader, binding: Tree, namespace: str) -> list[Tree]:
    reference = binding.get("roleRef") or {}
    name = reference.get("name", "")
    role = reader.get(ROLES, namespace, name) if reference.get("kind") == "Role" else reader.get(CLUSTER_ROLES, "", name)
    return list((role or {}).get("rules") or ())


def _reason(binding: Tree, subject: Tree) -> str:
    metadata, reference = binding["metadata"], binding.get("roleRef") or {}
    space = metadata.get("namespace", "")
    shown = f'RoleBinding "{metadata["name"]}/{space}"' if space else f'ClusterRoleBinding "{metadata["name"]}"'
    who = subject.get("name", "")
    if subject.get("kind") == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or space}"
    return f'RBAC: allowed by {shown} of {reference.get("kind")} "{reference.get("name")}" to {subject.get("kind")} "{who}"'
