"""The rules that a Job's podFailurePolicy must keep. Mirrors ``pkg/apis/batch/validation`` (1.36)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import duplicate, invalid, invalid_omitted, not_supported, required, too_many
from kubemini.server.kinds.core.formats import Errors, wrong
from kubemini.server.kinds.internal_types import Struct

POD_FAILURE_POLICY: Final = Struct(
    Rules=Struct(
        Action="",
        OnExitCodes=Struct(ContainerName=None, Operator="", Values=None),
        OnPodConditions=Struct(Type="", Status=""),
    )
)
MAX_RULES: Final = 20
MAX_PATTERNS: Final = 20
MAX_EXIT_CODES: Final = 255
ACTIONS: Final = ("Count", "FailIndex", "FailJob", "Ignore")
OPERATORS: Final = ("In", "NotIn")
STATUSES: Final = ("False", "True", "Unknown")


def validate_pod_failure_policy(spec: Tree, path: str) -> Errors:
    """Check the policy of a Job spec that has one; `path` is the policy's."""
    rules = spec["podFailurePolicy"].get("rules") or ()
    if len(rules) > MAX_RULES:
        yield too_many(f"{path}.rules", len(rules), MAX_RULES)
    pod = spec.get("template", {}).get("spec") or {}
    containers = {each.get("name") for key in ("containers", "initContainers") for each in pod.get(key) or ()}
    per_index = spec.get("backoffLimitPerIndex") is not None
    for index, rule in enumerate(rules):
        yield from _rule(rule, f"{path}.rules[{index}]", containers, per_index=per_index)


def _rule(rule: Tree, path: str, containers: set[Any], *, per_index: bool) -> Errors:
    action = rule.get("action") or ""
    if not action:
        yield required(f"{path}.action", f"valid values: {_quoted(ACTIONS)}")
    elif action == "FailIndex":
        if not per_index:
            yield invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    elif action not in ACTIONS:
        yield not_supported(f"{path}.action", action, ACTIONS)
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions")
    if codes is not None:
        yield from _exit_codes(codes, f"{path}.onExitCodes", containers)
    if patterns:
        yield from _conditions(patterns, f"{path}.onPodConditions")
    if codes is not None and patterns:
        yield invalid_omitted(path, "specifying both OnExitCodes and OnPodConditions is not supported")
    if codes is None and not patterns:
        yield invalid_omitted(path, "specifying one of OnExitCodes and OnPodConditions is required")


def _conditions(patterns: list[Tree], path: str) -> Errors:
    if len(patterns) > MAX_PATTERNS:
        yield too_many(path, len(patterns), MAX_PATTERNS)
    for index, pattern in enumerate(patterns):
        yield from wrong(names.qualified_name, pattern.get("type") or "", f"{path}[{index}].type")
        status = pattern.get("status") or ""
        if not status:
            yield required(f"{path}[{index}].status", f"valid values: {_quoted(STATUSES)}")
        elif status not in STATUSES:
            yield not_supported(f"{path}[{index}].status", status, STATUSES)


def _exit_codes(requirement: Tree, path: str, containers: set[Any]) -> Errors:
    operator = requirement.get("operator") or ""
    if not operator:
        yield required(f"{path}.operator", f"valid values: {_quoted(OPERATORS)}")
    elif operator not in OPERATORS:
        yield not_supported(f"{path}.operator", operator, OPERATORS)
    container = requirement.get("containerName")
    if container is not None and container not in containers:
        yield invalid(f"{path}.containerName", container, "must be one of the container or initContainer names in the pod template")
    values: list[int] = requirement.get("values") or []
    if not values:
        yield invalid(f"{path}.values", requirement.get("values"), "at least one value is required")
    elif len(values) > MAX_EXIT_CODES:
        yield too_many(f"{path}.values", len(values), MAX_EXIT_CODES)
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield duplicate(f"{path}.values[{index}]", value)
        seen.add(value)
    if any(left > right for left, right in pairwise(values)):
        yield invalid(f"{path}.values", values, "must be ordered")


def _quoted(values: tuple[str, ...]) -> str:
    """Return values as Go prints a list of quoted strings: ``["a" "b"]``."""
    return f"[{' '.join(f'{chr(34)}{each}{chr(34)}' for each in values)}]"
