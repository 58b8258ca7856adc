"""kubectl's JSONPath, as printer columns and selectable fields of custom resources use it.

One path, without the template language around it: fields, quoted and escaped keys, indices and slices, wildcards,
recursive descent, unions, filters (``.status.conditions[?(@.type=="Ready")].status``). Absent keys find nothing; what
cannot be found or compared is an error, which an empty cell stands for. Mirrors client-go's ``util/jsonpath`` (1.36).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

import orjson

from kubemini.machinery.gotext import is_decimal, plain
from kubemini.machinery.human import human_duration


class JsonPathError(ValueError):
    """A path is malformed, or finds something that it cannot go on with."""


class Field(NamedTuple):
    """``.name``: the value of a key."""

    name: str


class Slice(NamedTuple):
    """``[start:end]``, ``[index]``, ``[*]``: items of a list; None = from the start, to the end."""

    start: int | None
    end: int | None
    single: bool = False


class Wildcard(NamedTuple):
    """``.*``: all values."""


class Recursive(NamedTuple):
    """``..``: every container below, the values themselves first."""


class Constant(NamedTuple):
    """A text, number or boolean in a filter."""

    value: Any


class Identifier(NamedTuple):
    """A bare word: means nothing outside of templates."""

    name: str


class Union(NamedTuple):
    """``[a,b]``: what any of the paths finds."""

    members: tuple[tuple[Node, ...], ...]


class Filter(NamedTuple):
    """``[?(left op right)]``: the items for which it holds; ``exists`` only asks for the left side."""

    left: tuple[Node, ...]
    operator: str
    right: tuple[Node, ...]


Node = Field | Slice | Wildcard | Recursive | Constant | Identifier | Union | Filter


class JsonPath:
    """A parsed path. Raise `JsonPathError` for a malformed one."""

    __slots__ = ("_nodes", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._nodes = _parse(text)

    def find(self, tree: Any) -> list[Any]:
        """Return everything that the path finds, nothing for absent keys. Raise `JsonPathError`."""
        return _walk([tree], self._nodes)

    def first(self, tree: Any, default: Any = None) -> Any:
        """Return the first value found, `default` where there is none or the path leads astray.

        >>> JsonPath(".status.conditions[?(@.type=='Ready')].status").first({"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
        'True'
        """
        try:
            found = self.find(tree)
        except JsonPathError:
            return default
        return found[0] if found else default

    def text_of(self, tree: Any) -> str:
        """Return the first value found as selectable fields compare it: "" where there is none."""
        value = self.first(tree)
        return "" if value is None else printed(value)


_ABSENT = object()


def cell(path: JsonPath, kind: str, tree: Any, now: float) -> Any:
    """Return the cell of a printer column of a type (string, integer, number, boolean, date), None where there is nothing to show.

    `now` is the Unix time that dates are shown relative to.
    """
    value = path.first(tree, _ABSENT)
    if value is _ABSENT:
        return None
    if kind == "string":
        return printed(value)
    if kind == "integer":
        return int(value) if _is_number(value) else None
    if kind == "number":
        return float(value) if _is_number(value) else None
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "date" and isinstance(value, str):
        try:
            return human_duration(now - datetime.fromisoformat(value).timestamp())
        except ValueError:
            return "<invalid>"
    return None


def printed(value: Any) -> str:
    """Return a value as text: objects and lists as JSON, the rest as Go prints it.

    >>> printed([1, "a"]), printed(2.0), printed(True)
    ('[1,"a"]', '2', 'true')
    """
    if isinstance(value, dict | list):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    return "<no value>" if value is None else plain(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# ----------------------------------------------------------------------------------------------- parsing

_TERMINATORS = frozenset(" \t\r\n.,[]$@{}")
_key_of = re.compile("'([^']*)'").fullmatch
_slice_of = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?").fullmatch
_filter_of = re.compile("([^!<>=]+)([!<>=]+)(.+)", re.DOTALL).fullmatch


def _parse(text: str) -> tuple[Node, ...]:
    found: list[Node] = []
    at = 0
    while at < len(text):
        at = _parse_one(text, at, found)
    return tuple(found)


def _parse_one(text: str, at: int, found: list[Node]) -> int:
    """Parse what starts at a position into `found`; return the position behind it."""
    here = text[at]
    if text.startswith("[?(", at):
        return _parse_filter(text, at + 3, found)
    if text.startswith("..", at):
        if found and isinstance(found[-1], Recursive):
            raise JsonPathError("invalid multiple recursive descent")
        found.append(Recursive())
        following = text[at + 2 : at + 3]
        return _parse_field(text, at + 2, found) if following == "_" or following.isalnum() else at + 2
    if here in "\r\n":
        raise JsonPathError("unclosed action")
    if here in " @$":
        return at + 1
    if here == "[":
        return _parse_brackets(text, at + 1, found)
    if here in "\"'":
        return _parse_quoted(text, at, found)
    if here == ".":
        return _parse_field(text, at + 1, found)
    if here in "+-" or is_decimal(here):
        return _parse_number(text, at, found)
    if here == "_" or here.isalnum():
        end = _word_end(text, at)
        word = text[at:end]
        found.append(Constant(word == "true") if word in {"true", "false"} else Identifier(word))
        return end
    raise JsonPathError(f"unrecognized character in action: U+{ord(here):04X} '{here}'")


def _word_end(text: str, at: int) -> int:
    while at < len(text) and text[at] not in _TERMINATORS:
        at += 1
    return at


def _parse_field(text: str, at: int, found: list[Node]) -> int:
    start = at
    while at < len(text) and text[at] not in _TERMINATORS:
        at += 2 if text[at] == "\\" else 1
    name = text[start:at]
    found.append(Wildcard() if name == "*" else Field(name.replace("\\", "")))
    return at


def _parse_number(text: str, at: int, found: list[Node]) -> int:
    end = at + 1 if text[at] in "+-" else at
    while end < len(text) and (text[end] == "." or is_decimal(text[end])):
        end += 1
    word = text[at:end]
    try:
        found.append(Constant(float(word) if "." in word else int(word)))
    except ValueError:
        raise JsonPathError(f"cannot parse number {word}") from None
    return end


def _parse_quoted(text: str, at: int, found: list[Node]) -> int:
    quote = text[at]
    end = at + 1
    while end < len(text) and text[end] != quote:
        end += 2 if text[end] == "\\" else 1
    if end >= len(text) or "\n" in text[at:end]:
        raise JsonPathError("unterminated quoted string")
    found.append(Constant(re.sub(r"\\(.)", r"\1", text[at + 1 : end])))
    return end + 1


def _parse_brackets(text: str, at: int, found: list[Node]) -> int:
    end = text.find("]", at)
    if end < 0:
        raise JsonPathError("unterminated array")
    inner = text[at:end]
    parts = inner.split(",")
    key = _key_of(inner)
    if len(parts) > 1:
        found.append(Union(tuple(_parse(f"[{each.strip(' ')}]") for each in parts)))
    elif key is not None:
        found += _parse(f".{key[1]}")
    else:
        found.append(_parse_slice("" if inner == "*" else inner, whole=inner == "*"))
    return end + 1


def _parse_slice(text: str, *, whole: bool) -> Slice:
    if whole:
        return Slice(None, None)
    parts = _slice_of(text)
    if parts is None or text in {"", "-"}:
        raise JsonPathError(f"invalid array index {text}")
    start, end, _ = parts.groups()
    try:
        first = int(start) if start else None
        if end is None:
            return Slice(first, None, single=True)
        return Slice(first, int(end[1:]) if end != ":" else None)
    except ValueError:
        raise JsonPathError(f"array index {text} is not a number") from None


def _parse_filter(text: str, at: int, found: list[Node]) -> int:
    end = at
    quote = ""
    while True:
        if end >= len(text) or text[end] == "\n":
            raise JsonPathError("unterminated filter")
        here = text[end]
        if quote:
            quote = "" if here == quote and text[end - 1] != "\\" else quote
        elif here in "\"'":
            quote = here
        elif here == ")":
            break
        end += 1
    if text[end + 1 : end + 2] != "]":
        raise JsonPathError("unclosed array expect ]")
    condition = _filter_of(text[at:end])
    if condition is None:
        found.append(Filter(_parse(text[at:end]), "exists", ()))
    else:
        left, operator, right = condition.groups()
        found.append(Filter(_parse(left), operator, _parse(right)))
    return end + 2


# ----------------------------------------------------------------------------------------------- evaluation


def _walk(values: list[Any], nodes: tuple[Node, ...]) -> list[Any]:
    for node in nodes:
        values = _step(values, node)
    return values


def _step(values: list[Any], node: Node) -> list[Any]:
    if isinstance(node, Field):
        return [each[node.name] for each in values if isinstance(each, dict) and node.name in each]
    if isinstance(node, Slice):
        return [item for each in values if each is not None for item in _items(each, node)]
    if isinstance(node, Wildcard):
        return [item for each in values for item in _children(each)]
    if isinstance(node, Recursive):
        return [item for each in values for item in _below(each)]
    if isinstance(node, Constant):
        return [node.value] if isinstance(node.value, str) else [node.value for _ in values]
    if isinstance(node, Union):
        return [item for member in node.members for item in _walk(values, member)]
    if isinstance(node, Filter):
        return [item for each in values for item in _filtered(each, node)]
    raise JsonPathError(f"unrecognized identifier {node.name}")


def _items(value: Any, node: Slice) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError("value is not array or slice")
    size = len(value)
    start = node.start or 0
    end = start + 1 if node.single else size if node.end is None else node.end
    # The end of a single negative index counts from where its start counts: [-1] ends at 0, which is the list's end.
    start, end = (start + size if start < 0 else start), (end + size if end < 0 or (node.single and start < 0) else end)
    if start != end:
        for index, limit in ((start, size - 1), (end - 1, size - 1)):
            if index > limit or start < 0:
                raise JsonPathError(f"array index out of bounds: index {index}, length {size}")
    return value[start:end]


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _below(value: Any) -> list[Any]:
    children = _children(value)
    return [value, *(item for each in children for item in _below(each))] if children else []


def _filtered(value: Any, node: Filter) -> list[Any]:
    if not isinstance(value, list):
        raise JsonPathError("value is not array or slice and cannot be filtered")
    return [each for each in value if _holds(each, node)]


def _holds(item: Any, node: Filter) -> bool:
    left = _walk([item], node.left)
    if node.operator == "exists":
        return bool(left)
    if not left:
        return False
    right = _walk([item], node.right)
    if not right:
        return False
    if len(left) > 1 or len(right) > 1:
        raise JsonPathError("can only compare one element at a time")
    compare = _COMPARISONS.get(node.operator)
    if compare is None:
        raise JsonPathError(f"unrecognized filter operator {node.operator}")
    a, b = left[0], right[0]
    if _comparable(a) != _comparable(b):
        raise JsonPathError("incompatible types for comparison")
    if isinstance(a, bool) and node.operator not in {"==", "!="}:
        raise JsonPathError("invalid type for comparison")
    return compare(a, b)


def _comparable(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "text"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "float"
    raise JsonPathError("invalid type for comparison")


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}
