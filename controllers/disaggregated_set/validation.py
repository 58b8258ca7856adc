"""The validating webhook of DisaggregatedSets: what the schema cannot say. Mirrors ``pkg/webhooks/disaggregatedset``."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.disaggregated_set.naming import REVISION_LENGTH, scaler_name
from kubemini.controllers.lws.validation import amount_problems
from kubemini.controllers.lws.view import scaled
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_supported, required
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest

MAX_NAME, MAX_SCALER_NAME = 63, 253
SERVICE_SUFFIX = len("-prv")
SEPARATORS = 3
NO_PARTITION = "partition is not supported by DisaggregatedSet; rolling updates are managed across roles by the DisaggregatedSet controller"
NO_SLICES = "spec.slices > 1 is not supported while any role has scaling.mode: External (alpha restriction)"
EXCLUSIVE = (names.EXCLUSIVE_TOPOLOGY, names.SUB_GROUP_EXCLUSIVE_TOPOLOGY)

Errors = Iterator[FieldError]


def validate(request: WebhookRequest) -> None:
    """Refuse what breaks a rule, and advise on replicas that will not count."""
    if request.obj is None:
        return
    request.warnings.extend(warnings_of(request.obj))
    problems = list(problems_of(request.obj))
    if problems:
        raise Denied.fields(problems)


def _external(role: Tree) -> bool:
    return bool((role.get("scaling") or {}).get("mode") == "External")


def warnings_of(ds: Tree) -> Iterator[str]:
    """Yield advice."""
    for role in ds["spec"]["roles"]:
        replicas = (role.get("spec") or {}).get("replicas")
        if _external(role) and replicas is not None and replicas > 1:
            scaler = scaler_name(ds["metadata"].get("name", ""), role["name"])
            yield (
                f'role "{role["name"]}" sets scaling.mode: External and spec.replicas: {replicas} — spec.replicas is ignored; '
                f'drive replicas via DisaggregatedSetRoleScaler "{scaler}" instead'
            )


def problems_of(ds: Tree) -> Errors:
    """Yield what is wrong with a DisaggregatedSet."""
    spec, name = ds["spec"], ds["metadata"].get("name", "")
    roles = spec["roles"]
    slices = spec.get("slices") or 1
    for index, role in enumerate(roles):
        path = f"spec.roles[{index}]"
        yield from _strategy(role.get("spec") or {}, f"{path}.spec.rolloutStrategy")
        scaler = scaler_name(name, role["name"])
        if _external(role) and len(scaler) > MAX_SCALER_NAME:
            yield invalid(f"{path}.name", role["name"], f'would produce scaler name "{scaler}" exceeding 253 characters')
    if slices > 1 and any(_external(role) for role in roles):
        yield forbidden("spec.slices", NO_SLICES)
    yield from _names(name, roles, slices)
    yield from _placement(spec.get("placementPolicy"), roles)


def _names(name: str, roles: list[Tree], slices: int) -> Errors:
    added = SEPARATORS + len(str(slices - 1)) + REVISION_LENGTH + SERVICE_SUFFIX
    for index, role in enumerate(roles):
        length = len(name) + len(role["name"]) + added
        if length > MAX_NAME:
            detail = (
                f"the generated service name ({length} chars) would exceed the DNS-1035 limit of {MAX_NAME} characters; "
                f"reduce the DisaggregatedSet name and/or role name (combined limit: {MAX_NAME - added} characters)"
            )
            yield invalid(f"spec.roles[{index}].name", role["name"], detail)


def _placement(policy: Tree | None, roles: list[Tree]) -> Errors:
    kind = (policy or {}).get("type") or "None"
    if policy is None or kind == "None":
        return
    if not policy.get("topology"):
        yield required("spec.placementPolicy.topology", "topology is required when type is not None")
    for index, role in enumerate(roles):
        key = _exclusive_annotation(role)
        if key is not None:
            yield forbidden(f"spec.roles[{index}]", f'the "{key}" annotation must not be combined with a non-None spec.placementPolicy.type ({kind})')


def _exclusive_annotation(role: Tree) -> str | None:
    """Return the annotation by which a role is placed exclusively already, wherever it stands."""
    template = (role.get("spec") or {}).get("leaderWorkerTemplate") or {}
    places = [role.get("metadata"), *((template.get(key) or {}).get("metadata") for key in ("leaderTemplate", "workerTemplate"))]
    for key in EXCLUSIVE:
        if any(key in ((place or {}).get("annotations") or {}) for place in places):
            return key
    return None


def _strategy(spec: Tree, path: str) -> Errors:
    strategy = spec.get("rolloutStrategy") or {}
    if strategy.get("type") not in (None, "", "RollingUpdate"):
        yield not_supported(f"{path}.type", strategy["type"], ("RollingUpdate", ""))
    rolling = strategy.get("rollingUpdateConfiguration")
    if rolling is None:
        return
    path = f"{path}.rollingUpdateConfiguration"
    if rolling.get("partition"):
        yield forbidden(f"{path}.partition", NO_PARTITION)
    replicas = spec.get("replicas")
    if not replicas:
        return
    unavailable, surge = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0)
    problems = [*amount_problems(unavailable, f"{path}.maxUnavailable"), *amount_problems(surge, f"{path}.maxSurge")]
    if problems:
        yield from problems
    elif not scaled(unavailable, replicas, up=False) and not scaled(surge, replicas, up=True):
        yield invalid(f"{path}.maxUnavailable", unavailable, "must not be 0 when `maxSurge` is 0")


WEBHOOK = Webhook("vdisaggregatedset.kb.io", ("disaggregatedsets.disaggregatedset.x-k8s.io",), ("CREATE", "UPDATE"), validate=validate)
