"""What the keywords of a schema ask of one value: type, format, bounds, pattern, enum. Each becomes a function, worked out once per schema.

Mirrors kube-openapi's ``pkg/validation/validate`` (1.36), order and texts included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, invalid, shown, too_long, too_many, type_invalid
from kubemini.machinery.regexes import RegexError, found
from kubemini.machinery.schema.formats import FLOAT_MAX, INTEGER_FORMATS, string_format
from kubemini.machinery.schema.structure import Node

Path = tuple[Any, ...]
"""Where a value is: ``(parent, how, key)`` up to ``()``; `how` is "." for a property, "{" for a map's key, "[" for an index."""
ROOT: Path = ()
NO_PATH = "<nil>"
"""What errors about no field in particular name as their field."""

Errors = list[FieldError]


def dotted(path: Path) -> str:
    """Return a path as schema errors print it: ``spec.labels.app``, ``spec.list[0]``."""
    return _printed(path, keys=False)


def keyed(path: Path) -> str:
    """Return a path as all other errors print it: ``spec.labels[app]``; ``<nil>`` for the root."""
    return _printed(path, keys=True) or NO_PATH


def _printed(path: Path, *, keys: bool) -> str:
    parts: list[str] = []
    while path:
        path, how, key = path
        if how == "[" or (how == "{" and keys):
            parts.append(f"[{key}]")
        else:
            parts.append(f".{key}" if path else str(key))
    return "".join(reversed(parts))


Check = Callable[[Any, Path, Errors], None]
"""Looks at a value and adds what is wrong."""


def checks_of(node: Node) -> list[Check]:
    """Return the checks that the keywords of a schema ask for, in upstream's order (those of children and compositions apart)."""
    schema = node.schema
    checks: list[Check] = []
    types = ("integer", "string") if node.int_or_string else (schema["type"],) if schema.get("type") else ()
    form = _stripped(schema.get("format") or "", types)
    if types or form:
        checks.append(_type_check(types, form, nullable=node.nullable))
    checks += _string_checks(schema, form)
    checks += _number_checks(schema, types, form)
    if "minItems" in schema or "maxItems" in schema or schema.get("uniqueItems"):
        checks.append(_items_check(schema))
    if schema.get("enum"):
        checks.append(_enum_check(schema["enum"]))
    if "minProperties" in schema or "maxProperties" in schema:
        checks.append(_properties_check(schema))
    return checks


def _stripped(form: str, types: tuple[str, ...]) -> str:
    """Return a format where it means something, else ""."""
    if not form:
        return ""
    if len(types) != 1 or types[0] == "string":
        return form if string_format(form) is not None else ""
    if types[0] == "integer":
        return form if form in INTEGER_FORMATS else ""
    return form if types[0] == "number" and form in {"float", "double"} else ""


def json_type(value: Any) -> str:
    """Return the JSON type of a value as Go sees it: a number without fraction marks is an integer."""
    kind = type(value)
    if kind is str:
        return "string"
    if kind is bool:
        return "boolean"
    if kind is int:
        return "integer"
    if kind is float:
        return "number"
    return "array" if kind is list else "object"


_GO_FORMATS = {"integer": "int64", "number": "float64"}


def _type_check(types: tuple[str, ...], form: str, *, nullable: bool) -> Check:
    exact = {"string": str, "boolean": bool, "integer": int, "array": list, "object": dict}
    quick = tuple(exact[each] for each in types if each in exact)
    only = quick[0] if len(types) == 1 and quick else None
    named = ",".join(types)
    textual = not ({"number", "integer"} & set(types)) and bool(form)

    def check(value: Any, path: Path, errors: Errors) -> None:
        kind = type(value)
        if kind is only or kind in quick:
            return
        if value is None:
            if types and not nullable:
                where = dotted(path)
                errors.append(type_invalid(where, "null", f'{where} in body must be of type {named}: "null"'))
            return
        found = json_type(value)
        if found == "integer" and "number" in types:
            return
        if found == "number" and ("number" in types or ("integer" in types and value.is_integer())):
            return
        where = dotted(path)
        if form and found not in {"string", "array"}:
            go_format = _GO_FORMATS.get(found, "")
            if go_format != form:
                errors.append(type_invalid(where, go_format, f'{where} in body must be of type {form}: "{go_format}"'))
                return
        if textual and found in {"string", "array"}:
            return
        errors.append(type_invalid(where, found, f'{where} in body must be of type {named}: "{found}"'))

    return check


def _string_checks(schema: Tree, form: str) -> list[Check]:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    checks: list[Check] = []
    if longest is not None or shortest is not None or pattern:

        def check(value: Any, path: Path, errors: Errors) -> None:
            if type(value) is not str:
                return
            if longest is not None and len(value) > longest:
                errors.append(too_long(dotted(path), longest))
            elif shortest is not None and len(value) < shortest:
                where = dotted(path)
                errors.append(invalid(where, value, f"{where} in body should be at least {shortest} chars long"))
            elif pattern:
                problem = _pattern_problem(pattern, value)
                if problem is not None:
                    where = dotted(path)
                    errors.append(invalid(where, value, f"{where} in body should match '{problem}'"))

        checks.append(check)
    judge = string_format(form) if form else None
    if judge is not None:

        def check_format(value: Any, path: Path, errors: Errors) -> None:
            if type(value) is str and not judge(value):
                where = dotted(path)
                errors.append(type_invalid(where, value, f"{where} in body must be of type {form}: {_quoted(value)}"))

        checks.append(check_format)
    return checks


