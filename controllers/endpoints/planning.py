"""Which endpoints go into which slice: as few writes as possible, slices as full as possible.

Endpoints with other ports live in other slices. Within one set of ports, endpoints stay in the slice where they are; new ones fill slices that are written anyway, then one
that has room for all of them, then new slices. Mirrors ``reconcileByPortMapping`` and ``finalize`` of k8s.io/endpointslice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.memo import by_identity

SLICE_LIMIT = 100
"""Endpoints per slice (--max-endpoints-per-slice)."""

Ports = tuple[tuple[str, str, int, str | None], ...]
"""A set of ports as a key: (name, protocol, number, appProtocol), sorted."""
Identity = tuple[Any, ...]


@dataclass(slots=True)
class Plan:
    """Slices to write. What is to create has no name yet; what is to delete may be owned by an earlier Service of the name."""

    create: list[Tree] = field(default_factory=list)
    update: list[Tree] = field(default_factory=list)
    delete: list[Tree] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    """Endpoints that come into and go from slices of wanted ports."""
    held: dict[Ports, tuple[int, int]] = field(default_factory=dict)
    """By wanted ports: (endpoints, slices)."""


def ports_key(ports: Sequence[Tree] | None) -> Ports:
    """Return the key of a slice's ports."""
    if not ports:
        return ()
    return tuple(
        sorted(
            ((each.get("name") or "", each.get("protocol") or "TCP", each.get("port") or 0, each.get("appProtocol")) for each in ports or ()),
            key=lambda port: (port[0], port[1], port[2], port[3] or ""),
        )
    )


def identity(endpoint: Tree) -> Identity:
    """Return what makes an endpoint the same although its conditions change: addresses, host name and pod name."""
    target = endpoint.get("targetRef") or {}
    return (*endpoint["addresses"], endpoint.get("hostname"), target.get("namespace"), target.get("name"))


@by_identity(limit=4096)
def _identities(endpoints: list[Tree]) -> list[Identity]:
    """Return the identities of a slice's endpoints."""
    return [identity(each) for each in endpoints]


def plan(
    existing: Sequence[Tree],
    wanted: dict[Ports, dict[Identity, Tree]],
    ports: dict[Ports, list[Tree]],
    *,
    owner_uid: str,
    skeleton: Tree,
    labels: Tree,
) -> Plan:
    """Return what is to be written so that the slices hold the wanted endpoints, for one family of addresses.

    `wanted` is by set of ports, then by identity (it is used up); `skeleton` is a new slice without ports and endpoints; `labels` are those that every slice must have.
    """
    found = Plan()
    by_ports: dict[Ports, list[Tree]] = {}
    for each in existing:
        if any(reference["uid"] == owner_uid for reference in each["metadata"].get("ownerReferences") or ()):
            by_ports.setdefault(ports_key(each.get("ports")), []).append(each)
        else:
            found.delete.append(each)
    for key, endpoints in wanted.items():
        number, slices = len(endpoints), by_ports.pop(key, [])
        before = len(found.create) - len(found.delete)
        _fit(found, slices, endpoints, {**skeleton, "ports": ports[key]}, labels)
        found.held[key] = number, len(slices) + len(found.create) - len(found.delete) - before
    for each_group in by_ports.values():
        found.delete += each_group
    if len(existing) == len(found.delete) and not found.create:
        # A Service without endpoints still has one empty slice, so that everybody sees that it is looked after
        if len(found.delete) == 1 and _is_placeholder(found.delete[0], owner_uid, labels):
            found.delete = []
        else:
            found.create.append(skeleton)
        found.held[()] = 0, 1
    _recycle(found, owner_uid)
    return found


def _fit(found: Plan, slices: list[Tree], wanted: dict[Identity, Tree], skeleton: Tree, labels: Tree) -> None:
    changed: dict[str, Tree] = {}
    unchanged: dict[str, Tree] = {}
    for each in slices:
        name = each["metadata"]["name"]
        old: list[Tree] = each.get("endpoints") or []
        kept: list[Tree] = []
        differs = False
        for endpoint, known in zip(old, _identities(old), strict=True):
            want = wanted.pop(known, None)
            if want is None:
                differs = True
                found.removed += 1
            elif want is endpoint or want == endpoint:
                kept.append(endpoint)
            else:
                kept.append(want)
                differs = True
        if differs and not kept:
            found.delete.append(each)
        elif differs or each["metadata"].get("labels") != labels:
            changed[name] = {**each, "metadata": {**each["metadata"], "labels": labels}, "endpoints": kept}
        else:
            unchanged[name] = each
    rest = list(wanted.values())
    found.added += len(rest)
    for each in sorted(changed.values(), key=lambda slice_: -len(slice_["endpoints"])):
        room = SLICE_LIMIT - len(each["endpoints"])
        if rest and room > 0:
            each["endpoints"] = [*each["endpoints"], *rest[:room]]
            rest = rest[room:]
    while rest:
        fill = _fullest_with_room(unchanged, len(rest)) if len(rest) < SLICE_LIMIT else None
        if fill is not None:
            each = unchanged.pop(fill)
            changed[fill] = {**each, "endpoints": [*(each.get("endpoints") or ()), *rest]}
            rest = []
        else:
            found.create.append({**skeleton, "endpoints": rest[:SLICE_LIMIT]})
            rest = rest[SLICE_LIMIT:]
    found.update += changed.values()


def _fullest_with_room(slices: dict[str, Tree], count: int) -> str | None:
    best, least = None, SLICE_LIMIT
    for name, each in slices.items():
        room = SLICE_LIMIT - count - len(each.get("endpoints") or ())
        if 0 <= room < least:
            best, least = name, room
    return best


def _is_placeholder(each: Tree, owner_uid: str, labels: Tree) -> bool:
    owners = each["metadata"].get("ownerReferences") or ()
    return (
        not each.get("endpoints")
        and not each.get("ports")
        and each["metadata"].get("labels") == labels
        and [owner["uid"] for owner in owners] == [owner_uid]
    )


def _recycle(found: Plan, owner_uid: str) -> None:
    """Turn a deletion and a creation into one update of the slice that would go."""
    kept: list[Tree] = []
    for each in found.delete:
        owned = any(reference["uid"] == owner_uid for reference in each["metadata"].get("ownerReferences") or ())
        if found.create and owned and each["addressType"] == found.create[-1]["addressType"]:
            new = found.create.pop()
            meta = {**each["metadata"], "labels": new["metadata"]["labels"]}
            found.update.append({**new, "metadata": meta})
        else:
            kept.append(each)
    found.delete = kept
