"""What an apply takes out of the object: fields that the manager applied last time, not this time, and nobody else owns.

Mirrors ``prune`` of structured-merge-diff's ``merge.Updater`` (v6).
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.apply.managers import Managed, Manager, Owned
from kubemini.machinery.apply.merging import named, remove
from kubemini.machinery.apply.owning import fields_of
from kubemini.machinery.apply.sets import EMPTY, Fields, difference, intersection, union
from kubemini.machinery.apply.shapes import ApplySchema, Shape


def prune(merged: Tree, managed: Managed, manager: Manager, last: Owned | None, schema: ApplySchema) -> Tree:
    """Return the merged object without what `manager` owned in its last apply (`last`) and has given up.

    `managed` holds the manager's new set already. Sets of other versions are looked at in their own version.
    """
    root = schema.root(last.api_version) if last is not None and last.fields else None
    if last is None or root is None:
        return merged
    whole = schema.convert(merged, last.api_version)
    gone = named(last.fields, root)
    pruned = _without(whole, gone, root)
    if pruned is whole:
        return merged
    pruned = _with_owned(whole, pruned, last.api_version, managed, schema)
    # Fields inside of what was removed that the manager never owned come back too: defaults, and those of plain writers.
    dangling = difference(_members(whole, root), _members(schema.convert(pruned, last.api_version), root))
    kept: Tree = remove(whole, intersection(dangling, gone), root, emptied=[])
    return merged if kept is whole else schema.convert(kept, managed[manager].api_version)


def _with_owned(whole: Tree, pruned: Tree, first: str, managed: Managed, schema: ApplySchema) -> Tree:
    """Return `pruned` with everything put back that somebody owns, version by version, starting with that of `pruned`."""
    owned: dict[str, Fields] = {first: EMPTY}
    for each in managed.values():
        owned[each.api_version] = union(owned.get(each.api_version, EMPTY), each.fields)
    for version, fields in owned.items():
        root = schema.root(version)
        if root is None or not fields:
            continue
        whole, pruned = schema.convert(whole, version), schema.convert(pruned, version)
        wanted = union(_members(pruned, root), named(fields, root))
        pruned = _without(whole, difference(_members(whole, root), wanted), root)
    return pruned


def _members(tree: Tree, root: Shape) -> Fields:
    return named(fields_of(tree, root), root)


def _without(tree: Tree, fields: Fields, root: Shape) -> Tree:
    kept: Tree = remove(tree, fields, root)
    return kept
