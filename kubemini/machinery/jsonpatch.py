"""JSON patch (RFC 6902) on immutable trees, with the errors of the PATCH endpoint.

Only the containers on the way to a changed place are copied. What the API server's library (evanphx/json-patch) does
beyond the RFC is kept: negative indices count from the end, a ``test`` for null holds where nothing is, a missing
``value`` is null.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Invalid, TooLarge
from kubemini.machinery.gotext import is_decimal, json_kind
from kubemini.machinery.merge import same

MAX_OPERATIONS = 10_000
COPY_LIMIT = 3 << 20
"""How many bytes of JSON the ``copy`` operations of one patch may add: as many as a request's body."""

_ABSENT: Final = object()
_PATCH_TYPE = "[]handlers.jsonPatchOp"


class PatchFailed(Exception):
    """An operation does not apply; clients get a text without details."""


class TestFailed(PatchFailed):
    """A ``test`` does not hold."""


def json_patch(live: Tree, operations: Any) -> Any:
    """Return `live` changed by a JSON patch. Raise `BadRequest` for a malformed patch, `TooLarge`, and the generic `Invalid` where it does not apply.

    >>> json_patch({"a": {"b": [1, 2]}}, [{"op": "add", "path": "/a/b/-", "value": 3}, {"op": "remove", "path": "/a/b/0"}])
    {'a': {'b': [2, 3]}}
    """
    check_patch(operations)
    try:
        return operated(live, operations)
    except PatchFailed:
        raise Invalid.generic() from None


def operated(live: Any, operations: Sequence[Tree]) -> Any:
    """Return `live` changed by the operations of a JSON patch. Raise `PatchFailed`, `TestFailed`."""
    new, copied = live, 0
    for each in operations:
        if each.get("op") == "copy":
            copied += _size(_find(new, _pointer(each.get("from") or "")))
            if copied > COPY_LIMIT:
                raise PatchFailed("too much is copied")
        new = _applied(new, each)
    _size(new)
    return new


def _size(value: Any) -> int:
    """Return how many bytes a value has as JSON. Raise where it is too deep to be written."""
    if value is _ABSENT:
        return 0
    try:
        return len(orjson.dumps(value))
    except TypeError:
        raise PatchFailed("exceeded max depth") from None


def check_patch(operations: Any) -> None:
    """Raise `BadRequest` where a body is no list of operations, `TooLarge` where they are too many."""
    if not isinstance(operations, list):
        raise BadRequest(f"error decoding patch: json: cannot unmarshal {json_kind(operations)} into Go value of type {_PATCH_TYPE}")
    for each in operations:
        if not isinstance(each, dict):
            raise BadRequest(f"error decoding patch: json: cannot unmarshal {json_kind(each)} into Go value of type {_PATCH_TYPE[2:]}")
        for name in ("op", "path", "from"):
            value = each.get(name)
            if value is not None and not isinstance(value, str):
                raise BadRequest(
                    f"error decoding patch: json: cannot unmarshal {json_kind(value)} into Go struct field jsonPatchOp.{name} of type string"
                )
    if len(operations) > MAX_OPERATIONS:
        raise TooLarge(f"Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}")


def _applied(doc: Any, operation: Tree) -> Any:
    kind = operation.get("op")
    path = operation.get("path")
    if path is None:
        raise PatchFailed("operation missing path field")
    keys = _pointer(path)
    if kind == "add":
        return _add(doc, keys, operation.get("value"))
    if kind == "remove":
        return _remove(doc, keys)
    if kind == "replace":
        return _replace(doc, keys, operation.get("value"))
    if kind == "test":
        _test(doc, keys, operation.get("value"))
        return doc
    if kind in {"move", "copy"}:
        origin = operation.get("from")
        if origin is None:
            raise PatchFailed("operation missing from field")
        source = _pointer(origin)
        value = _find(doc, source)
        if value is _ABSENT:
            raise PatchFailed(f"missing from path: {origin}")
        return _add(_remove(doc, source) if kind == "move" else doc, keys, value)
    raise PatchFailed(f"unexpected kind: {kind}")


def _pointer(path: str) -> list[str]:
    """Return the keys of a JSON pointer."""
    if not path:
        return []
    if not path.startswith("/"):
        raise PatchFailed(f"missing path: {path}")
    return [each.replace("~1", "/").replace("~0", "~") for each in path[1:].split("/")]


def _find(doc: Any, keys: Sequence[str]) -> Any:
    """Return the value at a place, `_ABSENT` where a last key is missing. Raise where the way there is."""
    here = doc
    for depth, key in enumerate(keys):
        if isinstance(here, dict):
            here = here.get(key, _ABSENT)
        elif isinstance(here, list):
            here = here[_index(key, len(here))]
        else:
            raise PatchFailed("no container")
        if here is _ABSENT and depth < len(keys) - 1:
            raise PatchFailed("missing path")
    return here


def _index(key: str, size: int) -> int:
    """Return a list index; negative ones count from the end."""
    try:
        index = int(key)
    except ValueError:
        raise PatchFailed(f"no index: {key}") from None
    if not -size <= index < size or not is_decimal(key.lstrip("+-")):
        raise PatchFailed(f"invalid index: {key}")
    return index % size


def _changed(doc: Any, keys: Sequence[str], change: Any) -> Any:
    """Return `doc` with the container of the last key replaced by ``change(container, key)``."""
    head = keys[0]
    if len(keys) == 1:
        return change(doc, head)
    if isinstance(doc, dict):
        if head not in doc:
            raise PatchFailed("missing path")
        return {**doc, head: _changed(doc[head], keys[1:], change)}
    if isinstance(doc, list):
        index = _index(head, len(doc))
        return [*doc[:index], _changed(doc[index], keys[1:], change), *doc[index + 1 :]]
    raise PatchFailed("no container")


def _whole(value: Any) -> Any:
    """Return a value that becomes the whole document."""
    if not isinstance(value, dict | list):
        raise PatchFailed("the document must be an object or array")
    return value


def _add(doc: Any, keys: list[str], value: Any) -> Any:
    def change(container: Any, key: str) -> Any:
        if isinstance(container, dict):
            return {**container, key: value}
        if not isinstance(container, list):
            raise PatchFailed("no container")
        index = len(container) if key == "-" else _index(key, len(container) + 1)
        return [*container[:index], value, *container[index:]]

    return _changed(doc, keys, change) if keys else _whole(value)


def _remove(doc: Any, keys: list[str]) -> Any:
    def change(container: Any, key: str) -> Any:
        if isinstance(container, dict):
            if key not in container:
                raise PatchFailed(f"nonexistent key: {key}")
            return {name: each for name, each in container.items() if name != key}
        if not isinstance(container, list):
            raise PatchFailed("no container")
        index = _index(key, len(container))
        return [*container[:index], *container[index + 1 :]]

    if not keys:
        raise PatchFailed("the whole document cannot be removed")
    return _changed(doc, keys, change)


def _replace(doc: Any, keys: list[str], value: Any) -> Any:
    def change(container: Any, key: str) -> Any:
        if isinstance(container, dict):
            if key not in container:
                raise PatchFailed(f"missing key: {key}")
            return {**container, key: value}
        if not isinstance(container, list):
            raise PatchFailed("no container")
        index = _index(key, len(container))
        return [*container[:index], value, *container[index + 1 :]]

    return _changed(doc, keys, change) if keys else _whole(value)


def _test(doc: Any, keys: list[str], value: Any) -> None:
    found = _find(doc, keys)
    if found is _ABSENT:
        found = None
    if not same(found, value):
        raise TestFailed("test failed")
