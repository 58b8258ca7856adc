"""Paths of JSON patches (apiserver ``pkg/cel/library/jsonpatch.go``)."""

from __future__ import annotations

from kubemini.machinery.cel.overloads import function


@function("jsonpatch.escapeKey(string) -> string", "string_jsonpatch_escapeKey_string")
def escape_key(text: str) -> str:
    """Return a key as a JSON pointer has it."""
    return text.replace("~", "~0").replace("/", "~1")