def _pattern_problem(pattern: str, value: str) -> str | None:
    """Return what a string should have matched, None where it does."""
    try:
        return None if found(pattern, value) else pattern
    except RegexError as error:
        return f"{pattern}, but pattern is invalid: {error}"


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()


def go_number(value: float) -> str:
    """Return a number as Go's %v prints it (``1e+06`` for large floats).

    >>> go_number(5.0), go_number(0.5), go_number(1e21), go_number(7)
    ('5', '0.5', '1e+21', '7')
    """
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return re.sub(r"e([+-])(\d)$", r"e\g<1>0\2", repr(value))


def _number_checks(schema: Tree, types: tuple[str, ...], form: str) -> list[Check]:
    checks: list[Check] = []
    bounds = INTEGER_FORMATS.get(form, INTEGER_FORMATS["int64"]) if types == ("integer",) else None
    if bounds is not None or form == "float":
        checks.append(_range_check(bounds, types[0], form))
    multiple, highest, lowest = schema.get("multipleOf"), schema.get("maximum"), schema.get("minimum")
    if multiple is not None or highest is not None or lowest is not None:
        above, below = bool(schema.get("exclusiveMaximum")), bool(schema.get("exclusiveMinimum"))

        def check(value: Any, path: Path, errors: Errors) -> None:
            if type(value) is not int and type(value) is not float:
                return
            if multiple is not None and (problem := _multiple_problem(value, multiple)):
                errors.append(invalid(dotted(path), _plain(value), f"{dotted(path)} in body {problem}"))
            for limit, exclusive, sign in ((highest, above, 1), (lowest, below, -1)):
                if limit is None:
                    continue
                bound = int(limit) if type(value) is int else limit
                if value * sign > bound * sign or (exclusive and value == bound):
                    word = ("less than" if sign > 0 else "greater than") + ("" if exclusive else " or equal to")
                    where = dotted(path)
                    errors.append(invalid(where, _plain(value), f"{where} in body should be {word} {go_number(bound)}"))

        checks.append(check)
    return checks


class _Number(float):
    """A float that prints as Go prints it."""

    def __str__(self) -> str:
        return go_number(float(self))


def _plain(value: float) -> float:
    return value if isinstance(value, int) else _Number(value)


def _multiple_problem(value: float, factor: float) -> str | None:
    if type(value) is int:
        step = int(factor)
        if step <= 0:
            return f"factor MultipleOf declared must be positive: {go_number(step)}"
        return None if value % step == 0 else f"should be a multiple of {go_number(step)}"
    if factor <= 0:
        return f"factor MultipleOf declared must be positive: {go_number(factor)}"
    quotient = value / factor if factor >= 1 else 1 / factor * value
    return None if abs(quotient - round(quotient)) < 1e-9 else f"should be a multiple of {go_number(factor)}"


def _range_check(bounds: tuple[int, int] | None, type_: str, form: str) -> Check:
    how = f"with format {form}" if form else "(default format)"

    def check(value: Any, path: Path, errors: Errors) -> None:
        kind = type(value)
        if kind is int:
            fits = bounds is None or bounds[0] <= value <= bounds[1]
        elif kind is float:
            fits = bounds[0] <= value <= bounds[1] if bounds is not None else abs(value) <= FLOAT_MAX
        else:
            return
        if not fits:
            detail = f"Checked value must be of type {type_} {how} in {dotted(path)}"
            errors.append(invalid(NO_PATH, "", detail))

    return check


def _items_check(schema: Tree) -> Check:
    least, most, unique = schema.get("minItems"), schema.get("maxItems"), bool(schema.get("uniqueItems"))

    def check(value: Any, path: Path, errors: Errors) -> None:
        if type(value) is not list:
            return
        size = len(value)
        if least is not None and size < least:
            errors.append(invalid(dotted(path), size, f"{dotted(path)} in body should have at least {least} items"))
        if most is not None and size > most:
            errors.append(too_many(dotted(path), size, most))
        if unique and any(each in value[:place] for place, each in enumerate(value)):
            errors.append(invalid(dotted(path), "", f"{dotted(path)} in body shouldn't contain duplicates"))

    return check


def _enum_check(values: list[Any]) -> Check:
    texts = frozenset(each for each in values if isinstance(each, str))
    listed = ", ".join(_quoted(each if isinstance(each, str) else orjson.dumps(each).decode()) for each in values)

    def check(value: Any, path: Path, errors: Errors) -> None:
        if type(value) is str:
            if value in texts:
                return
        elif value is not None and any(each == value and isinstance(each, bool) == isinstance(value, bool) for each in values):
            return
        errors.append(FieldError("FieldValueNotSupported", dotted(path), f"Unsupported value: {shown(value)}: supported values: {listed}"))

    return check


def _properties_check(schema: Tree) -> Check:
    least, most = schema.get("minProperties"), schema.get("maxProperties")

    def check(value: Any, path: Path, errors: Errors) -> None:
        if type(value) is not dict:
            return
        size = len(value)
        if least is not None and size < least:
            errors.append(invalid(dotted(path), size, f"{dotted(path)} in body should have at least {least} properties"))
        if most is not None and size > most:
            errors.append(too_many(dotted(path), size, most))

    return check
