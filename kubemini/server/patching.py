"""From a patch and the live object to the patched, decoded object: JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Invalid, UnsupportedMediaType, invalid, shown
from kubemini.machinery.schema.builtin import BuiltinCodec
from kubemini.machinery.schema.contract import Undecodable
from kubemini.machinery.strategic import TypeMergeSchema, strategic_merge
from kubemini.server.options import Patch
from kubemini.server.registry import Served


def patched(live: Tree, patch: Patch, served: Served, validation: str, *, scale: bool = False) -> tuple[Tree, list[str]]:
    """Return the patched object after decoding, and warnings. `scale` patches a Scale, which is not decoded by the kind's codec. Raise `Invalid`, `BadRequest`."""
    new = _apply(live, patch, served, scale=scale)
    if scale:
        return new, []
    if not isinstance(new, dict):
        raise _undecodable(new, "json: cannot unmarshal into an object")
    group_version, kind = new.get("apiVersion") or live["apiVersion"], new.get("kind") or live["kind"]
    if group_version != live["apiVersion"] or kind != live["kind"]:
        raise _undecodable(new, f'no kind "{kind}" is registered for version "{group_version}" in scheme "pkg/api/legacyscheme/scheme.go:30"')
    new = {**new, "apiVersion": group_version, "kind": kind}
    try:
        decoded = served.version.codec.decode(new, validation=validation, stored=live if served.stored_as_is else None)
    except Undecodable as problem:
        raise _undecodable(new, problem.why) from None
    return decoded.tree, decoded.warnings


def _apply(live: Tree, patch: Patch, served: Served, *, scale: bool) -> Any:
    # Imported here: patch formats are not needed to start a server.
    if patch.type == "merge":
        from kubemini.machinery.merge import merge_patch

        if not isinstance(patch.body, dict):
            raise BadRequest("error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}")
        return merge_patch(live, patch.body)
    if patch.type == "json":
        from kubemini.machinery.jsonpatch import json_patch

        return json_patch(live, patch.body)
    if patch.type == "strategic":
        if served.kind.custom:
            raise UnsupportedMediaType(
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
            )
        if not isinstance(patch.body, dict):
            raise BadRequest("error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}")
        return strategic_merge(live, patch.body, _merge_schema(served, scale=scale))
    raise BadRequest(f"unknown patch type: {patch.type}")


def _merge_schema(served: Served, *, scale: bool) -> TypeMergeSchema:
    codec = served.version.codec
    if not isinstance(codec, BuiltinCodec):
        raise TypeError(f"{served.kind.qualified} is no built-in kind: it has no strategic merge")
    return TypeMergeSchema(codec.types, codec.types.type("autoscaling/v1.Scale")) if scale else codec.merging


def _undecodable(new: object, why: str) -> Invalid:
    error = invalid("patch", None, why)
    body = f"Invalid value: {shown(shown(new))}: {why}"
    return Invalid.of("", "", "", [type(error)(error.reason, error.field, body)])
