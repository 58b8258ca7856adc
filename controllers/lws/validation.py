"""The validating webhook of LeaderWorkerSets: what the schema cannot say, on create and update."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.lws.view import scaled
from kubemini.machinery.errors import FieldError, invalid
from kubemini.machinery.names import dns1035_label, errors, faults, percent
from kubemini.runtime.webhooks import Denied, WebhookRequest

MAX_REPLICAS = 1_000_000
MAX_INT32 = 2_147_483_647
NOT_NEGATIVE = "must be greater than or equal to 0"
ROLLING_PATH = "spec.rolloutStrategy.rollingUpdateConfiguration"
SUB_GROUP_PATH = "spec.leaderWorkerTemplate.SubGroupPolicy.subGroupSize"
"""Upstream's spelling."""

Errors = Iterator[FieldError]


def validate(request: WebhookRequest) -> None:
    """Refuse what breaks a rule."""
    new = request.obj
    if new is None:
        return
    problems = list(problems_of(new))
    if request.old is not None:
        problems += problems_of_change(new, request.old)
    if problems:
        raise Denied.fields(problems)


def problems_of(lws: Tree) -> Errors:
    """Yield what is wrong with a LeaderWorkerSet."""
    meta, spec = lws["metadata"], lws["spec"]
    name = meta.get("name", "")
    yield from errors("metadata.name", name, dns1035_label(name))
    template = spec["leaderWorkerTemplate"]
    replicas, size = spec.get("replicas", 1), template.get("size", 1)
    if replicas < 0:
        yield invalid("spec.replicas", replicas, "replicas must be equal or greater than 0")
    if replicas > MAX_REPLICAS:
        yield invalid("spec.replicas", replicas, "replicas must be equal or less than 1000000")
    if size < 1:
        yield invalid("spec.leaderWorkerTemplate.size", size, "size must be equal or greater than 1")
    if replicas * size > MAX_INT32:
        yield invalid("spec.replicas", replicas, f"the product of replicas and worker replicas must not exceed {MAX_INT32}")
    rolling = (spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
    yield from budget_problems(rolling, replicas)
    policy = template.get("subGroupPolicy")
    topology_key = (meta.get("annotations") or {}).get(names.SUB_GROUP_EXCLUSIVE_TOPOLOGY)
    if policy is not None:
        yield from _sub_groups(policy, size)
    elif topology_key is not None:
        path = f"metadata.annotations.{names.SUB_GROUP_EXCLUSIVE_TOPOLOGY}"
        yield invalid(path, topology_key, "cannot have subgroup-exclusive-topology without subGroupSize set")


def budget_problems(rolling: Tree, replicas: int, path: str = ROLLING_PATH) -> Errors:
    """Yield what is wrong with maxUnavailable, maxSurge and partition."""
    unavailable, surge, partition = rolling.get("maxUnavailable", 1), rolling.get("maxSurge", 0), rolling.get("partition") or 0
    yield from amount_problems(unavailable, f"{path}.maxUnavailable")
    yield from amount_problems(surge, f"{path}.maxSurge")
    if partition < 0:
        yield invalid(f"{path}.partition", partition, NOT_NEGATIVE)
    down, up = _scaled(unavailable, replicas, up=False), _scaled(surge, replicas, up=True)
    if down is None:
        yield invalid(f"{path}.maxUnavailable", unavailable, "invalid value")
    if up is None:
        yield invalid(f"{path}.maxSurge", surge, "invalid value")
    if not down and not up and replicas != 0:
        yield invalid(f"{path}.maxUnavailable", unavailable, "must not be 0 when `maxSurge` is 0")


def amount_problems(value: Any, path: str) -> Errors:
    """Yield what is wrong with a count or percentage: negative, no percentage, or more than all."""
    if not isinstance(value, str):
        if value < 0:
            yield invalid(path, value, NOT_NEGATIVE)
        return
    problem = percent(value)
    for each in faults(problem):
        yield invalid(path, value, each)
    if problem is None and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _scaled(value: Any, replicas: int, *, up: bool) -> int | None:
    """Return a count or percentage as a count, None where it is neither."""
    try:
        return scaled(value, replicas, up=up) if not isinstance(value, str) or value.endswith("%") else None
    except ValueError:
        return None


def _sub_groups(policy: Tree, size: int) -> Errors:
    wanted = policy.get("subGroupSize")
    if wanted is None or wanted < 1:
        # Upstream's webhook crashes on 0 and on no value at all
        yield invalid(SUB_GROUP_PATH, wanted, "subGroupSize must be equal or greater than 1")
        return
    if size % wanted != 0 and (size - 1) % wanted != 0:
        yield invalid(SUB_GROUP_PATH, wanted, "size or size - 1 must be divisible by subGroupSize")
    if size < wanted:
        yield invalid(SUB_GROUP_PATH, wanted, "subGroupSize cannot be larger than size")
    if policy.get("subGroupPolicyType") == "LeaderExcluded" and (size - 1) % wanted != 0:
        yield invalid(SUB_GROUP_PATH, wanted, "size-1 must be divisible by subGroupSize when using LeaderExcluded")


def problems_of_change(new: Tree, old: Tree) -> Errors:
    """Yield what must not change: subgroups neither come, go nor grow."""
    after, before = (each["spec"]["leaderWorkerTemplate"].get("subGroupPolicy") for each in (new, old))
    if after is not None and before is not None:
        if after.get("subGroupSize") != before.get("subGroupSize"):
            yield invalid(SUB_GROUP_PATH, after.get("subGroupSize"), "field is immutable")
    elif after is not None:
        yield invalid(SUB_GROUP_PATH, after.get("subGroupSize"), "cannot enable subGroupSize after the lws is already created")
    elif before is not None:
        yield invalid(SUB_GROUP_PATH, before.get("subGroupSize"), "cannot remove subGroupSize after enabled")
