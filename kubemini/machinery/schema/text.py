"""Request bodies to trees: JSON as fast as orjson unless a key may be there twice, YAML as ``sigs.k8s.io/yaml`` reads it.

Both parsers also tell which fields stood twice, in the words of strict field validation; hand the texts to `Codec.decode`. Failures are
`BodyError` with the text of Go's parser, for the HTTP layer to wrap.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson

from kubemini.machinery.schema.body import BodyError

# ----------------------------------------------------------------------------------------------- JSON


def parse_json(body: bytes) -> tuple[Any, list[str]]:
    """Return what a JSON text means, and texts like ``duplicate field "spec.replicas"``. The last of two equal keys wins. Raise `BodyError`."""
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise BodyError(_json_problem(body)) from None
    try:
        return tree, _duplicates(body) if _may_repeat(body, tree) else []
    except TypeError:  # orjson's words for a tree that is too deep to be written again
        raise BodyError("exceeded max depth") from None


def _may_repeat(body: bytes, tree: Any) -> bool:
    """Tell whether a key may stand twice: the text has more keys than the tree, or blanks and escapes forbid counting. May be wrong one way only."""
    again = orjson.dumps(tree)
    if body.startswith(again):
        # Most programs write JSON in the same way.
        return False
    if b" :" in body or b"\n:" in body or b"\t:" in body or b"\r:" in body or b'\\\\":' in body:
        return True
    return _keys(body) != _keys(again)


def _keys(body: bytes) -> int:
    """Return the number of keys in a text that has no blanks before colons. Inside a string, a quote before a colon is an escaped one."""
    return body.count(b'":') - body.count(b'\\":')


class _Repeated(dict[str, Any]):
    """A JSON object some of whose keys stood twice, with all that stood."""

    pairs: tuple[tuple[str, Any], ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = _Repeated(found)
    repeated.pairs = tuple(pairs)
    return repeated


def _duplicates(body: bytes) -> list[str]:
    tree = json.loads(body, object_pairs_hook=_object)
    return [f"duplicate field {orjson.dumps(path).decode()}" for path in dict.fromkeys(_repeated_paths(tree, ""))]


def _repeated_paths(tree: Any, path: str) -> Iterator[str]:
    if isinstance(tree, dict):
        seen: set[str] = set()
        for key, each in tree.pairs if isinstance(tree, _Repeated) else tree.items():
            here = f"{path}.{key}" if path else key
            if key in seen:
                yield here
            seen.add(key)
            yield from _repeated_paths(each, here)
    elif isinstance(tree, list):
        for index, each in enumerate(tree):
            yield from _repeated_paths(each, f"{path}[{index}]")


_GO_PROBLEMS = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Invalid control character at": "in string literal",
}


_LITERALS = {"t": "true", "f": "false", "n": "null"}


def _json_problem(body: bytes) -> str:
    """Return what Go's scanner says of a text that is no JSON."""
    odd = -1
    try:
        text = body.decode()
    except UnicodeDecodeError as problem:
        text, odd = body[: problem.start].decode(), problem.start
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        if odd >= 0 and (problem.pos >= len(text) or problem.msg.startswith("Unterminated")):
            return f"invalid character {_shown(chr(body[odd]))} in string literal"
        return _in_go(problem.msg, problem.pos, text)
    except RecursionError:
        return "exceeded max depth"
    return "invalid character in JSON"


def _in_go(message: str, at: int, text: str) -> str:
    """Return Go's words for a complaint of Python's parser."""
    if at >= len(text) or message.startswith("Unterminated"):
        return "unexpected end of JSON input"
    if message == "Expecting ',' delimiter":
        return f"invalid character {_shown(text[at])} {_after(text[:at])}"
    if message.startswith("Illegal trailing comma"):
        at += 1 + len(text[at + 1 :]) - len(text[at + 1 :].lstrip())
    if message.startswith("Invalid \\"):
        return f"invalid character {_shown(text[min(at + 1, len(text) - 1)])} in string escape code"
    literal = _LITERALS.get(text[at])
    if message == "Expecting value" and literal is not None:
        wrong = next(index for index, char in enumerate(literal) if text[at + index : at + index + 1] != char)
        return f"invalid character {_shown(text[at + wrong : at + wrong + 1] or ' ')} in literal {literal} (expecting '{literal[wrong]}')"
    return f"invalid character {_shown(text[at])} {_GO_PROBLEMS.get(message, 'looking for beginning of value')}"


def _after(head: str) -> str:
    """Return where a missing comma would have stood: the innermost bracket that is open."""
    depth = 0
    for char in reversed(re.sub(r'"(?:\\.|[^"\\])*"', '""', head)):
        if char in "}]":
            depth += 1
        elif char in "{[":
            if depth == 0:
                return "after object key:value pair" if char == "{" else "after array element"
            depth -= 1
    return "after top-level value"


def _shown(char: str) -> str:
    return {"\\": r"'\\'", "'": r"'\''", '"': "'\"'", "\n": r"'\n'", "\r": r"'\r'", "\t": r"'\t'"}.get(char, f"'{char}'")


# ----------------------------------------------------------------------------------------------- YAML


def parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    """Return what the first document of a YAML text means in JSON, and the text about keys that stand twice, if any. Raise `BodyError`."""
    from kubemini.machinery.schema.yaml import documents

    for tree, repeated in documents(body):
        return tree, [f"yaml: unmarshal errors:\n{chr(10).join(f'  {each}' for each in repeated)}"] if repeated else []
    return None, []


def parse_manifest(text: bytes | str) -> list[Any]:
    """Return the documents of a YAML or JSON text; empty documents are left out. Raise `BodyError`."""
    from kubemini.machinery.schema.yaml import documents

    return [tree for tree, _ in documents(text.encode() if isinstance(text, str) else text) if tree is not None]
