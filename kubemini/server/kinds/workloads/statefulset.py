"""apps/v1 StatefulSet: the strategy. Mirrors ``pkg/registry/apps/statefulset`` and ``pkg/apis/apps/{v1,validation}`` (1.36).

The gate MaxUnavailableStatefulSet is off in 1.36: ``rollingUpdate.maxUnavailable`` is dropped unless the stored object has it. With the gate it is kept, and 1 where a
rolling update does not say.
"""

from __future__ import annotations

from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_supported, required
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.claims import claim_spec, claim_spec_warnings
from kubemini.server.kinds.core.formats import Errors, wrong
from kubemini.server.kinds.core.pod_spec_validation import validate_pod_template
from kubemini.server.kinds.internal_types import Struct
from kubemini.server.kinds.workloads.rules import (
    NOT_MORE_THAN_REPLICAS,
    at_most_all,
    bare_number,
    collision_count,
    counts,
    int_or_percent,
    is_empty_selector,
    is_readable,
    mismatch,
    not_more_than,
    required_selector,
    same,
)
from kubemini.server.kinds.workloads.template_strategy import TemplateStrategy, always_restarts
from kubemini.server.strategy import Scale, WriteContext

MUTABLE: Final = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
FROZEN_TEXT: Final = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)

_ROLLING: Final = Struct(Partition=0, MaxUnavailable=None)
_STRATEGY: Final = Struct(Type="", RollingUpdate=_ROLLING)
_STATUS_COUNTS = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration", "collisionCount")


class StatefulSetStrategy(TemplateStrategy):
    """The rules of StatefulSets. `budgeted`: the gate MaxUnavailableStatefulSet is on."""

    table = tables.STATEFUL_SET
    advises_on_name = False
    scale = Scale(selector="spec.selector")

    def initial_status(self, obj: Tree) -> Tree:
        """Return a status that counts nothing."""
        return {"replicas": 0, "availableReplicas": 0}

    def __init__(self, *, budgeted: bool = False) -> None:
        super().__init__()
        self._budgeted = budgeted

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Drop what is behind a gate that is off."""
        return _with_max_unavailable(obj) if self._budgeted else _without_max_unavailable(obj)

    def prepare_for_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Drop what is behind a gate that is off, unless it was there before."""
        if self._budgeted:
            return _with_max_unavailable(new)
        return new if _max_unavailable(old) is not None else _without_max_unavailable(new)

    def validate_name(self, name: str, *, prefix: bool = False) -> str | None:
        """Check a DNS label: the name becomes part of hostnames."""
        return names.dns1123_label(name, prefix=prefix)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new StatefulSet, its pod template and claim templates included."""
        spec = obj["spec"]
        service = spec.get("serviceName")
        found = list(_stateful_set_spec(spec, whole=True))
        if service:
            found += wrong(names.dns1123_subdomain, service, "spec.serviceName")
        return found

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a changed StatefulSet; most of the spec stays."""
        spec, before = new["spec"], old["spec"]
        template_changed = spec.get("template") is not before.get("template") and spec.get("template") != before.get("template")
        found = list(_stateful_set_spec(spec, whole=template_changed, claims=False))
        if not same(_fixed_part(spec), _fixed_part(before)):
            found.append(forbidden("spec", FROZEN_TEXT))
        return found

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check that the counts fit together."""
        return list(_stateful_set_status(new.get("status") or {}, old.get("status") or {}))

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Advise on the pod template, on what claims ask for, and against a history that is never cut."""
        found = super().warnings(new, old, ctx)
        for index, claim in enumerate(new["spec"].get("volumeClaimTemplates") or ()):
            # Neither path is right, and both are upstream's
            path = f"spec.volumeClaimTemplates[{index}]"
            found += claim_spec_warnings(claim.get("spec") or {}, path if old is None else f"{path}.Spec")
        limit = new["spec"].get("revisionHistoryLimit")
        if limit is not None and limit < 0:
            found.append("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended")
        return found


# ------------------------------------------------------------------------------------------------ the gate


def _max_unavailable(obj: Tree) -> Any:
    return (((obj["spec"].get("updateStrategy") or {}).get("rollingUpdate")) or {}).get("maxUnavailable")


