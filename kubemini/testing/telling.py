"""Telling a life to people: each commit in one line, with what it changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from kubemini.api.trees import Tree
from kubemini.sim.trace import verb
from kubemini.store import Change

MOST = 4
"""Changes that are shown of one commit."""
LONG = 48
"""Characters of a value that are shown."""
UNTOLD = frozenset({"resourceVersion", "managedFields", "generation", "observedGeneration", "lastTransitionTime", "lastProbeTime"})
"""Fields that change with every write, or that say only that something else has changed."""


def told(table: str, change: Change) -> str:
    """Return what a commit did: ``update pods default/train-0  status.phase: Pending → Running``."""
    head = f"{verb(change)} {table.partition('.')[0]} {change.key}"
    if table.startswith("events") and change.new is not None:
        event = change.new.obj
        about = event.get("involvedObject") or event.get("regarding") or {}
        return f"event  {about.get('kind')}/{about.get('name')} {event.get('reason')}: {event.get('message') or event.get('note')}"
    if change.old is None or change.new is None:
        return head
    found = [_shown(*each) for each in differences(change.old.obj, change.new.obj)]
    more = f", and {len(found) - MOST} more" if len(found) > MOST else ""
    return f"{head}  {', '.join(found[:MOST])}{more}" if found else head


def differences(old: Any, new: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, before, after) of each field that differs; None stands for one that is not there."""
    if old is new or old == new:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys((*old, *new)):
            if key not in UNTOLD:
                yield from differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
        return
    left, right = _by_name(old), _by_name(new)
    if left is not None and right is not None:
        for key in dict.fromkeys((*left, *right)):
            yield from differences(left.get(key), right.get(key), f"{path}[{key}]")
        return
    yield path, old, new


def _by_name(value: Any) -> dict[str, Any] | None:
    """Return a list of objects by what tells them apart, None for anything else."""
    if value is None:
        return {}
    if not isinstance(value, list) or not value:
        return None
    for key in ("type", "name", "uid"):
        if all(isinstance(each, dict) and isinstance(each.get(key), str) for each in value):
            return {each[key]: each for each in value}
    return None


def _shown(path: str, before: Any, after: Any) -> str:
    if isinstance(after, dict) and isinstance(after.get("status"), str):  # a condition that is new
        return f"{path}={after['status']}"
    if before is None:
        return f"+{path}" if isinstance(after, dict | list) else f"{path}: {_text(after)}"
    if after is None:
        return f"-{path}"
    return f"{path}: {_text(before)} → {_text(after)}"


def _text(value: Tree | Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= LONG else text[: LONG - 1] + "…"
