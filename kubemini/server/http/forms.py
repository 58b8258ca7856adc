"""The forms in which objects are shown: plain JSON from the cached bytes, Table, and metadata only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest
from kubemini.server.kinds.tables.common import age
from kubemini.server.options import Listing
from kubemini.server.registry import Kind, Served
from kubemini.server.strategy import Column, Table
from kubemini.store import Record

META_V1 = "meta.k8s.io/v1"


def encode(record: Record, served: Served) -> bytes:
    """Return a record's JSON in a version; the storage version's bytes are the record's cached ones."""
    if served.stored_as_is:
        return record.bytes
    return orjson.dumps(served.from_storage(record.obj))


def list_meta(listing: Listing) -> Tree:
    """Return the metadata of a list."""
    meta: Tree = {"resourceVersion": str(listing.revision)}
    if listing.continue_token:
        meta["continue"] = listing.continue_token
        if listing.remaining:
            meta["remainingItemCount"] = listing.remaining
    return meta


def list_body(listing: Listing, served: Served) -> list[bytes]:
    """Return the JSON of a list as pieces to be joined. Items of built-in kinds carry no kind and apiVersion, as upstream's typed lists."""
    meta = list_meta(listing)
    head = orjson.dumps({"kind": served.kind.list_kind, "apiVersion": served.api_version, "metadata": meta})
    pieces = [head[:-1], b',"items":[']
    typed = b"" if served.kind.custom else orjson.dumps({"apiVersion": served.api_version, "kind": served.kind.kind})[:-1] + b","
    cut = len(typed)
    first = True
    for record in listing.records:
        data = encode(record, served)
        if not first:
            pieces.append(b",")
        first = False
        if cut:
            if data.startswith(typed):
                pieces += (b"{", memoryview(data)[cut:])  # type: ignore[arg-type]
                continue
            data = orjson.dumps({key: value for key, value in orjson.loads(data).items() if key not in ("apiVersion", "kind")})
        pieces.append(data)
    pieces.append(b"]}")
    return pieces


def partial(obj: Tree, version: str = "v1") -> Tree:
    """Return an object's PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": f"meta.k8s.io/{version}", "metadata": obj["metadata"]}


def partial_list(listing: Listing, version: str) -> Tree:
    """Return a list's PartialObjectMetadataList."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": list_meta(listing),
        "items": [partial(record.obj, version) for record in listing.records],
    }


# ----------------------------------------------------------------------------------------------- tables

_DEFAULT_TABLE = Table(
    (
        Column("Name", format="name", description="Name must be unique within a namespace."),
        Column("Created At", type="date", description="CreationTimestamp is the server time when this object was created, in RFC3339 form and UTC."),
    ),
    lambda obj, _: [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")],
)


def table_of(served: Served) -> Table:
    """Return how a kind prints in a version."""
    return served.version.table or served.kind.strategy.table or _DEFAULT_TABLE


def column_definitions(table: Table) -> list[Tree]:
    """Return a Table's columnDefinitions."""
    return [
        {"name": column.name, "type": column.type, "format": column.format, "description": column.description, "priority": column.priority}
        for column in table.columns
    ]


def table_rows(objects: Sequence[Tree], table: Table, include: str, now: float, version: str) -> list[Tree]:
    """Return a Table's rows. `include` is Metadata, None or Object. Raise `BadRequest` for any other."""
    rows: list[Tree] = []
    for obj in objects:
        row: Tree = {"cells": table.row(obj, now)}
        if table.conditions is not None and (conditions := table.conditions(obj)):
            row["conditions"] = conditions
        row["object"] = _included(obj, include, version)
        rows.append(row)
    return rows


def _included(obj: Tree, include: str, version: str) -> Any:
    if include in ("", "Metadata"):
        return partial(obj, version)
    if include == "Object":
        return obj
    if include == "None":
        return None
    raise BadRequest(f'unrecognized includeObject value: "{include}"')


def table_body(objects: Sequence[Tree], served: Served, meta: Tree, *, include: str, now: float, version: str, with_columns: bool = True) -> Tree:
    """Return a Table of objects (in the served version)."""
    table = table_of(served)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": column_definitions(table) if with_columns else None,
        "rows": table_rows(objects, table, include, now, version),
    }


def scale_table(scale: Tree, meta: Tree, now: float, version: str) -> Tree:
    """Return the Table of a Scale."""
    columns = [("Name", "string", "name"), ("Desired", "integer", ""), ("Available", "integer", ""), ("Age", "string", "")]
    cells = [
        scale["metadata"]["name"],
        scale["spec"].get("replicas", 0),
        scale["status"].get("replicas", 0),
        age(scale, now),
    ]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": meta,
        "columnDefinitions": [{"name": name, "type": type_, "format": format_, "description": "", "priority": 0} for name, type_, format_ in columns],
        "rows": [{"cells": cells, "object": partial(scale, version)}],
    }


def bookmark(kind: Kind, api_version: str, revision: int, *, initial_end: bool = False) -> Tree:
    """Return the object of a BOOKMARK event."""
    meta: Tree = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    return {"kind": kind.kind, "apiVersion": api_version, "metadata": meta}
