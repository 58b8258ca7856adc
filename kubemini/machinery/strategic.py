"""Strategic merge patch: how kubectl, kubelets and controllers change built-in objects.

Objects merge, a null deletes, lists are replaced, or merged by a key or as sets where the schema says so. Directives in
the patch (``$patch``, ``$retainKeys``, ``$deleteFromPrimitiveList/…``, ``$setElementOrder/…``) steer it and never end
up in the object. What the real implementation does unexpectedly is kept: container ports merge by their number alone,
and elements of the patch come before elements that only the server knows.

Mirrors apimachinery's ``pkg/util/strategicpatch`` (1.36), its texts and the codes that the PATCH handler gives them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Invalid, ServerError
from kubemini.machinery.gotext import go_type, plain
from kubemini.machinery.merge import same
from kubemini.machinery.schema.types import TypeInfo, Types

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE_FROM = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"

_Items = list[Any]
_KeyOf = Callable[[Any], Any]


class Merging(NamedTuple):
    """How a field merges: `strategy` is ``merge``, ``replace`` or "", `key` finds list elements, `schema` is that of the object or the elements."""

    strategy: str
    key: str
    schema: MergeSchema


class MergeSchema(Protocol):
    """What strategic merge asks of the schema of one object."""

    def field(self, name: str) -> Merging:
        """Return how a field merges. Raise `ServerError` for an object that has no such field."""
        ...


class TypeMergeSchema:
    """The merge schema of a built-in object type."""

    __slots__ = ("_info", "_known", "_types")

    def __init__(self, types: Types, info: TypeInfo) -> None:
        self._types = types
        self._info = info
        self._known: dict[str, Merging] = {}

    def field(self, name: str) -> Merging:
        """Return how a field merges. Raise `ServerError` for an unknown field."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._merging(name)
        return known

    def _merging(self, name: str) -> Merging:
        found = self._info.fields.get(name)
        if found is None:
            raise ServerError(f'unable to find api field in struct {self._info.go_name} for the json field "{name}"')
        strategy = next((each for each in found.strategies if each != "retainKeys"), "")
        if found.cardinality == "map":
            schema: MergeSchema = _NoStruct("map")
        elif found.is_leaf:
            schema = _NoStruct(found.type)
        else:
            schema = TypeMergeSchema(self._types, self._types.type(found.type))
        return Merging(strategy, found.merge_key, schema)


class _NoStruct:
    """The schema of a map or a scalar: nothing below it has a merge rule."""

    __slots__ = ("_kind",)

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def field(self, name: str) -> Merging:
        raise ServerError(f"merging an object in json but data type is not struct, instead is: {self._kind}")


def strategic_merge(live: Tree, patch: Tree, schema: MergeSchema) -> Tree:
    """Return `live` changed by a strategic merge patch; unchanged parts are shared.

    Raise `BadRequest` for directives of a wrong shape, `ServerError` for what upstream answers with a bare 500 (unknown
    ``$patch``, a missing merge key, an order that contradicts the patch), `Invalid` for lists of lists.
    """
    return _merge_map(live, patch, schema)


# ----------------------------------------------------------------------------------------------- maps


def _merge_map(live: Tree, patch: Tree, schema: MergeSchema) -> Tree:
    if _PATCH in patch:
        return _directed(patch)
    new = dict(live)
    steering = [key for key in patch if key.startswith("$")]
    content = {key: value for key, value in patch.items() if key != _RETAIN} if steering else patch
    if _RETAIN in steering:
        _retain(new, content, patch[_RETAIN])
    for key in steering:
        if key.startswith(_ORDER) and key in content:
            _merge_ordered(new, content, key, schema)
    for key in steering:
        if key.startswith(_DELETE_FROM) and key in content:
            _delete_from(new, _field_of(key, _DELETE_FROM), content.pop(key), schema)
    for key, value in content.items():
        _merge_field(new, key, value, schema)
    return new


def _directed(patch: Tree) -> Tree:
    """Return what a map with ``$patch`` becomes."""
    directive = patch[_PATCH]
    if directive == "replace":
        return {key: _clean(value) for key, value in patch.items() if key != _PATCH and not _is_directive(value)}
    if directive == "delete":
        return {}
    raise ServerError(f"unknown patch type: {plain(directive)} in map: {plain(patch)}")


