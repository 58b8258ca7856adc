"""Value validation of custom objects: types, bounds, enums, compositions, list keys, embedded resources, with the API server's exact texts.

Mirrors kube-openapi's ``pkg/validation/validate`` and apiextensions-apiserver's ``listtype`` and ``objectmeta`` (1.36). On an update,
errors below a value that did not change are forgiven ("ratcheting"): a subtree that is the very same object as before is not even looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, duplicate, invalid, required
from kubemini.machinery.metadata import validate_metadata_create
from kubemini.machinery.names import dns1035_label, faults, path_segment
from kubemini.machinery.schema.keywords import NO_PATH, Errors, Path, checks_of, dotted, keyed
from kubemini.machinery.schema.structure import META_FIELDS, NOTHING, REMEMBERED, Node, remember


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
    if len(found.schema) == before:
        plan = node.plan
        if type(value) is plan.scalar:
            plan.take(value)
    elif old is not NOTHING and value == old:
        del found.schema[before:]
        found.unverified += 1
    if heavy and found.unverified == unverified and not found.any:
        remember(node.valid, value)


def _check(node: Node, value: Any, path: Path, found: Findings, old: Any) -> None:
    """Run the checks of one node, then those of its children."""
    plan = node.plan or plan_of(node)
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
        how = "."
        if child is None:
            if additional is None:
                continue
            child, how = additional, "{"
        kind = type(each)
        of_child = child.plan or plan_of(child)
        if kind is not of_child.trivial and (kind is not of_child.scalar or each not in of_child.good):
            validate(child, each, (path, how, key), found, before.get(key, NOTHING))
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
    same = old if node.list_type == "map" and type(old) is list else ()
    before: Callable[[Any], Any] | None = None
    for place, each in enumerate(value):
        if place < len(same) and each is same[place]:
            found.unverified += 1
            continue
        if before is None:
            before = by_keys(node, old)
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


class Plan:
    """What checking a value of one node takes, worked out once."""

    __slots__ = ("checks", "composed", "good", "required", "scalar", "trivial")

    def __init__(self, node: Node) -> None:
        schema = node.schema
        self.checks = tuple(checks_of(node))
        """The checks that the schema's own keywords ask for, in upstream's order (children apart)."""
        self.required: tuple[str, ...] = tuple(schema.get("required") or ())
        self.composed = any(key in schema for key in ("allOf", "anyOf", "oneOf", "not"))
        self.trivial = _EXACT.get(schema.get("type", "")) if len(self.checks) == 1 and not self.composed and not node.int_or_string else None
        """The Python type of which every value is valid, None where there is more to check."""
        plain = not self.composed or (schema.get("anyOf") == _INT_OR_STRING and not any(key in schema for key in ("allOf", "oneOf", "not")))
        self.scalar = None if not plain else str if node.int_or_string else _SCALARS.get(schema.get("type", ""))
        """The Python type of which valid values are remembered in `good`: whether such a value is valid depends on nothing else."""
        self.good: set[Any] = set()

    def take(self, value: Any) -> None:
        """Remember a valid value. Conditions have the same types, reasons and times in thousands of objects."""
        if type(value) is str and len(value) > LONGEST:
            return
        if len(self.good) >= REMEMBERED:
            self.good.clear()
        self.good.add(value)


_EXACT: dict[str, type] = {"string": str, "boolean": bool}
_SCALARS: dict[str, type] = {"string": str, "integer": int}
LONGEST = 256
"""The longest text that is remembered as valid."""
_EMPTY: Tree = {}
_TEXTS = frozenset({str})


def plan_of(node: Node) -> Plan:
    """Return the plan of a node."""
    plan: Plan | None = node.plan
    if plan is None:
        plan = node.plan = Plan(node)
    return plan


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
    if len(node.list_keys) == 1 and None not in items:
        name = node.list_keys[0]
        names = [each.get(name) for each in items]
        if _TEXTS.issuperset(map(type, names)) and len(set(names)) == len(names):
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
