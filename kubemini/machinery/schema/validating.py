"""Value validation of custom objects: types, bounds, enums, compositions, list keys, embedded resources, with the API server's exact texts.

Mirrors kube-openapi's ``pkg/validation/validate`` and apiextensions-apiserver's ``listtype`` and ``objectmeta`` (1.36). On an update,
errors below a value that did not change are forgiven ("ratcheting"): a subtree that is the very same object as before is not even looked at.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, duplicate, invalid, required, shown, too_long, too_many, type_invalid
from kubemini.machinery.metadata import validate_metadata_create
from kubemini.machinery.names import dns1035_label, faults, path_segment
from kubemini.machinery.regexes import RegexError, compiled
from kubemini.machinery.schema.formats import FLOAT_MAX, INTEGER_FORMATS, string_format
from kubemini.machinery.schema.structure import META_FIELDS, NOTHING, Node, remember

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


class Findings:
    """What the passes of one validation found, in upstream's order: schema, embedded resources, list keys."""

    def __init__(self) -> None:
        self.schema: Errors = []
        self.embedded: Errors = []
        self.lists: Errors = []
        self.unverified = 0
        """How many subtrees were passed over or forgiven because an update did not change them."""

    def all(self) -> Errors:
        """Return everything in order."""
        return [*self.schema, *self.embedded, *self.lists]

    @property
    def any(self) -> bool:
        """Whether anything was found."""
        return bool(self.schema or self.embedded or self.lists)


def validate(node: Node, value: Any, path: Path, found: Findings, old: Any = NOTHING) -> None:
    """Check a value against a schema. `old` is the value before an update where it can be told, else `NOTHING`.

    Cost: proportional to what differs from `old` and is not remembered as valid.
    """
    if value is old:
        found.unverified += 1
        return
    heavy = node.heavy and (type(value) is dict or type(value) is list)
    if heavy and node.valid.get(id(value)) is value:
        return
    before, unverified = len(found.schema), found.unverified
    _check(node, value, path, found, old)
    if len(found.schema) > before and old is not NOTHING and value == old:
        del found.schema[before:]
        found.unverified += 1
    if heavy and found.unverified == unverified and not found.any:
        remember(node.valid, value)


def _check(node: Node, value: Any, path: Path, found: Findings, old: Any) -> None:
    """Run the checks of one node, then those of its children."""
    plan = plan_of(node)
    for check in plan.checks:
        check(value, path, found.schema)
    if type(value) is dict:
        if node.embedded:
            _embedded(value, path, found.embedded)
        _object(node, plan, value, path, found, old)
    elif type(value) is list:
        _list(node, value, path, found, old)
    if plan.composed and value is not None:
        _compositions(node, value, path, found, old)


def _object(node: Node, plan: Plan, value: Tree, path: Path, found: Findings, old: Any) -> None:
    properties, additional = node.properties, node.additional
    before: Any = old if type(old) is dict else _EMPTY
    for key, each in value.items():
        child = properties.get(key)
        if child is not None:
            if type(each) is not plan_of(child).trivial:
                validate(child, each, (path, ".", key), found, before.get(key, NOTHING))
        elif additional is not None and type(each) is not plan_of(additional).trivial:
            validate(additional, each, (path, "{", key), found, before.get(key, NOTHING))
    for key in plan.required:
        if key not in value:
            found.schema.append(required(dotted((path, ".", key))))


def _list(node: Node, value: list[Any], path: Path, found: Findings, old: Any) -> None:
    items = node.items
    if node.list_type == "set":
        _set_keys(value, path, found.lists)
    elif node.list_type == "map":
        _map_keys(node, value, path, found.lists)
    if items is None:
        return
    before = by_keys(node, old)
    for place, each in enumerate(value):
        validate(items, each, (path, "[", place), found, before(each))


def by_keys(node: Node, old: Any) -> Callable[[Any], Any]:
    """Return a function that finds the old element with the keys of a new one; `NOTHING` in lists without keys."""
    if node.list_type != "map" or type(old) is not list:
        return _nothing
    keys = node.list_keys
    known = {_identity(each, keys): each for each in old if type(each) is dict}
    return lambda item: known.get(_identity(item, keys), NOTHING) if type(item) is dict else NOTHING


def _nothing(_: Any) -> Any:
    return NOTHING


def _identity(item: Tree, keys: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(str(item.get(key)) if type(item.get(key)) in {dict, list} else (type(item.get(key)), item.get(key)) for key in keys)


# ----------------------------------------------------------------------------------------------- checks of one value

Check = Callable[[Any, Path, Errors], None]


class Plan:
    """What checking a value of one node takes, worked out once."""

    __slots__ = ("checks", "composed", "required", "trivial")

    def __init__(self, node: Node) -> None:
        schema = node.schema
        self.checks = tuple(_checks(node))
        """The checks that the schema's own keywords ask for, in upstream's order (children apart)."""
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())
        self.composed = any(key in schema for key in ("allOf", "anyOf", "oneOf", "not"))
        self.trivial = _EXACT.get(schema.get("type", "")) if len(self.checks) == 1 and not self.composed and not node.int_or_string else None
        """The Python type of which every value is valid, None where there is more to check."""


_EXACT: dict[str, type] = {"string": str, "boolean": bool}
_EMPTY: Tree = {}


def plan_of(node: Node) -> Plan:
    """Return the plan of a node."""
    plan: Plan | None = node.plan
    if plan is None:
        plan = node.plan = Plan(node)
    return plan


