"""Entries of metadata.managedFields: reading them, writing them in order, capping them, and the texts of conflicts.

Mirrors apimachinery's ``pkg/util/managedfields`` (1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kubemini.api.trees import Tree
from kubemini.machinery.apply.paths import FieldsError, paths, read
from kubemini.machinery.apply.sets import EMPTY, Fields, union
from kubemini.machinery.errors import FieldConflict
from kubemini.machinery.gotext import quoted

APPLY = "Apply"
UPDATE = "Update"
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"
MAX_UPDATE_ENTRIES = 10


class Manager(NamedTuple):
    """Who owns fields: the identity of an entry. `api_version` is "" for Apply managers, who have one entry for all versions."""

    name: str
    operation: str
    api_version: str
    subresource: str

    def __str__(self) -> str:
        text = quoted(self.name)
        if self.subresource:
            text += f" with subresource {quoted(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class Owned:
    """What one manager owns, as of one version."""

    fields: Fields
    api_version: str
    time: str | None = None
    entry: Tree | None = None
    """The stored entry that says exactly this, None where it has to be written anew."""

    def with_fields(self, fields: Fields) -> Owned:
        """Return the same with other fields."""
        return self if fields is self.fields else replace(self, fields=fields, entry=None)

    def at(self, time: str | None) -> Owned:
        """Return the same with another time."""
        return self if time == self.time else replace(self, time=time, entry=None)


Managed = dict[Manager, Owned]


def updater(name: str, api_version: str, subresource: str) -> Manager:
    """Return the identity of a manager that writes without apply."""
    return Manager(name or "unknown", UPDATE, api_version, subresource)


def applier(name: str, subresource: str) -> Manager:
    """Return the identity of a manager that applies."""
    return Manager(name or "unknown", APPLY, "", subresource)


# ----------------------------------------------------------------------------------------------- reading


def decode(entries: Iterable[Mapping[str, Any]] | None) -> Managed:
    """Return the managers of stored or sent entries. Raise `FieldsError` where one is malformed."""
    found: Managed = {}
    for each in entries or ():
        operation, api_version = each.get("operation"), each.get("apiVersion")
        if operation not in {APPLY, UPDATE}:
            raise FieldsError("operation must be `Apply` or `Update`")
        if not api_version:
            raise FieldsError("apiVersion must not be empty")
        if each.get("fieldsType") != "FieldsV1":
            raise FieldsError(f"invalid fieldsType {quoted(each.get('fieldsType') or '')} in managed fields entry")
        fields = each.get("fieldsV1")
        manager = Manager(each.get("manager") or "", operation, "" if operation == APPLY else api_version, each.get("subresource") or "")
        found[manager] = Owned(EMPTY if fields is None else read(fields), api_version, each.get("time"), each)  # type: ignore[arg-type]
    return found


def of_update(live: Mapping[str, Any], new: Mapping[str, Any], *, subresource: bool) -> Managed:
    """Return the managers that an update starts from: those the request sent, or the live ones where it sent none (or nonsense).

    An empty list, or one empty entry, clears them. A write to a subresource cannot change them.
    """
    sent = new.get("managedFields")
    if not subresource and sent is not live.get("managedFields") and isinstance(sent, list):
        if not sent or sent == [{}]:
            return {}
        try:
            found = decode(sent)
        except FieldsError:
            found = {}
        if found:
            return found
    try:
        return decode(live.get("managedFields"))
    except FieldsError:
        return {}


# ----------------------------------------------------------------------------------------------- writing


def encode(managed: Managed) -> list[Tree] | None:
    """Return the entries in order: Apply before Update, older first, then by name, version and subresource. None for no entries."""
    if not managed:
        return None
    ordered = sorted(managed.items(), key=_order)
    return [owned.entry if owned.entry is not None else _entry(manager, owned) for manager, owned in ordered]


def _order(item: tuple[Manager, Owned]) -> tuple[str, str, str, str, str]:
    manager, owned = item
    return manager.operation, owned.time or "", manager.name, owned.api_version, manager.subresource


def _entry(manager: Manager, owned: Owned) -> Tree:
    entry: Tree = {"manager": manager.name, "operation": manager.operation, "apiVersion": owned.api_version}
    if owned.time is not None:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = owned.fields
    if manager.subresource:
        entry["subresource"] = manager.subresource
    return entry


def capped(managed: Managed) -> Managed:
    """Return managers with at most ten Update entries; the oldest of each version are merged into ``ancient-changes``."""
    updaters = [item for item in managed.items() if item[0].operation == UPDATE]
    excess = len(updaters) - MAX_UPDATE_ENTRIES
    if excess <= 0:
        return managed
    new = dict(managed)
    first: dict[str, Manager] = {}
    for manager, owned in sorted(updaters, key=lambda item: (item[1].time or "", item[0])):
        if excess <= 0:
            break
        version = owned.api_version
        oldest = first.get(version)
        if oldest is None:
            first[version] = manager
            continue
        bucket = updater(ANCIENT, version, "")
        gathered = new.get(bucket) or new.pop(oldest)
        del new[manager]
        # The younger time of the two stands for both.
        new[bucket] = Owned(union(owned.fields, gathered.fields), version, owned.time)
        excess -= 1
    return new


def without_times(entries: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]]:
    """Return entries without their times: two writes that differ in nothing else are one."""
    return [{key: value for key, value in each.items() if key != "time"} for each in entries or ()]


def same_but_times(left: Sequence[Mapping[str, Any]] | None, right: Sequence[Mapping[str, Any]] | None) -> bool:
    """Tell whether two lists of entries differ in times at most (their order may differ with the times)."""
    if left is right:
        return True
    if len(left or ()) != len(right or ()):
        return False
    others = without_times(right)
    return all(each in others for each in without_times(left))


# ----------------------------------------------------------------------------------------------- conflicts


def conflict(conflicts: Mapping[Manager, Fields]) -> FieldConflict:
    """Return the refusal of an apply that would change what others own, grouped by manager."""
    found = [(manager, path) for manager in sorted(conflicts) for path in paths(conflicts[manager])]
    causes = [{"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": path} for manager, path in found]
    if len(found) == 1:
        manager, path = found[0]
        return FieldConflict.build(f"Apply failed with 1 conflict: conflict with {manager}: {path}", causes)
    lines: list[str] = []
    for manager in sorted(conflicts):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {path}" for path in paths(conflicts[manager])]
    return FieldConflict.build(f"Apply failed with {len(found)} conflicts: " + "\n".join(lines), causes)
