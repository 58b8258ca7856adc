"""Request bodies and queries: bytes and strings in, trees and option values out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import duration, protobuf
from kubemini.machinery.errors import ApiStatus, BadRequest, Invalid, UnsupportedMediaType, forbidden, not_supported, required
from kubemini.machinery.metadata import validate_field_manager
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.machinery.schema.text import parse_json, parse_yaml
from kubemini.server.http.negotiation import JSON, PROTOBUF, YAML
from kubemini.server.options import Caller, DeleteOptions, ListOptions, WriteOptions

PATCH_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}


@dataclass(slots=True)
class Body:
    """A parsed body: the value (None when empty) and the duplicate keys found in it."""

    value: Any = None
    duplicates: list[str] = field(default_factory=list)


def media_type(header: str | None) -> str:
    """Return the media type of a Content-Type header, without parameters; JSON where there is none."""
    return (header or "").partition(";")[0].strip().lower() or JSON


def parse(data: bytes, media: str, schemas: BuiltinSchemas | None) -> Body:
    """Return a create, update or delete body. `schemas` decode protobuf (None where the kind has none). Raise `BadRequest`, `UnsupportedMediaType`."""
    if media == PROTOBUF and schemas is not None:
        if not data:
            return Body()
        return Body(protobuf.decode(data, schemas))
    if media not in (JSON, YAML, "application/x-yaml", "text/yaml", "application/octet-stream", "application/x-www-form-urlencoded"):
        raise UnsupportedMediaType(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
        )
    if not data:
        return Body()
    tree, duplicates = parse_yaml(data) if media in (YAML, "application/x-yaml", "text/yaml") else parse_json(data)
    return Body(tree, duplicates)


def parse_patch(data: bytes, media: str, *, custom: bool) -> tuple[str, Body]:
    """Return a patch's type and body. Raise `BadRequest`, `UnsupportedMediaType`, `TooLarge`."""
    type_ = PATCH_TYPES.get(media)
    if type_ is None or (custom and type_ == "strategic"):
        listed = [each for each in PATCH_TYPES if not (custom and "strategic" in each)]
        raise UnsupportedMediaType(f"the body of the request was in an unknown format - accepted media types include: {', '.join(listed)}")
    if type_ == "apply":
        try:
            tree, duplicates = parse_yaml(data)
        except ApiStatus as problem:
            raise BadRequest(f"error decoding YAML: {problem.message}") from None
        return type_, Body(tree, duplicates)
    try:
        tree, duplicates = parse_json(data)
    except ApiStatus as problem:
        raise BadRequest(f"error decoding patch: {problem.message}") from None
    return type_, Body(tree, duplicates)


# ----------------------------------------------------------------------------------------------- queries

Query = Mapping[str, str]


def truth(query: Query, name: str) -> bool | None:
    """Return a boolean parameter as the server parses it: absent None, ``false`` and ``0`` false, anything else true."""
    value = query.get(name)
    if value is None:
        return None
    return value.lower() not in ("false", "0")


def timeout(query: Query) -> None:
    """Check the deadline that a client sets. Raise `BadRequest` for what is no duration."""
    try:
        if query["timeout"]:
            duration.parse(query["timeout"])
    except duration.DurationError as problem:
        raise BadRequest(f"invalid timeout specified in the request URL - {problem}") from None


def integer(query: Query, name: str) -> int | None:
    """Return an integer parameter, None when absent or empty. Raise `BadRequest`."""
    value = query.get(name)
    if not value:
        return None
    try:
        return int(value)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{value}": invalid syntax') from None


def list_options(query: Query) -> ListOptions:
    """Return list and watch options. Raise `BadRequest`."""
    if not query:
        return _EVERYTHING
    timeout = integer(query, "timeoutSeconds")
    return ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=max(integer(query, "limit") or 0, 0),
        continue_token=query.get("continue", ""),
        resource_version=query.get("resourceVersion", ""),
        resource_version_match=query.get("resourceVersionMatch", ""),
        send_initial_events=truth(query, "sendInitialEvents"),
        bookmarks=bool(truth(query, "allowWatchBookmarks")),
        timeout=float(timeout) if timeout is not None else None,
    )


_EVERYTHING = ListOptions()


def dry_run(values: list[str], options_kind: str) -> bool:
    """Tell whether a write is a dry run. Raise `Invalid` for any value but All."""
    for value in values:
        if value != "All":
            raise Invalid.of(options_kind, "meta.k8s.io", "", [not_supported("dryRun", value, ("All",))])
    return bool(values)


def write_options(query: Query, caller: Caller, kind: str, *, dry: list[str], patch_type: str = "", duplicates: Sequence[str] = ()) -> WriteOptions:
    """Return the options of a create, update or patch (`kind` is CreateOptions, …). Raise `Invalid`."""
    problems = []
    validation = query.get("fieldValidation") or "Warn"
    if validation not in ("Ignore", "Warn", "Strict"):
        problems.append(not_supported("fieldValidation", validation, ("Ignore", "Strict", "Warn")))
    manager = query.get("fieldManager", "")
    if patch_type == "apply":
        if not manager:
            problems.append(required("fieldManager", "is required for apply patch"))
    elif patch_type and truth(query, "force") is not None:
        problems.append(forbidden("force", "may not be specified for non-apply patch"))
    problems += validate_field_manager(manager)
    if problems:
        raise Invalid.of(kind, "meta.k8s.io", "", problems)
    return WriteOptions(
        caller=caller,
        field_manager=manager,
        field_validation=validation,
        dry_run=dry_run(dry, kind),
        force=bool(truth(query, "force")),
        duplicates=tuple(duplicates),
    )


def delete_options(body: Tree | None, query: Query, caller: Caller, dry: list[str]) -> DeleteOptions:
    """Return delete options of the body, or of the query where the body is empty. Raise `BadRequest`, `Invalid`."""
    if body:
        kind = body.get("kind")
        if kind and kind != "DeleteOptions":
            raise BadRequest(f'decoded object cannot be converted to DeleteOptions: kind "{kind}"')
        preconditions = body.get("preconditions") or {}
        grace, orphan = body.get("gracePeriodSeconds"), body.get("orphanDependents")
        if grace is not None and not isinstance(grace, int):
            raise BadRequest(f"json: cannot unmarshal {type(grace).__name__} into Go struct field DeleteOptions.gracePeriodSeconds of type int64")
        return DeleteOptions(
            caller=caller,
            grace=grace,
            propagation=body.get("propagationPolicy") or "",
            orphan=orphan,
            uid=preconditions.get("uid") or "",
            resource_version=preconditions.get("resourceVersion") or "",
            dry_run=dry_run([*dry, *(body.get("dryRun") or [])], "DeleteOptions"),
        )
    return DeleteOptions(
        caller=caller,
        grace=integer(query, "gracePeriodSeconds"),
        propagation=query.get("propagationPolicy", ""),
        orphan=truth(query, "orphanDependents"),
        dry_run=dry_run(dry, "DeleteOptions"),
    )
