"""The hash of a pod template, byte for byte as upstream makes it: the ``pod-template-hash`` of ReplicaSets, the name of a DaemonSet's revision.

Upstream hashes a printed dump of the whole Go struct, absent fields included, with 32-bit FNV-1a. So the layout of the structs is data here
(``api/schemas/pod_template_layout.tsv``), and `dump` prints a template as that dump reads. Mirrors ``controller.ComputeHash`` (Kubernetes 1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.replica_set import go_quantity
from kubemini.controllers.revisions.hashing import fnv1a, safe_encode
from kubemini.machinery.memo import IdentityMemo
from kubemini.machinery.schema.go_order import POD_TEMPLATE, layout

_HASHES: IdentityMemo[dict[int | None, str]] = IdentityMemo(1024)


def template_hash(template: Tree, collisions: int | None = None) -> str:
    """Return the hash of a pod template; `collisions` is the collision count of its owner, where it has one. Computed once per template object."""
    known = _HASHES.get(template)
    if known is None:
        known = _HASHES.put(template, {})
    found = known.get(collisions)
    if found is None:
        found = known[collisions] = _hash(template, collisions)
    return found


def _hash(template: Tree, collisions: int | None) -> str:
    data = dump(template).encode()
    if collisions is not None:
        data += collisions.to_bytes(4, "little") + b"\0\0\0\0"
    return safe_encode(str(fnv1a(data)))


def dump(template: Tree) -> str:
    """Return a pod template as Go's deep printer shows it."""
    return f"({POD_TEMPLATE})" + "".join(_struct(POD_TEMPLATE, template))


def _struct(name: str, tree: Tree) -> Iterator[str]:
    yield "{"
    gap = ""
    for go, json, kind in layout()[name]:
        yield f"{gap}{go}:"
        gap = " "
        yield from _typed(kind, tree if not json else tree.get(json))
    yield "}"


def _typed(kind: str, value: Any) -> Iterator[str]:
    yield f"({kind})"
    yield from _plain(kind, value)


def _plain(kind: str, value: Any) -> Iterator[str]:
    """Yield a value without its type."""
    if kind.startswith("*"):
        if value is None:
            yield "<nil>"
        else:
            yield from _plain(kind[1:], value)
    elif kind.startswith("[]"):
        yield from _list(kind[2:], value)
    elif kind.startswith("map[") or kind == "v1.ResourceList":
        yield from _map(value, "resource.Quantity" if kind == "v1.ResourceList" else kind.partition("]")[2])
    elif kind in _SPECIAL:
        yield _SPECIAL[kind](value)
    elif kind in layout():
        yield from _struct(kind, value or {})
    elif kind == "bool":
        yield "true" if value else "false"
    elif kind.startswith("int"):
        yield str(value or 0)
    else:
        yield value or ""


def _list(kind: str, value: Any) -> Iterator[str]:
    if not value:
        # An empty list does not survive the way through etcd
        yield "<nil>"
        return
    yield "["
    for index, each in enumerate(value):
        if index:
            yield " "
        yield from _plain(kind, each)
    yield "]"


def _map(value: Any, kind: str) -> Iterator[str]:
    if not value:
        yield "<nil>"
        return
    yield "map["
    for index, key in enumerate(sorted(value, key=str.encode)):
        yield f"{' ' if index else ''}{key}:"
        yield from _plain(kind, value[key])
    yield "]"


def _time(value: Any) -> str:
    return "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"


def _int_or_string(value: Any) -> str:
    if isinstance(value, str):
        return f"{{Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string){value}}}"
    return f"{{Type:(intstr.Type)0 IntVal:(int32){value or 0} StrVal:(string)}}"


_SPECIAL: dict[str, Callable[[Any], str]] = {
    "v1.Time": _time,
    "intstr.IntOrString": _int_or_string,
    "resource.Quantity": go_quantity.shown,
    "v1.FieldsV1": lambda _: "{Raw:([]uint8)<nil>}",
}
