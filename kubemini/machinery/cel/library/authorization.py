"""Permissions (apiserver ``pkg/cel/library/authz.go``): may the user of a request, or a service account, do something?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from kubemini.machinery import names
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.overloads import OPAQUE, function
from kubemini.machinery.cel.values import Opaque

Ask = Callable[[str, tuple[str, ...], Mapping[str, str]], tuple[bool, str]]
"""Tells whether a user with its groups may do something, and why. The mapping has ``verb`` and either ``path``, or those of ``group``, ``resource``, ``subresource``,
``namespace`` and ``name`` that are known."""


@dataclass(frozen=True, slots=True)
class Authorizer(Opaque):
    """Who asks, and whom."""

    user: str
    groups: tuple[str, ...]
    ask: Ask = field(compare=False)

    type_name = OPAQUE["Authorizer"]


@dataclass(frozen=True, slots=True)
class PathCheck(Opaque):
    """A question about a path that is no resource."""

    authorizer: Authorizer
    path: str

    type_name = OPAQUE["PathCheck"]


@dataclass(frozen=True, slots=True)
class GroupCheck(Opaque):
    """The beginning of a question about a resource."""

    authorizer: Authorizer
    group: str

    type_name = OPAQUE["GroupCheck"]


@dataclass(frozen=True, slots=True)
class ResourceCheck(Opaque):
    """A question about a resource."""

    authorizer: Authorizer
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: str = ""
    labels: str = ""

    type_name = OPAQUE["ResourceCheck"]


@dataclass(frozen=True, slots=True)
class Decision(Opaque):
    """The answer."""

    allowed: bool
    reason: str

    type_name = OPAQUE["Decision"]


@function("(Authorizer).path(string) -> PathCheck", "authorizer_path")
def path(authorizer: Authorizer, text: str) -> PathCheck:
    """Ask about a path."""
    if not text.strip():
        raise CelEvaluationError("path must not be empty")
    return PathCheck(authorizer, text)


@function("(Authorizer).group(string) -> GroupCheck", "authorizer_group")
def group(authorizer: Authorizer, text: str) -> GroupCheck:
    """Ask about an API group, "" for the core group."""
    return GroupCheck(authorizer, text)


@function("(Authorizer).serviceAccount(string, string) -> Authorizer", "authorizer_serviceaccount")
def service_account(authorizer: Authorizer, namespace: str, name: str) -> Authorizer:
    """Ask for a service account in place of the user."""
    if names.dns1123_subdomain(name):
        raise CelEvaluationError("Invalid service account name")
    if names.dns1123_label(namespace):
        raise CelEvaluationError("Invalid service account namespace")
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return Authorizer(f"system:serviceaccount:{namespace}:{name}", groups, authorizer.ask)


@function("(GroupCheck).resource(string) -> ResourceCheck", "groupcheck_resource")
def resource(check: GroupCheck, text: str) -> ResourceCheck:
    """Ask about a resource of the group."""
    if not text.strip():
        raise CelEvaluationError("resource must not be empty")
    return ResourceCheck(check.authorizer, check.group, text)


@function("(ResourceCheck).subresource(string) -> ResourceCheck", "resourcecheck_subresource")
def subresource(check: ResourceCheck, text: str) -> ResourceCheck:
    """Ask about a subresource."""
    return replace(check, subresource=text)


@function("(ResourceCheck).namespace(string) -> ResourceCheck", "resourcecheck_namespace")
def namespace(check: ResourceCheck, text: str) -> ResourceCheck:
    """Ask about one namespace."""
    return replace(check, namespace=text)


@function("(ResourceCheck).name(string) -> ResourceCheck", "resourcecheck_name")
def name(check: ResourceCheck, text: str) -> ResourceCheck:
    """Ask about one object."""
    return replace(check, name=text)


@function("(ResourceCheck).fieldSelector(string) -> ResourceCheck", "resourcecheck_fieldselector")
def field_selector(check: ResourceCheck, text: str) -> ResourceCheck:
    """Ask about some of the objects; RBAC does not look at it."""
    return replace(check, fields=text)


@function("(ResourceCheck).labelSelector(string) -> ResourceCheck", "resourcecheck_labelselector")
def label_selector(check: ResourceCheck, text: str) -> ResourceCheck:
    """Ask about some of the objects; RBAC does not look at it."""
    return replace(check, labels=text)


@function("(PathCheck).check(string) -> Decision", "pathcheck_check")
def check_path(check: PathCheck, verb: str) -> Decision:
    """Decide about a verb."""
    who = check.authorizer
    return Decision(*who.ask(who.user, who.groups, {"verb": verb, "path": check.path}))


@function("(ResourceCheck).check(string) -> Decision", "resourcecheck_check")
def check_resource(check: ResourceCheck, verb: str) -> Decision:
    """Decide about a verb."""
    who = check.authorizer
    wanted = {key: getattr(check, key) for key in ("group", "resource", "subresource", "namespace", "name")}
    return Decision(*who.ask(who.user, who.groups, {"verb": verb, **wanted}))


@function("(Decision).allowed() -> bool", "decision_allowed")
def allowed(decision: Decision) -> bool:
    """Tell whether it is allowed."""
    return decision.allowed


@function("(Decision).reason() -> string", "decision_reason")
def reason(decision: Decision) -> str:
    """Return why it is allowed, "" where nobody says."""
    return decision.reason


@function("(Decision).errored() -> bool", "decision_errored")
def errored(decision: Decision) -> bool:
    """Tell whether the decision could not be made: never, here."""
    return False


@function("(Decision).error() -> string", "decision_error")
def error(decision: Decision) -> str:
    """Return why it could not be made."""
    return ""
