"""The rules that a Job's successPolicy must keep. Mirrors ``pkg/apis/batch/validation`` (1.36)."""

from __future__ import annotations

from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import invalid, required, too_long, too_many
from kubemini.server.kinds.core.formats import Errors, at_least_zero
from kubemini.server.kinds.internal_types import Struct
from kubemini.server.kinds.workloads.indexes import MalformedIndexes, count_indexes

SUCCESS_POLICY: Final = Struct(Rules=Struct(SucceededIndexes=None, SucceededCount=None))
MAX_RULES: Final = 20
MAX_INDEXES_LENGTH: Final = 64 * 1024


def validate_success_policy(spec: Tree, path: str) -> Errors:
    """Check the policy of an Indexed Job's spec that has one; `path` is the policy's."""
    rules = spec["successPolicy"].get("rules") or ()
    if not rules:
        yield required(f"{path}.rules", "at least one rules must be specified when the successPolicy is specified")
    if len(rules) > MAX_RULES:
        yield too_many(f"{path}.rules", len(rules), MAX_RULES)
    completions = spec.get("completions") or 0
    for index, rule in enumerate(rules):
        yield from _rule(rule, completions, f"{path}.rules[{index}]")


def _rule(rule: Tree, completions: int, path: str) -> Errors:
    count, indexes = rule.get("succeededCount"), rule.get("succeededIndexes")
    if count is None and indexes is None:
        yield required(path, "at least one of succeededCount or succeededIndexes must be specified")
    listed = 0
    if indexes is not None:
        if len(indexes) > MAX_INDEXES_LENGTH:
            yield too_long(f"{path}.succeededIndexes", MAX_INDEXES_LENGTH)
        try:
            listed = count_indexes(indexes, completions)
        except MalformedIndexes as error:
            yield invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    if count is not None:
        yield from at_least_zero(count, f"{path}.succeededCount")
        if count > completions:
            yield invalid(f"{path}.succeededCount", count, f"must be less than or equal to {completions} (the number of specified completions)")
        if indexes is not None and count > listed:
            text = f"must be less than or equal to {listed} (the number of indexes in the specified succeededIndexes field)"
            yield invalid(f"{path}.succeededCount", count, text)
