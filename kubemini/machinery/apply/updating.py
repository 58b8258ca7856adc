"""Field managers on the write path: `track_update` for plain writes, `apply` for server-side apply.

Mirrors structured-merge-diff's ``merge.Updater`` (v6) inside of apimachinery's chain of managers (1.36): metadata that
nobody owns is stripped, a subresource neither takes nor loses fields outside of it, an object without managers is not
tracked before its first apply, old writers are gathered in ``ancient-changes``.
"""

from __future__ import annotations

from typing import NamedTuple

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.apply import managers
from kubemini.machinery.apply.builtin import UNOWNED_META
from kubemini.machinery.apply.managers import BEFORE_FIRST_APPLY, Managed, Manager, Owned, applier, updater
from kubemini.machinery.apply.merging import check, faults_text, merge
from kubemini.machinery.apply.owning import UNCHANGED, Change, compare, fields_of
from kubemini.machinery.apply.paths import FieldsError
from kubemini.machinery.apply.pruning import prune
from kubemini.machinery.apply.sets import EMPTY, LEAF, Fields, difference, interned, intersection, of_paths, union, without
from kubemini.machinery.apply.shapes import ApplySchema, Shape
from kubemini.machinery.errors import BadRequest, ServerError

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL = "kubectl"

_STRIPPED = union(of_paths(("apiVersion",), ("kind",), *(("metadata", name) for name in sorted(UNOWNED_META))), interned({"f:metadata": LEAF}))
"""Fields that are never in an entry. Plain difference: what stands below metadata stays, metadata itself does not."""
_ROOT_SKIP = frozenset({"apiVersion", "kind"})


class Reset:
    """Fields that a resource or subresource takes no part in (status on the main resource, spec on ``/status``).

    `paths` are dotted, without a leading dot: ``Reset("status")``, ``Reset("spec", "metadata.ownerReferences")``.
    """

    __slots__ = ("fields", "skip")

    def __init__(self, *paths: str) -> None:
        self.fields = of_paths(*(tuple(each.split(".")) for each in paths))
        self.skip = _ROOT_SKIP | {each for each in paths if "." not in each}

    def applied(self, fields: Fields) -> Fields:
        """Return a set without the fields, and everything below them."""
        return without(fields, self.fields) if fields else fields


NOTHING_RESET = Reset()


# ----------------------------------------------------------------------------------------------- plain writes


def track_update(
    old: Tree | None,
    new: Tree,
    *,
    manager: str,
    api_version: str,
    time: str,
    schema: ApplySchema,
    subresource: str = "",
    reset: Reset = NOTHING_RESET,
) -> list[Tree] | None:
    """Return the managedFields of an object after a create (`old` is None), an update or a patch; None for none.

    `new` is what the client wants, before admission and before the strategy: what those change is owned by nobody.
    O(what differs between the two); the live entries themselves come back when nothing does.
    """
    live_meta = old.get("metadata") or _NO_META if old is not None else _NO_META
    managed = managers.of_update(live_meta, new.get("metadata") or _NO_META, subresource=subresource != "")
    if not managed and old is not None:
        return None
    try:
        change = _changes(old or _NO_META, new, api_version, schema, reset)
        live_entries: list[Tree] | None = live_meta.get("managedFields")
        if not change.changed and not change.removed and managed is managers.decode(live_entries):
            return live_entries
        step = (id(managed), id(change.removed), id(change.changed), manager, api_version, subresource, time, id(schema))
        known = _STEPS.get(step)
        if known is None:
            writer = updater(manager, api_version, subresource)
            new_managed = _updated(old or _NO_META, new, managed, writer, api_version, time, schema, reset, change)
            known = (managed, change, schema, managers.encode(new_managed))
            if schema.stable and all(each.api_version == api_version for each in managed.values()):
                if len(_STEPS) >= _STEPS_LIMIT:
                    _STEPS.clear()
                _STEPS[step] = known
    except FieldsError:
        # Never a reason to refuse a write: who owned what stays as it was.
        return live_meta.get("managedFields")
    return known[3]


_NO_META: Tree = {}
_STEPS: dict[tuple[object, ...], tuple[Managed, Change, ApplySchema, list[Tree] | None]] = {}
"""What became of managers that met a change. Pods of one template go the same steps, and all of their parts are shared; each entry keeps its parts alive."""
_STEPS_LIMIT = 8192


def _updated(
    old: Tree, new: Tree, managed: Managed, manager: Manager, api_version: str, time: str, schema: ApplySchema, reset: Reset, here: Change
) -> Managed:
    """Return managers after a plain write that did `here`: the writer gains what it changed, everybody else loses it."""
    managed = _reconciled(managed, schema)
    managed = _taken(managed, _Comparisons(old, new, {api_version: here}, schema, reset), None)
    gained = difference(reset.applied(here.changed), _STRIPPED)
    if gained:
        before = managed.get(manager)
        fields = gained if before is None else union(before.fields, gained)
        managed[manager] = Owned(fields, api_version, time) if before is None else before.with_fields(fields).at(time)
        managed = managers.capped(managed)
    return managed


