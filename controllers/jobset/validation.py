"""The validating webhook of JobSets on create: names that could not be given, references to nothing, policies that contradict themselves.

All problems are told at once, in upstream's order. Those that upstream raises without a field read ``<nil>: Internal error: …``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.controllers.jobset import claim_validation, networking
from kubemini.controllers.jobset.view import Role, job_name
from kubemini.machinery.errors import FieldError, invalid, too_long
from kubemini.machinery.names import dns1035_label, dns1123_subdomain, domain_prefixed_path, errors, faults, generated, label_value, too_long_text
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, Reader, WebhookRequest

Errors = Iterator[FieldError]

MAX_INT32 = 2147483647
MAX_MANAGED_BY = 63
MAX_RESTART_JOB_REPLICAS = 1024
MAX_RULE_NAME = 128
POD_SUFFIX = "-abcde"
JOB_FAILURE_REASONS = ("BackoffLimitExceeded", "DeadlineExceeded", "FailedIndexes", "MaxFailedIndexesExceeded", "PodFailurePolicy")
RESTART_JOB_ACTIONS = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")

_rule_name_ok = re.compile(r"[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?").fullmatch


def validate_create(request: WebhookRequest) -> None:
    """Refuse a new JobSet that breaks a rule."""
    js = request.obj
    if js is None:
        return
    problems = list(problems_of(js, request.gates, request.reader, request.env))
    if problems:
        raise Denied.invalid("JobSet", "jobset.x-k8s.io", js["metadata"].get("name") or "", problems)


def problems_of(js: Tree, gates: FeatureGates, reader: Reader, env: Env) -> Errors:
    """Yield what is wrong with a new JobSet."""
    spec = js.get("spec") or {}
    name = name_to_check(js, env)
    roles = [Role(tree) for tree in spec.get("replicatedJobs") or ()]
    in_place = (spec.get("failurePolicy") or {}).get("restartStrategy") == "InPlaceRestart"
    if in_place and not gates.enabled("InPlaceRestart"):
        yield plain("InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is disabled")
    first = (spec.get("replicatedJobs") or [{}])[0]
    if first.get("dependsOn") is not None:
        yield plain("DependsOn can't be set for the first ReplicatedJob")
    yield from _subdomain(spec)
    yield from _managed_by(spec)
    seen: dict[str, None] = {}
    for index, role in enumerate(roles):
        seen[role.name] = None
        yield from _role(role, f"spec.replicatedJobs[{index}]", name, seen)
        if in_place and gates.enabled("InPlaceRestart"):
            yield from _in_place(role, f"spec.replicatedJobs[{index}].template.spec")
    for target in (spec.get("successPolicy") or {}).get("targetReplicatedJobs") or ():
        if target not in seen:
            yield plain(f"invalid replicatedJob name '{target}' does not appear in .spec.ReplicatedJobs")
    if spec.get("failurePolicy"):
        yield from _failure_policy(spec["failurePolicy"].get("rules") or (), roles, seen, gates)
    if spec.get("coordinator"):
        yield from _coordinator(spec["coordinator"], roles)
        yield from _coordinator_label(spec, name)
    yield from claim_validation.problems_of(js, name, reader)


def plain(text: str) -> FieldError:
    """Return a problem without a field."""
    return FieldError("InternalError", "<nil>", f"Internal error: {text}")


def name_to_check(js: Tree, env: Env) -> str:
    """Return the JobSet's name; where the server is still to generate it, one as long."""
    meta = js["metadata"]
    if meta.get("name"):
        return str(meta["name"])
    return generated(meta["generateName"], env.suffix()) if meta.get("generateName") else ""


# ----------------------------------------------------------------------------------------------- names


def _labels(field: str, value: str, too_long_message: str, *, shown: str | None = None) -> Errors:
    """Yield what keeps `value` from being a DNS-1035 label; `shown` is the value that the message shows."""
    for fault in faults(dns1035_label(value)):
        yield invalid(field, value if shown is None else shown, too_long_message if too_long_text(63) in fault else fault)


def _subdomain(spec: Tree) -> Errors:
    subdomain = (spec.get("network") or {}).get("subdomain")
    if subdomain:
        field = "spec.network.subdomain"
        yield from errors(field, subdomain, dns1123_subdomain(subdomain))
        yield from _labels(field, subdomain, ".spec.network.subdomain is too long, must be less than 63 characters")


def _managed_by(spec: Tree) -> Errors:
    manager = spec.get("managedBy")
    if manager is not None:
        yield from domain_prefixed_path("spec.managedBy", manager)
        if len(manager.encode()) > MAX_MANAGED_BY:
            yield too_long("spec.managedBy", MAX_MANAGED_BY)


