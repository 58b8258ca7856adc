"""rbac.authorization.k8s.io and certificates.k8s.io: roles, bindings, signing requests. Mirrors ``pkg/apis/rbac/validation`` (1.36)."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, same, wrong
from kubemini.server.kinds.groups.plain import PlainStrategy
from kubemini.server.kinds.tables import CERTIFICATE_SIGNING_REQUEST
from kubemini.server.strategy import WriteContext

RBAC = "rbac.authorization.k8s.io"


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
        yield invalid("roleRef", new.get("roleRef"), "cannot change roleRef")


# ------------------------------------------------------------------------------------------------------ signing requests


def _signing_request(obj: Tree) -> Errors:
    spec = obj.get("spec") or {}
    if not spec.get("request"):
        yield required("spec.request")
    usages = spec.get("usages") or []
    if not usages:
        yield required("spec.usages")
    for index, usage in enumerate(usages):
        if usage in usages[:index]:
            yield duplicate(f"spec.usages[{index}]", usage)
    signer = spec.get("signerName", "")
    if not signer:
        yield required("spec.signerName")
    elif "/" not in signer:
        yield invalid("spec.signerName", signer, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < 600:
        yield invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 600 seconds (10 minutes)")


def _signing_request_change(new: Tree, old: Tree) -> Errors:
    if not same(new.get("spec"), old.get("spec")):
        yield invalid("spec", "", IMMUTABLE)


def _signer(request: Tree) -> str:
    return str((request.get("spec") or {}).get("signerName") or "")


class SigningRequestStrategy(PlainStrategy):
    """CertificateSigningRequests. Who asks is written into the request by the server."""

    def __init__(self) -> None:
        super().__init__(
            table=CERTIFICATE_SIGNING_REQUEST,
            check=_signing_request,
            change=_signing_request_change,
            status={},
            fields={"spec.signerName": _signer},
        )

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Write down who asks."""
        spec = {key: value for key, value in (obj.get("spec") or {}).items() if key not in ("username", "uid", "groups", "extra")}
        return {**obj, "spec": {**spec, **ctx.user_info()}}

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """The spec stays."""
        return {**new, "spec": old.get("spec")} if new.get("spec") is not old.get("spec") else new

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Approved and denied exclude each other."""
        kinds = [each.get("type") for each in (new.get("status") or {}).get("conditions") or ()]
        if "Approved" in kinds and "Denied" in kinds:
            return [forbidden("status.conditions", "Approved and Denied conditions are mutually exclusive")]
        return []