def _checks(node: Node) -> list[Check]:
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
        return None if compiled(pattern).search(value) else pattern
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
    bounds = INTEGER_FORMATS.get(form) if types == ("integer",) else INTEGER_FORMATS["int64"] if types == ("integer",) else None
    if types == ("integer",) and bounds is None:
        bounds = INTEGER_FORMATS["int64"]
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
        where = dotted(path)
        if least is not None and len(value) < least:
            errors.append(invalid(where, len(value), f"{where} in body should have at least {least} items"))
        if most is not None and len(value) > most:
            errors.append(too_many(where, len(value), most))
        if unique and any(each in value[:place] for place, each in enumerate(value)):
            errors.append(invalid(where, "", f"{where} in body shouldn't contain duplicates"))

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
        where = dotted(path)
        if least is not None and len(value) < least:
            errors.append(invalid(where, len(value), f"{where} in body should have at least {least} properties"))
        if most is not None and len(value) > most:
            errors.append(too_many(where, len(value), most))

    return check


# ----------------------------------------------------------------------------------------------- compositions

_INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def _compositions(node: Node, value: Any, path: Path, found: Findings, old: Any) -> None:
    schema = node.schema
    make = node.structure.node
    any_of = schema.get("anyOf")
    if any_of and not (any_of == _INT_OR_STRING and type(value) in {int, str}):
        _any_of([make(each) for each in any_of], value, path, found.schema)
    if schema.get("oneOf"):
        _one_of([make(each) for each in schema["oneOf"]], value, path, found.schema)
    if schema.get("allOf"):
        _all_of([make(each) for each in schema["allOf"]], value, path, found.schema, old)
    if isinstance(schema.get("not"), dict) and not _attempt(make(schema["not"]), value, path):
        found.schema.append(_composed(path, "must not validate the schema (not)"))


def _attempt(node: Node, value: Any, path: Path, old: Any = NOTHING) -> Errors:
    """Return the schema errors of a value against one alternative."""
    found = Findings()
    _check(node, value, path, found, old)
    return found.schema


def _any_of(nodes: list[Node], value: Any, path: Path, errors: Errors) -> None:
    failures: Errors | None = None
    for node in nodes:
        problems = _attempt(node, value, path)
        if not problems:
            return
        failures = failures or problems
    errors.append(_composed(path, "must validate at least one schema (anyOf)"))
    errors.extend(failures or ())


def _one_of(nodes: list[Node], value: Any, path: Path, errors: Errors) -> None:
    failures: Errors | None = None
    passed = 0
    for node in nodes:
        problems = _attempt(node, value, path)
        passed += not problems
        failures = failures or problems
    if passed == 1:
        return
    how = f"Found {passed} valid alternatives" if passed else "Found none valid"
    errors.append(_composed(path, f"must validate one and only one schema (oneOf). {how}"))
    if not passed:
        errors.extend(failures or ())


def _all_of(nodes: list[Node], value: Any, path: Path, errors: Errors, old: Any) -> None:
    passed = 0
    for node in nodes:
        problems = _attempt(node, value, path, old)
        passed += not problems
        errors.extend(problems)
    if passed < len(nodes):
        errors.append(_composed(path, "must validate all the schemas (allOf)" + ("" if passed else ". None validated")))


def _composed(path: Path, problem: str) -> FieldError:
    return invalid(NO_PATH, "", f'"{dotted(path)}" {problem}')


# ----------------------------------------------------------------------------------------------- keys of lists


def _set_keys(items: list[Any], path: Path, errors: Errors) -> None:
    for place in _repeated([_comparable(each) for each in items]):
        errors.append(duplicate(keyed((path, "[", place)), items[place]))


def _map_keys(node: Node, items: list[Any], path: Path, errors: Errors) -> None:
    for place, each in enumerate(items):
        if each is not None and type(each) is not dict:
            errors.append(invalid(keyed((path, "[", place)), each, "must be an object for an array of list-type map"))
            return
    if len(items) < 2:
        return
    keys = [{key: each[key] for key in node.list_keys if key in each} if each is not None else {} for each in items]
    for place in _repeated([_comparable(each) for each in keys]):
        errors.append(duplicate(keyed((path, "[", place)), keys[place]))


def _comparable(value: Any) -> Any:
    if type(value) is dict or type(value) is list:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return type(value), value


def _repeated(keys: list[Any]) -> list[int]:
    """Return the places of the second occurrence of each key; later ones are not told."""
    seen: dict[Any, int] = {}
    found: list[int] = []
    for place, key in enumerate(keys):
        times = seen.get(key, 0)
        seen[key] = times + 1
        if times == 1:
            found.append(place)
    return found


# ----------------------------------------------------------------------------------------------- embedded resources


def _embedded(value: Tree, path: Path, errors: Errors) -> None:
    """Check type and metadata of an embedded resource."""
    for key in ("apiVersion", "kind"):
        if key not in value:
            errors.append(required(keyed((path, ".", key))))
    for key in value:
        if key not in META_FIELDS:
            continue
        where = keyed((path, ".", key))
        each = value[key]
        if key == "metadata":
            if type(each) is dict:
                meta = each if each.get("name") else {**each, "name": "fakename"}
                errors += validate_metadata_create(meta, namespaced=bool(meta.get("namespace")), validate_name=path_segment, custom=True, field=where)
        elif not isinstance(each, str):
            errors.append(invalid(where, each, "must be a string"))
        elif not each:
            errors.append(invalid(where, each, "must not be empty"))
        elif key == "apiVersion":
            if each.count("/") > 1:
                errors.append(invalid(where, each, f"unexpected GroupVersion string: {each}"))
        elif problem := dns1035_label(each.lower()):
            errors.append(invalid(where, each, f"may have mixed case, but should otherwise match: {','.join(faults(problem))}"))