def _role(role: Role, field: str, jobset: str, seen: Iterable[str]) -> Errors:
    if role.job_spec.get("parallelism", 1) * role.replicas > MAX_INT32:
        yield plain(f"the product of replicas and parallelism must not exceed {MAX_INT32} for replicatedJob '{role.name}'")
    yield from _labels(f"{field}.groupName", role.group, ".spec.replicatedJob[].groupName is too long, must be less than 63 characters")
    # the last index has the longest name
    longest = job_name(jobset, role.name, role.replicas - 1)
    yield from _labels(f"{field}.name", longest, "JobSet name is too long, job names generated for this JobSet will exceed 63 characters")
    completions = role.job_spec.get("completions")
    if role.job_spec.get("completionMode") == "Indexed" and completions is not None:
        pod = f"{longest}-{completions - 1}{POD_SUFFIX}"
        yield from _labels(
            f"{field}.name", pod, "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters", shown=longest
        )
    for item in role.depends_on:
        if item["name"] not in seen:
            yield plain(f"replicatedJob: {role.name} cannot depend on replicatedJob: {item['name']}")


def _in_place(role: Role, field: str) -> Errors:
    spec = role.job_spec

    def wrong(name: str, detail: str) -> FieldError:
        return invalid(f"{field}.{name}", spec.get(name), f"replicatedJob {role.name}: {detail} when in-place restart is enabled")

    if spec.get("backoffLimit") != MAX_INT32:
        yield wrong("backoffLimit", f"must be set to {MAX_INT32} (MaxInt32)")
    if spec.get("podReplacementPolicy") != "Failed":
        yield wrong("podReplacementPolicy", "must be set to Failed")
    if spec.get("completions") is None or spec.get("completions") != spec.get("parallelism"):
        yield wrong("completions", "completions and parallelism must be set and equal to each other")


# ----------------------------------------------------------------------------------------------- policies


def _failure_policy(rules: Iterable[Tree], roles: list[Role], known: Iterable[str], gates: FeatureGates) -> Errors:
    rules = list(rules)
    if any(rule["action"] in RESTART_JOB_ACTIONS for rule in rules):
        if not gates.enabled("RestartJob"):
            yield plain(
                "RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed when RestartJob feature gate is disabled"
            )
            return
        if any(role.replicas > MAX_RESTART_JOB_REPLICAS for role in roles):
            yield plain(
                "JobSet cannot have a failure policy rule with RestartJob or RestartJobAndIgnoreMaxRestarts action "
                f"and a replicated job with replicas > {MAX_RESTART_JOB_REPLICAS}"
            )
    indices: dict[str, list[int]] = {}
    for index, rule in enumerate(rules):
        name: str = rule.get("name", "")
        indices.setdefault(name, []).append(index)
        yield from _rule(rule, name, known)
    for name, same in indices.items():
        if len(same) > 1:
            yield plain(f"rule names are not unique, rules with indices [{' '.join(map(str, same))}] all have the same name '{name}'")


def _rule(rule: Tree, name: str, known: Iterable[str]) -> Errors:
    length = len(name.encode())
    if not 1 <= length <= MAX_RULE_NAME:
        yield plain(
            f"invalid failure policy rule name of length {length}, the rule name must be at least 1 characters long and at most {MAX_RULE_NAME} characters long"
        )
    if not _rule_name_ok(name):
        yield plain(
            f"invalid failure policy rule name '{name}', a failure policy rule name must start with an alphabetic character, optionally followed by a string "
            "of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'"
        )
    for target in rule.get("targetReplicatedJobs") or ():
        if target not in known:
            yield plain(f"invalid replicatedJob name '{target}' in failure policy does not appear in .spec.ReplicatedJobs")
    for reason in rule.get("onJobFailureReasons") or ():
        if reason not in JOB_FAILURE_REASONS:
            yield plain(f"invalid job failure reason '{reason}' in failure policy is not a recognized job failure reason")


# ----------------------------------------------------------------------------------------------- coordinator


def _coordinator(coordinator: Tree, roles: list[Role]) -> Errors:
    """Yield the first problem only: the later checks stand on the earlier ones."""
    wanted = coordinator["replicatedJob"]
    role = next((role for role in roles if role.name == wanted), None)
    job_index, pod_index = coordinator.get("jobIndex", 0), coordinator.get("podIndex", 0)
    completions: Any = None if role is None else role.job_spec.get("completions")
    if role is None:
        yield plain(f"coordinator replicatedJob {wanted} does not exist")
    elif not 0 <= job_index < role.replicas:
        yield plain(f"coordinator job index {job_index} is invalid for replicatedJob {wanted}")
    elif role.job_spec.get("completionMode") != "Indexed" or completions is None:
        yield plain("job for coordinator pod must be indexed completion mode, and completions number must be set")
    elif not 0 <= pod_index < completions:
        yield plain(f"coordinator pod index {pod_index} is invalid for replicatedJob {wanted} job index {job_index}")


def _coordinator_label(spec: Tree, name: str) -> Errors:
    value = networking.coordinator(spec, name)
    problems = faults(label_value(value))
    if problems:
        yield plain(
            f'spec will lead to invalid label value "{value}" for coordinator label "{names.COORDINATOR}" '
            f"(long JobSet / ReplicatedJob / SubDomain name?): {', '.join(problems)}"
        )
