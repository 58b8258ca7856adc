"""YAML documents as JSON trees, by the rules of Kubernetes: YAML 1.1 as Go's yaml.v2 resolves plain scalars.

``yes``, ``no``, ``on``, ``off``, ``y`` and ``n`` are booleans, ``0644`` is octal, ``1_000`` a number, a date stays text, keys become strings, whole
floats become integers, ``<<`` merges. PyYAML composes the nodes (with libyaml where it is there); what they mean is decided here.
Mirrors go.yaml.in/yaml/v2 ``resolve.go`` and sigs.k8s.io/yaml 1.6.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson
import yaml
from yaml.scanner import ScannerError

from kubemini.machinery.schema.body import DEPTH, BodyError

_PLAIN: Final = "plain"
_TAG: Final = "tag:yaml.org,2002:"
_WORDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}

_float = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII).fullmatch
_integer = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))", re.ASCII).fullmatch

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Composes nodes, and marks the scalars that stand plain and without a tag."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else f"{_TAG}str"
        return f"{_TAG}seq" if kind is yaml.SequenceNode else f"{_TAG}map"


def documents(body: bytes) -> Iterator[tuple[Any, list[str]]]:
    """Yield each document as a JSON tree, and a text for each key that stands twice in a map. Raise `BodyError`."""
    loader = _Loader(body)
    try:
        while loader.check_node():
            builder = _Builder()
            yield builder.build(loader.get_node()), builder.repeated
    except yaml.MarkedYAMLError as problem:
        raise BodyError(
            f"error converting YAML to JSON: yaml: {_where(problem)}{problem.problem or 'unknown problem parsing YAML content'}"
        ) from None
    except yaml.YAMLError as problem:
        raise BodyError(f"error converting YAML to JSON: yaml: {problem}") from None
    finally:
        loader.dispose()


def _where(problem: Any) -> str:
    """Return where a text went wrong, counted as upstream counts."""
    mark, context = problem.problem_mark, problem.context_mark
    line = 0
    if mark is not None and mark.line:
        line = mark.line + isinstance(problem, ScannerError)
    elif context is not None:
        line = context.line
    return f"line {line}: " if line else ""


class _Builder:
    """The JSON tree of one document."""

    def __init__(self) -> None:
        self.repeated: list[str] = []
        self._open: list[int] = []
        self._seen: set[int] = set()
        self._built = 0
        self._aliased = 0
        self._alias_depth = 0

    def build(self, node: Any) -> Any:
        """Return the value of a node; nodes behind an alias are built anew each time, as in Go, and not without end."""
        self._built += 1
        if self._alias_depth:
            self._aliased += 1
            if self._aliased > 100 and self._built > 1000 and self._aliased / self._built > _aliases_allowed(self._built):
                raise BodyError("error converting YAML to JSON: yaml: document contains excessive aliasing")
        if isinstance(node, yaml.ScalarNode):
            return _number(_resolved(node))
        if id(node) in self._open:
            raise BodyError("error converting YAML to JSON: yaml: anchor value contains itself")
        if len(self._open) >= DEPTH:
            raise BodyError("error converting YAML to JSON: exceeded max depth")
        again = id(node) in self._seen
        self._seen.add(id(node))
        self._open.append(id(node))
        self._alias_depth += again
        built = [self.build(each) for each in node.value] if isinstance(node, yaml.SequenceNode) else self._map(node)
        self._alias_depth -= again
        self._open.pop()
        return built

    def _map(self, node: Any) -> dict[str, Any]:
        tree: dict[str, Any] = {}
        merged: list[Any] = []
        for key_node, value_node in node.value:
            if _is_merge(key_node):
                merged.append(value_node)
                continue
            key = _key(key_node)
            value = self.build(value_node)
            if key in tree:
                shown = orjson.dumps(key).decode() if isinstance(_resolved(key_node), str) else key
                self.repeated.append(f"line {value_node.start_mark.line + 1}: key {shown} already set in map")
            tree[key] = value
        for value_node in merged:
            tree = {**self._merged(value_node), **tree}
        return tree

    def _merged(self, node: Any) -> dict[str, Any]:
        """Return the fields that ``<<`` brings in: those of a map, or of several, the first going before the later."""
        if isinstance(node, yaml.SequenceNode):
            tree: dict[str, Any] = {}
            for each in node.value:
                tree = {**self._merged(each), **tree}
            return tree
        if not isinstance(node, yaml.MappingNode):
            raise BodyError("error converting YAML to JSON: yaml: map merge requires map or sequence of maps as the value")
        built: dict[str, Any] = self.build(node)
        return built


def _aliases_allowed(built: int) -> float:
    """Return which part of so many nodes may stand behind aliases: nearly all in a small document, a tenth in a huge one."""
    return 0.99 - 0.89 * min(max(built - 400_000, 0) / 3_600_000, 1.0)


def _is_merge(node: Any) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.value == "<<" and node.tag in {_PLAIN, f"{_TAG}merge"}


def _key(node: Any) -> str:
    """Return a key as text. Raise `BodyError` for keys that JSON cannot have."""
    if not isinstance(node, yaml.ScalarNode):
        raise BodyError("error converting YAML to JSON: yaml: invalid map key: a map or a list")
    key = _resolved(node)
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int):
        return str(key)
    if isinstance(key, float):
        return f"{key:.8g}" if math.isfinite(key) else {math.inf: ".inf", -math.inf: "-.inf"}.get(key, ".nan")
    raise BodyError("error converting YAML to JSON: unsupported map key of type: %!s(<nil>), key: <nil>, value: " + "map[]")


def _resolved(node: Any) -> Any:
    """Return the value of a scalar: Python's str, bool, int, float or None."""
    text: str = node.value
    tag = node.tag
    if tag == _PLAIN:
        return plain(text)
    if tag.startswith(_TAG) and tag[len(_TAG) :] in {"bool", "int", "float", "null"}:
        value = plain(text)
        wanted = tag[len(_TAG) :]
        if wanted == "float" and type(value) is int:
            return float(value)
        if {"bool": bool, "int": int, "float": float, "null": type(None)}[wanted] is type(value):
            return value
        raise BodyError(f"error converting YAML to JSON: yaml: cannot decode !!{_kind(value)} `{text}` as a !!{wanted}")
    return text


def plain(text: str) -> Any:
    """Return what a plain scalar means.

    >>> [plain(each) for each in ("on", "0644", "1_000", "1e3", "2026-01-01", "1Gi", "~")]
    [True, 420, 1000, 1000.0, '2026-01-01', '1Gi', None]
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "+-0123456789":
        return _numeric(text)
    return _numeric(text) if text[0] == "." else text


def _numeric(text: str) -> Any:
    bare = text.replace("_", "")
    found = _integer(bare)
    if found is not None:
        sign, sixteen, two, eight, ten = found.groups()
        value = int(sixteen, 16) if sixteen else int(two, 2) if two else int(eight, 8) if eight else int(ten)
        value = -value if sign == "-" else value
        if -(2**63) <= value < 2**64:
            return value
    real = float(bare) if _float(bare) is not None else math.inf
    return real if math.isfinite(real) else text


def _number(value: Any) -> Any:
    """Return a value as JSON has it: a whole float is an integer."""
    if type(value) is float:
        if not math.isfinite(value):
            raise BodyError(f"json: unsupported value: {'NaN' if math.isnan(value) else '+Inf' if value > 0 else '-Inf'}")
        if value.is_integer() and -(2.0**63) <= value < 2.0**64:
            return int(value)
    return value


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return "str"
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "float" if isinstance(value, float) else "null"
