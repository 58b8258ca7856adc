"""``spec.successPolicy``: when some indexes are enough."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.job import indexes


def met(policy: Tree | None, completed: set[int]) -> str:
    """Return the message of the first rule that the completed indexes satisfy, or "". Before the first success none is, not even one that asks for none."""
    for position, rule in enumerate((policy or {}).get("rules") or () if completed else ()):
        listed, count = rule.get("succeededIndexes"), rule.get("succeededCount")
        if listed is not None:
            wanted = indexes.parse(listed)
            done = sum(1 for index in wanted if index in completed)
            satisfied = bool(wanted) and done >= (len(wanted) if count is None else count)
        else:
            satisfied = count is not None and len(completed) >= count
        if satisfied:
            return f"Matched rules at index {position}"
    return ""
