"""Entries of metadata.managedFields: reading them, writing them in order, capping them, and the texts of conflicts.

Mirrors apimachinery's ``pkg/util/managedfields`` (1.36).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubemini.api.trees import Tree
from kubemini.machinery.apply.paths import FieldsError, paths, read
from kubemini.machinery.apply.sets import EMPTY, Fields, union
from kubemini.machinery.errors import FieldConflict
from kubemini.machinery.gotext import quoted
from kubemini.machinery.memo import IdentityMemo

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


class Owned(NamedTuple):
    """What one manager owns, as of one version."""

    fields: Fields
    api_version: str
    time: str | None = None

    def with_fields(self, fields: Fields) -> Owned:
        """Return the same with other fields."""
        return self if fields is self.fields else Owned(fields, self.api_version, self.time)

    def at(self, time: str | None) -> Owned:
        """Return the same with another time."""
        return self if time == self.time else Owned(self.fields, self.api_version, time)


Managed = dict[Manager, Owned]
"""The managers of an object; never mutated once it was returned."""
NOBODY: Final[Managed] = {}


def updater(name: str, api_version: str, subresource: str) -> Manager:
    """Return the identity of a manager that writes without apply."""
    return Manager(name or "unknown", UPDATE, api_version, subresource)


def applier(name: str, subresource: str) -> Manager:
    """Return the identity of a manager that applies."""
    return Manager(name or "unknown", APPLY, "", subresource)


# ----------------------------------------------------------------------------------------------- reading

_READ: IdentityMemo[tuple[Manager, Owned]] = IdentityMemo(8192)
_LISTS_READ: IdentityMemo[Managed] = IdentityMemo(8192)


def decode(entries: Sequence[Mapping[str, Any]] | None) -> Managed:
    """Return the managers of stored entries; the mapping must not be mutated. Raise `FieldsError` where an entry is malformed.

    Once per list: stored lists are shared by many objects.
    """
    if not entries:
        return NOBODY
    known = _LISTS_READ.get(entries)
    return known if known is not None else _LISTS_READ.put(entries, dict(map(_decoded, entries)))


def _decoded(entry: Mapping[str, Any]) -> tuple[Manager, Owned]:
    known = _READ.get(entry)
    if known is not None:
        return known
    operation, api_version = entry.get("operation"), entry.get("apiVersion")
    if operation not in {APPLY, UPDATE}:
        raise FieldsError("operation must be `Apply` or `Update`")
    if not api_version:
        raise FieldsError("apiVersion must not be empty")
    if entry.get("fieldsType") != "FieldsV1":
        raise FieldsError(f"invalid fieldsType {quoted(entry.get('fieldsType') or '')} in managed fields entry")
    fields = entry.get("fieldsV1")
    manager = Manager(entry.get("manager") or "", operation, "" if operation == APPLY else api_version, entry.get("subresource") or "")
    return manager, Owned(EMPTY if fields is None else read(fields), api_version, entry.get("time"))


def of_update(live: Mapping[str, Any], new: Mapping[str, Any], *, subresource: bool) -> Managed:
    """Return the managers that an update starts from: those the request sent, or the live ones where it sent none (or nonsense).

    An empty list, or one empty entry, clears them. A write to a subresource cannot change them.
    """
    sent = new.get("managedFields")
    if not subresource and sent is not live.get("managedFields") and isinstance(sent, list):
        if not sent or sent == [{}]:
            return NOBODY
        try:
            # Not remembered: the next request brings a tree of its own.
            found = dict(map(_decoded, sent))
        except FieldsError:
            found = NOBODY
        if found:
            return found
    try:
        return decode(live.get("managedFields"))
    except FieldsError:
        return NOBODY


# ----------------------------------------------------------------------------------------------- writing


_WRITTEN_LIMIT = 16384
_ENTRIES: dict[tuple[Manager, str, str | None, int], tuple[Fields, Tree]] = {}
_LISTS: dict[tuple[int, ...], list[Tree]] = {}


def encode(managed: Managed) -> list[Tree] | None:
    """Return the entries in order: Apply before Update, older first, then by name, version and subresource. None for no entries.

    Equal entries, and equal lists of them, are mostly the same objects: 10,000 pods of one template share theirs.
    """
    if not managed:
        return None
    items = sorted(managed.items(), key=_order) if len(managed) > 1 else managed.items()
    entries = [_entry(manager, owned) for manager, owned in items]
    # The lists keep their entries alive, so that ids name them.
    key = tuple(map(id, entries))
    known = _LISTS.get(key)
    if known is None:
        _halve(_LISTS)
        known = _LISTS[key] = entries
    return known


def _order(item: tuple[Manager, Owned]) -> tuple[str, str, str, str, str]:
    manager, owned = item
    return manager.operation, owned.time or "", manager.name, owned.api_version, manager.subresource


def _entry(manager: Manager, owned: Owned) -> Tree:
    key = (manager, owned.api_version, owned.time, id(owned.fields))
    known = _ENTRIES.get(key)
    if known is not None:
        return known[1]
    entry: Tree = {"manager": manager.name, "operation": manager.operation, "apiVersion": owned.api_version}
    if owned.time is not None:
        entry["time"] = owned.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = owned.fields
    if manager.subresource:
        entry["subresource"] = manager.subresource
    _halve(_ENTRIES)
    _ENTRIES[key] = (owned.fields, entry)
    _READ.put(entry, (manager, owned))
    return entry


def _halve(memo: dict[Any, Any]) -> None:
    if len(memo) >= _WRITTEN_LIMIT:
        for key in list(memo)[: _WRITTEN_LIMIT // 2]:
            del memo[key]


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
