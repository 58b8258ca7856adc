"""What a Job spec must look like, for Jobs and for the Job template of a CronJob. Mirrors ``pkg/apis/batch/validation`` (1.36)."""

from __future__ import annotations

from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import invalid, not_supported, required, too_long
from kubemini.machinery.names import domain_prefixed_path
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.core.pod_spec_validation import validate_pod_template
from kubemini.server.kinds.workloads.pod_failure_policy import validate_pod_failure_policy
from kubemini.server.kinds.workloads.rules import counts
from kubemini.server.kinds.workloads.success_policy import SUCCESS_POLICY, validate_success_policy

MAX_INDEXED_PARALLELISM: Final = 100_000
MAX_FAILED_INDEXES: Final = 100_000
MANY_COMPLETIONS: Final = 100_000
"""Above this many completions a per-index limit needs small parallelism and maxFailedIndexes, so that the status stays small."""
LIMIT_FOR_MANY_COMPLETIONS: Final = 10_000
MAX_MANAGED_BY: Final = 63
REPLACEMENT_POLICIES: Final = ("Failed", "TerminatingOrFailed")

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)


def validate_job_spec(spec: Tree, path: str) -> Errors:
    """Check everything of a Job spec but its selector."""
    yield from counts(spec, _COUNTS, path)
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    managed_by = spec.get("managedBy")
    if managed_by is not None:
        yield from domain_prefixed_path(f"{path}.managedBy", managed_by)
        if len(managed_by) > MAX_MANAGED_BY:
            yield too_long(f"{path}.managedBy", MAX_MANAGED_BY)
    yield from _completion_mode(spec, path)
    if spec.get("podFailurePolicy") is not None:
        yield from validate_pod_failure_policy(spec, f"{path}.podFailurePolicy")
    if spec.get("successPolicy") is not None:
        if spec.get("completionMode") == "Indexed":
            yield from validate_success_policy(spec, f"{path}.successPolicy")
        else:
            yield invalid(f"{path}.successPolicy", SUCCESS_POLICY.shown(spec["successPolicy"]), "requires indexed completion mode")
    yield from _replacement_policy(spec, f"{path}.podReplacementPolicy")
    yield from validate_pod_template(spec.get("template") or {}, f"{path}.template")
    yield from _restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _completion_mode(spec: Tree, path: str) -> Errors:
    mode = spec.get("completionMode")
    if mode not in (None, "NonIndexed", "Indexed"):
        yield not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    elif mode == "Indexed":
        yield from _indexed(spec, path)
    else:
        for field in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(field) is not None:
                yield invalid(f"{path}.{field}", spec[field], "requires indexed completion mode")


def _indexed(spec: Tree, path: str) -> Errors:
    completions, parallelism, max_failed = spec.get("completions"), spec.get("parallelism"), spec.get("maxFailedIndexes")
    if completions is None:
        yield required(f"{path}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > MAX_INDEXED_PARALLELISM:
        yield invalid(f"{path}.parallelism", parallelism, f"must be less than or equal to {MAX_INDEXED_PARALLELISM} when completion mode is Indexed")
    if completions is not None and max_failed is not None and max_failed > completions:
        yield invalid(f"{path}.maxFailedIndexes", max_failed, "must be less than or equal to completions")
    if max_failed is not None and max_failed > MAX_FAILED_INDEXES:
        yield invalid(f"{path}.maxFailedIndexes", max_failed, f"must be less than or equal to {MAX_FAILED_INDEXES}")
    if completions is not None and completions > MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        if max_failed is None:
            yield required(f"{path}.maxFailedIndexes", f"must be specified when completions is above {MANY_COMPLETIONS}")
        text = (
            f"must be less than or equal to {LIMIT_FOR_MANY_COMPLETIONS} when completions are above {MANY_COMPLETIONS} "
            "and used with backoff limit per index"
        )
        if parallelism is not None and parallelism > LIMIT_FOR_MANY_COMPLETIONS:
            yield invalid(f"{path}.parallelism", parallelism, text)
        if max_failed is not None and max_failed > LIMIT_FOR_MANY_COMPLETIONS:
            yield invalid(f"{path}.maxFailedIndexes", max_failed, text)


def _replacement_policy(spec: Tree, path: str) -> Errors:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return
    supported = ("Failed",) if spec.get("podFailurePolicy") is not None else REPLACEMENT_POLICIES
    if policy not in supported:
        yield not_supported(path, policy, supported)


def _restart_policy(spec: Tree, path: str) -> Errors:
    # A missing policy was defaulted to Always by the pod defaults, so both mean "not given".
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    if policy in ("", "Always"):
        yield required(path, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield not_supported(path, policy, ("OnFailure", "Never"))
    elif policy != "Never" and spec.get("podFailurePolicy") is not None:
        yield invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')