def _changes(old: Tree, new: Tree, api_version: str, schema: ApplySchema, reset: Reset) -> Change:
    root = schema.root(api_version)
    if root is None:
        raise FieldsError(f"no corresponding type for {api_version}")
    change = compare(old, new, root, reset.skip)
    if change is UNCHANGED or not reset.fields:
        return change
    return Change(reset.applied(change.removed), reset.applied(change.changed))


class _Comparisons:
    """What a write changed, as each version sees it."""

    __slots__ = ("_known", "_new", "_old", "_reset", "_schema")

    def __init__(self, old: Tree, new: Tree, known: dict[str, Change], schema: ApplySchema, reset: Reset) -> None:
        self._old, self._new, self._known, self._schema, self._reset = old, new, known, schema, reset

    def at(self, api_version: str) -> Change | None:
        """Return the change in a version, None for a version that is not served any more."""
        found = self._known.get(api_version)
        if found is None and self._schema.root(api_version) is not None:
            convert = self._schema.convert
            found = _changes(convert(self._old, api_version), convert(self._new, api_version), api_version, self._schema, self._reset)
            self._known[api_version] = found
        return found


def _taken(managed: Managed, comparisons: _Comparisons, spared: Manager | None) -> Managed:
    """Return managers without the fields that a write changed or removed; empty ones go."""
    kept: Managed = {}
    for manager, owned in managed.items():
        change = comparisons.at(owned.api_version) if manager != spared else UNCHANGED
        if change is None:
            continue
        fields = difference(difference(owned.fields, change.changed), change.removed)
        if fields:
            kept[manager] = owned.with_fields(fields)
    return kept


# ----------------------------------------------------------------------------------------------- apply


class Applied(NamedTuple):
    """What an apply makes of an object: `tree` is the merged object (the live tree itself when nothing changed in it), `managed_fields` its entries."""

    tree: Tree
    managed_fields: list[Tree] | None


def check_config(config: Tree, *, api_version: str, kind: str, schema: ApplySchema) -> None:
    """Raise `BadRequest` or `ServerError` where a configuration cannot be applied to any object of its kind."""
    if config.get("apiVersion") != api_version or config.get("kind") != kind:
        raise BadRequest(f"invalid object type: {_gvk(config)}")
    if isinstance((config.get("metadata") or {}).get("managedFields"), list):
        raise BadRequest("metadata.managedFields must be nil")
    root = _root(schema, api_version)
    faults = check(config, root)
    if faults:
        meta = config.get("metadata") or {}
        about = f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {_gvk(config)}"
        raise ServerError(f"failed to create typed patch object ({about}): {faults_text(faults)}")


def apply(
    live: Tree | None,
    config: Tree,
    *,
    manager: str,
    force: bool = False,
    api_version: str,
    kind: str,
    time: str,
    schema: ApplySchema,
    subresource: str = "",
    reset: Reset = NOTHING_RESET,
) -> Applied:
    """Merge an applied configuration into the live object (None = it is created) and settle who owns what.

    The result is not decoded, defaulted or validated yet. Raise `BadRequest` and `ServerError` for a configuration of another type
    or against the schema, `FieldConflict` where it would change what others own and `force` is off.
    """
    check_config(config, api_version=api_version, kind=kind, schema=schema)
    request = _Request(config, applier(manager, subresource), api_version, time, schema, reset)
    meta = (live or {}).get("metadata") or {}
    try:
        managed = managers.decode(meta.get("managedFields"))
        if not managed and live is not None:
            first = updater(BEFORE_FIRST_APPLY, api_version, subresource)
            born = _changes({}, live, api_version, schema, reset)
            managed = _updated({}, live, managed, first, api_version, time, schema, reset, born)
        allowed = _allowed_by_last_applied(live, api_version, schema) if manager == KUBECTL and live is not None and not force else EMPTY
        applied = request.applied_to(live or {}, managed, force=force, allowed=allowed)
    except FieldsError as error:
        raise ServerError(str(error)) from None
    return _with_last_applied(applied, config) if manager == KUBECTL else applied


