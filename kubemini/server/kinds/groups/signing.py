"""certificates.k8s.io: signing requests. Mirrors ``pkg/apis/certificates/validation`` (1.36)."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, required
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, same
from kubemini.server.kinds.groups.plain import PlainStrategy
from kubemini.server.kinds.tables import CERTIFICATE_SIGNING_REQUEST
from kubemini.server.strategy import WriteContext

_VERDICTS = ("Approved", "Denied")
_PERMANENT = ("Approved", "Denied", "Failed")


def conditions_of(request: Tree) -> list[Tree]:
    """Return the conditions of a request."""
    return (request.get("status") or {}).get("conditions") or []


def conditions_with_times(new: Tree, old: Tree, now: str) -> list[Tree]:
    """Return the new conditions, with times where they have none: a condition that was there keeps the time of its transition."""
    before = {(each.get("type"), each.get("status")): each.get("lastTransitionTime") for each in conditions_of(old)}
    found: list[Tree] = []
    for each in conditions_of(new):
        moved = each.get("lastTransitionTime") or before.get((each.get("type"), each.get("status"))) or now
        found.append({**each, "lastUpdateTime": each.get("lastUpdateTime") or now, "lastTransitionTime": moved})
    return found


def status_problems(new: Tree, old: Tree) -> Errors:
    """Check a new status: yes and no exclude each other, and what was said stays said."""
    seen: set[str] = set()
    for index, each in enumerate(conditions_of(new)):
        here, kind = f"status.conditions[{index}]", each.get("type", "")
        if not kind:
            yield required(f"{here}.type")
        if not each.get("status"):
            yield required(f"{here}.status")
        elif kind in _PERMANENT and each["status"] != "True":
            yield invalid(f"{here}.status", each["status"], f'{kind} condition must be "True"')
        if kind in seen:
            yield duplicate(f"{here}.type", kind)
        if kind in _VERDICTS and seen & {verdict for verdict in _VERDICTS if verdict != kind}:
            yield invalid(f"{here}.type", kind, "Approved and Denied conditions are mutually exclusive")
        seen.add(kind)
    for kind in _PERMANENT:
        if kind not in seen and any(each.get("type") == kind for each in conditions_of(old)):
            yield forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')
    certificate, before = (new.get("status") or {}).get("certificate"), (old.get("status") or {}).get("certificate")
    if before and certificate != before:
        yield invalid("status.certificate", certificate, "updates may not modify a set certificate")


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

    def prepare_for_status(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Keep yes and no: they are said elsewhere."""
        said = [each for each in conditions_of(old) if each.get("type") in _VERDICTS]
        found = [*said, *(each for each in conditions_with_times(new, old, ctx.env.stamp()) if each.get("type") not in _VERDICTS)]
        status = {key: value for key, value in (new.get("status") or {}).items() if key != "conditions"}
        return {**new, "status": {**status, "conditions": found} if found else status}

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check conditions and certificate."""
        return list(status_problems(new, old))