def _with_max_unavailable(obj: Tree) -> Tree:
    spec: Tree = obj["spec"]
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate")
    if rolling is None or rolling.get("maxUnavailable") is not None:
        return obj
    return {**obj, "spec": {**spec, "updateStrategy": {**spec["updateStrategy"], "rollingUpdate": {**rolling, "maxUnavailable": 1}}}}


def _without_max_unavailable(obj: Tree) -> Tree:
    if _max_unavailable(obj) is None:
        return obj
    spec: Tree = obj["spec"]
    rolling = {key: value for key, value in spec["updateStrategy"]["rollingUpdate"].items() if key != "maxUnavailable"}
    return {**obj, "spec": {**spec, "updateStrategy": {**spec["updateStrategy"], "rollingUpdate": rolling}}}


# ------------------------------------------------------------------------------------------------ rules


def _fixed_part(spec: Tree) -> Tree:
    return {key: value for key, value in spec.items() if key not in MUTABLE}


def _stateful_set_spec(spec: Tree, *, whole: bool, claims: bool = True) -> Errors:
    """Check a spec. `whole`: the pod template too (an update that leaves an old, bad one alone passes); `claims`: the claim templates."""
    management = spec.get("podManagementPolicy") or ""
    if not management:
        yield required("spec.podManagementPolicy")
    elif management not in {"OrderedReady", "Parallel"}:
        yield invalid("spec.podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'")
    yield from _update_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy")
    if retention is not None:
        for field in ("whenDeleted", "whenScaled"):
            if retention.get(field) not in {"Retain", "Delete"}:
                yield not_supported(f"spec.persistentVolumeClaimRetentionPolicy.{field}", retention.get(field) or "", ("Retain", "Delete"))
    yield from counts(spec, ("replicas", "minReadySeconds"), "spec")
    yield from counts(spec.get("ordinals") or {}, ("start",), "spec.ordinals")
    if claims:
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            yield from claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    selector: Tree | None = spec.get("selector")
    template: Tree = spec.get("template") or {}
    yield from required_selector(selector, "spec.selector", "statefulset", "")
    if selector is None or not is_empty_selector(selector):
        yield from mismatch(selector, template, "spec.template")
    if whole and is_readable(selector):
        yield from validate_pod_template(with_claim_volumes(template, spec.get("volumeClaimTemplates") or []), "spec.template")
    yield from always_restarts(template, "spec.template", "StatefulSet")


def with_claim_volumes(template: Tree, claims: list[Tree]) -> Tree:
    """Return the pod template with a volume for each claim template, which replaces a volume of its name: what mounts may refer to."""
    if not claims:
        return template
    pod: Tree = template.get("spec") or {}
    added = {(claim.get("metadata") or {}).get("name") or "": claim for claim in claims}
    kept = [volume for volume in pod.get("volumes") or () if volume.get("name") not in added]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in added]
    return {**template, "spec": {**pod, "volumes": [*kept, *volumes]}}


def _update_strategy(strategy: Tree, path: str) -> Errors:
    kind, rolling = strategy.get("type") or "", strategy.get("rollingUpdate")
    if not kind:
        yield required(path)
    elif kind == "OnDelete":
        if rolling is not None:
            yield invalid(f"{path}.rollingUpdate", _ROLLING.shown(rolling), "only allowed for updateStrategy 'RollingUpdate'")
    elif kind == "RollingUpdate":
        yield from _rolling_update(rolling or {}, f"{path}.rollingUpdate")
    else:
        yield invalid(path, _STRATEGY.shown(strategy), "must be 'RollingUpdate' or 'OnDelete'")


def _rolling_update(rolling: Tree, path: str) -> Errors:
    yield from counts(rolling, ("partition",), path)
    most = rolling.get("maxUnavailable")
    if most is not None:
        yield from int_or_percent(most, f"{path}.maxUnavailable")
        if bare_number(most) == 0:
            yield invalid(f"{path}.maxUnavailable", most, "cannot be 0")
        yield from at_most_all(most, f"{path}.maxUnavailable")


def _stateful_set_status(status: Tree, before: Tree) -> Errors:
    yield from counts(status, _STATUS_COUNTS, "status")
    limited = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    yield from not_more_than(status, limited, "replicas", NOT_MORE_THAN_REPLICAS)
    yield from not_more_than(status, ("availableReplicas",), "readyReplicas", "cannot be greater than status.readyReplicas")
    yield from collision_count(status, before)