class _Request(NamedTuple):
    """One apply request."""

    config: Tree
    manager: Manager
    api_version: str
    time: str
    schema: ApplySchema
    reset: Reset

    def applied_to(self, live: Tree, managed: Managed, *, force: bool, allowed: Fields) -> Applied:
        """Merge, prune, look for conflicts, and write the managers."""
        root = _root(self.schema, self.api_version)
        managed = _reconciled(managed, self.schema)
        last = managed.get(self.manager)
        everything = self.reset.applied(fields_of(self.config, root))
        mine = difference(everything, _STRIPPED)
        kept_time = last.time if last is not None else None
        owned = Owned(mine, self.api_version, kept_time)
        if last is not None and last.fields is mine and last.api_version == self.api_version:
            owned = last
        # Pruning must not touch what identifies the object, so that counts as owned here and here only.
        guarded = {**managed, self.manager: owned.with_fields(union(everything, _STRIPPED))}
        merged = prune(_merged(live, self.config, root), guarded, self.manager, last, self.schema)
        managed = {**managed, self.manager: owned}
        here = _changes(live, merged, self.api_version, self.schema, self.reset)
        comparisons = _Comparisons(live, merged, {self.api_version: here}, self.schema, self.reset)
        conflicts = self._conflicts(managed, comparisons)
        if conflicts and not force:
            refused = {each: left for each, fields in conflicts.items() if (left := difference(fields, allowed))}
            if refused:
                raise managers.conflict(refused)
        managed = _taken(managed, comparisons, self.manager)
        if self.manager in managed and merged is not live:
            managed[self.manager] = managed[self.manager].at(self.time)
        entries = managers.encode(managed)
        before = (live.get("metadata") or {}).get("managedFields")
        if before and entries is not None and len(before) == len(entries) and all(new is old for new, old in zip(entries, before, strict=True)):
            entries = before
        return Applied(merged, entries)

    def _conflicts(self, managed: Managed, comparisons: _Comparisons) -> dict[Manager, Fields]:
        """Return what other managers own and the merge changes."""
        found: dict[Manager, Fields] = {}
        for manager, owned in managed.items():
            if manager == self.manager:
                continue
            change = comparisons.at(owned.api_version)
            if change is not None and change.changed:
                both = intersection(owned.fields, change.changed)
                if both:
                    found[manager] = both
        return found


def _merged(live: Tree, config: Tree, root: Shape) -> Tree:
    merged = merge(live, config, root)
    tree: Tree = merged
    return tree


def _root(schema: ApplySchema, api_version: str) -> Shape:
    root = schema.root(api_version)
    if root is None:
        raise ServerError(f"no corresponding type for {api_version}")
    return root


def _gvk(tree: Tree) -> str:
    """Return group, version and kind of an object as Go prints them."""
    group, slash, version = (tree.get("apiVersion") or "").rpartition("/")
    return f"{group}{slash or '/'}{version}, Kind={tree.get('kind') or ''}"


# ----------------------------------------------------------------------------------------------- upgrade from client-side apply


def _allowed_by_last_applied(live: Tree, api_version: str, schema: ApplySchema) -> Fields:
    """Return the fields that the last client-side apply set and nobody changed since: kubectl's server-side apply may take them over."""
    text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
    root = schema.root(api_version)
    if not text or root is None:
        return EMPTY
    try:
        last = orjson.loads(text)
    except orjson.JSONDecodeError:
        return EMPTY
    if not isinstance(last, dict) or last.get("apiVersion") != api_version or check(last, root):
        return EMPTY
    try:
        change = compare(last, live, root)
        return difference(difference(fields_of(last, root), change.changed), change.removed)
    except FieldsError:
        return EMPTY


def _with_last_applied(applied: Applied, config: Tree) -> Applied:
    """Keep the annotation of client-side apply in step, where the object has one."""
    tree = applied.tree
    meta = tree.get("metadata") or {}
    annotations = meta.get("annotations") or {}
    if not annotations.get(LAST_APPLIED):
        return applied
    about = config.get("metadata") or {}
    if LAST_APPLIED in (about.get("annotations") or {}):
        rest = {key: value for key, value in about["annotations"].items() if key != LAST_APPLIED}
        config = {**config, "metadata": {**about, "annotations": rest}}
    text = orjson.dumps(config, option=orjson.OPT_SORT_KEYS).decode() + "\n"
    if text == annotations[LAST_APPLIED]:
        return applied
    return applied._replace(tree={**tree, "metadata": {**meta, "annotations": {**annotations, LAST_APPLIED: text}}})


# ----------------------------------------------------------------------------------------------- schema changes

_FITTED: dict[tuple[int, int], tuple[Fields, Shape, Fields]] = {}
_FITTED_LIMIT = 8192


def _reconciled(managed: Managed, schema: ApplySchema) -> Managed:
    """Return managers whose sets fit the current schemas: what became atomic since is owned as a whole. Versions no longer served go."""
    if schema.stable:
        return dict(managed)
    found: Managed = {}
    for manager, owned in managed.items():
        root = schema.root(owned.api_version)
        if root is not None:
            found[manager] = owned.with_fields(_fitted(owned.fields, root))
    return found


def _fitted(fields: Fields, shape: Shape) -> Fields:
    key = (id(fields), id(shape))
    known = _FITTED.get(key)
    if known is None:
        if len(_FITTED) >= _FITTED_LIMIT:
            _FITTED.clear()
        known = _FITTED[key] = (fields, shape, _fit(fields, shape))
    return known[2]


def _fit(fields: Fields, shape: Shape) -> Fields:
    new: Fields | None = None
    for element, below in fields.items():
        under = shape.of_element(element) if below else None
        if under is None:
            continue
        whole = under.atomic_object if under.is_object else under.is_list and under.atomic_list
        fit = LEAF if whole else _fit(below, under)
        if fit is not below:
            new = dict(fields) if new is None else new
            new[element] = fit
    return fields if new is None else interned(new)