def _retain(new: Tree, content: Tree, names: Any) -> None:
    """Drop from `new` every key that a ``$retainKeys`` list does not name."""
    if not isinstance(names, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in content.items():
        if value is not None and key not in names and not key.startswith((_DELETE_FROM, _ORDER)):
            raise BadRequest("invalid patch format of retainKeys")
    for key in [each for each in new if each not in names]:
        del new[key]


def _merge_field(new: Tree, key: str, value: Any, schema: MergeSchema) -> None:
    if value is None:
        new.pop(key, None)
        return
    before = new.get(key)
    if isinstance(before, dict) and isinstance(value, dict):
        merging = schema.field(key)
        new[key] = _clean(value) if merging.strategy == "replace" else _merge_map(before, value, merging.schema)
    elif isinstance(before, list) and isinstance(value, list):
        merging = schema.field(key)
        new[key] = _merge_list(before, value, merging) if merging.strategy == "merge" else _clean(value)
    elif _is_directive(value):
        new.pop(key, None)
    else:
        new[key] = _clean(value)


def _delete_from(new: Tree, field: str, values: Any, schema: MergeSchema) -> None:
    """Take values out of a list of primitives."""
    before = new.get(field)
    if values is None:
        new.pop(field, None)
    elif isinstance(before, list) and isinstance(values, list):
        schema.field(field)
        if before or values:
            _element_kind(before, values)
        new[field] = [each for each in before if not _contains(values, each)]


def _field_of(key: str, prefix: str) -> str:
    head, slash, field = key.partition("/")
    if head != prefix or not slash:
        raise BadRequest(f"invalid patch format of {'primitive' if prefix == _DELETE_FROM else 'setElementOrder'} list")
    return field


# ----------------------------------------------------------------------------------------------- lists


def _merge_ordered(new: Tree, content: Tree, key: str, schema: MergeSchema) -> None:
    """Merge the list that a ``$setElementOrder`` directive names, and bring it into that order; both leave `content`."""
    order = content.pop(key)
    if not isinstance(order, list):
        raise ServerError(f"expected a []interface {{}}, but received a {go_type(order)}")
    field = _field_of(key, _ORDER)
    before, patch = new.get(field), content.get(field)
    for each, present in ((before, field in new), (patch, field in content)):
        if present and not isinstance(each, list):
            raise ServerError(f"expected a []interface {{}}, but received a {go_type(each)}")
    merging = schema.field(field)
    _check_order(patch or [], order, merging.key)
    content.pop(field, None)
    if before is None and patch is None:
        return
    if before is None:
        merged: _Items = _clean(patch)
    elif patch is None:
        merged = before
    elif merging.strategy == "merge":
        merged = _merge_list(before, patch, merging)
    else:
        merged = _clean(patch)
    new[field] = _in_order(merged, order, before or [], _key_of(merging.key))


def _check_order(patch: _Items, order: _Items, merge_key: str) -> None:
    """Raise where elements of the patch are missing in the order, or stand in another one."""
    if not patch or not order:
        return
    key_of = _key_of(merge_key)
    kept = [each for each in patch if not _is_directive(each)] if merge_key else patch
    at = 0
    for each in order:
        if at < len(kept) and same(key_of(kept[at]), key_of(each)):
            at += 1
    if at < len(kept):
        raise ServerError(f"The order in patch list:\n{plain(patch)}\n doesn't match {_ORDER} list:\n{plain(order)}\n")


def _merge_list(before: _Items, patch: _Items, merging: Merging) -> _Items:
    if not before and not patch:
        return before
    if _element_kind(before, patch) != "map":
        merged: _Items = []
        for each in [*before, *patch]:
            if not _contains(merged, each):
                merged.append(each)
        return _in_order(merged, patch, before, _itself)
    if not merging.key:
        raise ServerError("cannot merge lists without merge key for struct")
    key_of = _key_of(merging.key)
    live, additions = _special_elements(before, patch, key_of)
    merged = list(live)
    for each in additions:
        wanted = key_of(each)
        at = _position(merged, wanted, lambda item: item.get(merging.key))
        if at < 0:
            merged.append(_clean(each))
        else:
            merged[at] = _merge_map(merged[at], each, merging.schema)
    return _in_order(merged, additions, live, key_of)


def _special_elements(before: _Items, patch: _Items, key_of: _KeyOf) -> tuple[_Items, _Items]:
    """Return the live list after deletions (or what replaces it), and the elements to merge into it."""
    plain_elements: _Items = []
    live = before
    replace = False
    for each in patch:
        directive = each.get(_PATCH, _itself)
        if directive is _itself:
            plain_elements.append(each)
        elif directive == "delete":
            gone = key_of(each)
            live = [item for item in live if not same(key_of(item), gone)]
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise ServerError("merging lists cannot yet be specified in the patch")
        else:
            raise ServerError(f"unknown patch type: {plain(directive)} in map: {plain(each)}")
    return ([_clean(each) for each in plain_elements], []) if replace else (live, plain_elements)


def _in_order(merged: _Items, wanted: _Items, live: _Items, key_of: _KeyOf) -> _Items:
    """Return `merged` with the elements that `wanted` names in its order, and the others in the order of `live`.

    The two sequences are woven: an element that only the server knows stands before the first named one that follows it
    in the live list.
    """
    wanted_keys = [key_of(each) for each in wanted]
    live_keys = [key_of(each) for each in live]
    places = [(_position(wanted_keys, key, _itself), _position(live_keys, key, _itself), each) for each in merged for key in (key_of(each),)]
    named = sorted((each for each in places if each[0] >= 0), key=lambda each: each[0])
    others = sorted((each for each in places if each[0] < 0), key=lambda each: each[1] if each[1] >= 0 else len(live_keys))
    found: _Items = []
    at = 0
    for place in named:
        while at < len(others) and place[1] >= 0 and 0 <= others[at][1] < place[1]:
            found.append(others[at][2])
            at += 1
        found.append(place[2])
    found += [each[2] for each in others[at:]]
    return found


def _element_kind(*lists: _Items) -> str:
    """Return ``map`` or ``scalar``. Raise where elements differ in type, or are lists."""
    kinds = [go_type(each) for items in lists for each in items]
    if not kinds:
        raise ServerError("no elements in any of the given slices")
    if kinds[0] == "[]interface {}":
        raise Invalid.generic()
    if any(each != kinds[0] for each in kinds):
        raise ServerError(f"list element types are not identical: {plain(list(lists))}")
    return "map" if kinds[0] == "map[string]interface {}" else "scalar"


def _key_of(merge_key: str) -> _KeyOf:
    """Return the function that finds the key of a list element; elements of primitive lists are their own keys."""
    if not merge_key:
        return _itself

    def key(item: Any) -> Any:
        if not isinstance(item, dict):
            raise ServerError(f"expected a map[string]interface {{}}, but received a {go_type(item)}")
        if merge_key not in item:
            raise ServerError(f"map: {plain(item)} does not contain declared merge key: {merge_key}")
        return item[merge_key]

    return key


def _itself(item: Any) -> Any:
    return item


def _position(items: Sequence[Any], key: Any, key_of: _KeyOf) -> int:
    for index, each in enumerate(items):
        if same(key_of(each), key):
            return index
    return -1


def _contains(items: _Items, value: Any) -> bool:
    return any(same(each, value) for each in items)


# ----------------------------------------------------------------------------------------------- values of the patch


def _is_directive(value: Any) -> bool:
    return isinstance(value, dict) and _PATCH in value


def _clean(value: Any) -> Any:
    """Return a value of the patch as it enters the object: without directives, and without nulls in objects."""
    if isinstance(value, dict):
        return {
            key: _clean(each)
            for key, each in value.items()
            if each is not None and not _is_directive(each) and key != _RETAIN and not key.startswith((_ORDER, _DELETE_FROM))
        }
    if isinstance(value, list):
        return [_clean(each) for each in value if not _is_directive(each)]
    return value
