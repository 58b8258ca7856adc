r"""Kubernetes' JSONPath, as far as printer columns, scale paths and selectable fields use it: one path without braces.

``.status.conditions[?(@.type=="Ready")].status``, ``.metadata.labels['a.b/c']``, ``.spec.containers[0].image``, ``.items[*]``, ``.a\.b``.
Missing keys yield nothing (upstream's AllowMissingKeys). Mirrors ``client-go/util/jsonpath`` without templates, ranges, unions and
recursive descent, which none of these may use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from kubemini.api.trees import Tree

Path = Callable[[Any], list[Any]]
"""Finds all values that a path names, in order."""
_Step = Callable[[Any], Iterable[Any]]

_FIELD = re.compile(r"\.?((?:[^.\[\]\\]|\\.)+)")
_QUOTED = re.compile(r"""\[\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\s*\]""")
_INDEX = re.compile(r"\[\s*(-?\d+)\s*\]")
_SLICE = re.compile(r"\[\s*(-?\d*)\s*:\s*(-?\d*)\s*\]")
_ANY = re.compile(r"\[\s*\*\s*\]|\.\*")
_FILTER = re.compile(r"""\[\?\(\s*@((?:[^=!<>'"\s)]|\\.)*)\s*(?:(==|!=|<=|>=|<|>)\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^)\s]+))?\s*\)\]""")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_ESCAPED = re.compile(r"\\(.)")


@lru_cache(maxsize=1024)
def compiled(path: str) -> Path:
    """Return the finder of a path. Raise ValueError for what is no path of this kind.

    >>> compiled(".spec.ports[?(@.name=='http')].port")({"spec": {"ports": [{"name": "http", "port": 80}, {"name": "x"}]}})
    [80]
    """
    steps = list(_steps(path.strip()))

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [each for one in found for each in step(one)]
        return found

    return find


def first(tree: Tree, path: str) -> Any:
    """Return the first value that a path names, or None."""
    found = compiled(path)(tree)
    return found[0] if found else None


def _steps(path: str) -> Iterator[_Step]:
    position = 0
    while position < len(path):
        for pattern, make in _SYNTAX:
            match = pattern.match(path, position)
            if match is not None and match.end() > position:
                yield make(match)
                position = match.end()
                break
        else:
            raise ValueError(f"{path!r} is no JSONPath that is understood here: unexpected {path[position:]!r}")


def _key(match: re.Match[str]) -> _Step:
    name = _ESCAPED.sub(r"\1", next(group for group in match.groups() if group is not None))
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _index(match: re.Match[str]) -> _Step:
    at = int(match[1])
    return lambda value: (value[at],) if isinstance(value, list) and -len(value) <= at < len(value) else ()


def _slice(match: re.Match[str]) -> _Step:
    part = slice(int(match[1]) if match[1] else None, int(match[2]) if match[2] else None)
    return lambda value: value[part] if isinstance(value, list) else ()


def _any(match: re.Match[str]) -> _Step:
    return lambda value: value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _filter(match: re.Match[str]) -> _Step:
    inner, operator, text = compiled(match[1] or ""), match[2], match[3]
    if operator is None:
        return lambda value: [each for each in value if inner(each)] if isinstance(value, list) else ()
    compare, wanted = _COMPARE[operator], _literal(text)

    def chosen(value: Any) -> list[Any]:
        if not isinstance(value, list):
            return []
        return [each for each in value if any(_comparable(found, wanted) and compare(found, wanted) for found in inner(each)[:1])]

    return chosen


def _literal(text: str) -> Any:
    if text[0] in "'\"":
        return _ESCAPED.sub(r"\1", text[1:-1])
    if text in {"true", "false"}:
        return text == "true"
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text


def _comparable(found: Any, wanted: Any) -> bool:
    """Tell whether two values are of one type, numbers being of one."""
    kinds = [int if isinstance(each, int | float) and not isinstance(each, bool) else type(each) for each in (found, wanted)]
    return kinds[0] is kinds[1]


_SYNTAX: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], _Step]], ...] = (
    (_ANY, _any),
    (_FIELD, _key),
    (_QUOTED, _key),
    (_INDEX, _index),
    (_SLICE, _slice),
    (_FILTER, _filter),
)
