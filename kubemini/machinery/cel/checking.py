"""Type checking: what each node of an expression is, which overloads a call may mean, and all that does not fit.

Mirrors cel-go's checker with Kubernetes' options (homogeneous list and map literals, comparison across number types) and its validators of
literal patterns, durations and timestamps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kubemini.machinery.cel import times
from kubemini.machinery.cel.errors import CelCompileError, CelEvaluationError, Issue
from kubemini.machinery.cel.overloads import Overload, overloads
from kubemini.machinery.cel.syntax import Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select, Struct
from kubemini.machinery.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    SCALARS,
    STRING,
    TYPE,
    UINT,
    Bindings,
    Type,
    general,
    is_dyn,
    list_of,
    map_of,
    optional_of,
    same,
    type_of,
    unwrap_optional,
)
from kubemini.machinery.cel.values import UInt
from kubemini.machinery.regexes import RegexError, compiled

_A, _B = Type("param", "A"), Type("param", "B")
_TYPE_NAMES: Mapping[str, Type] = {
    **{name: type_of(SCALARS[name]) for name in ("bool", "bytes", "double", "int", "null_type", "string", "uint")},
    "list": type_of(list_of(_A)),
    "map": type_of(map_of(_A, _B)),
    "type": type_of(TYPE),
    "google.protobuf.Duration": type_of(SCALARS["duration"]),
    "google.protobuf.Timestamp": type_of(SCALARS["timestamp"]),
    "optional_type": type_of(optional_of(_A)),
    "net.IP": type_of(Type("opaque", "net.IP")),
    "net.CIDR": type_of(Type("opaque", "net.CIDR")),
    "kubernetes.Quantity": type_of(Type("opaque", "kubernetes.Quantity")),
    "kubernetes.URL": type_of(Type("opaque", "kubernetes.URL")),
    "kubernetes.Semver": type_of(Type("opaque", "kubernetes.Semver")),
}

OBJECT, JSON_PATCH = "Object", "JSONPatch"
"""The types that patches are made of; a part of an object is of a type named after its path, such as ``Object.spec``."""
_PATCH_FIELDS: Mapping[str, Type] = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}


@dataclass(slots=True)
class Checked:
    """A checked expression: its tree, the type of every node, the overloads of every call, names that are types, variables used."""

    text: str
    root: Expr
    types: dict[Expr, Type] = field(default_factory=dict)
    calls: dict[Expr, list[Overload]] = field(default_factory=dict)
    named_types: dict[Expr, str] = field(default_factory=dict)
    references: set[str] = field(default_factory=set)
    dotted: dict[Expr, str] = field(default_factory=dict)
    """Selections that name a variable with a dot in its name."""

    @property
    def result(self) -> Type:
        """The type of the whole expression."""
        return self.types[self.root]


def check(text: str, root: Expr, variables: Mapping[str, Type], *, patches: bool = False) -> Checked:
    """Return the types of an expression; with `patches` it may build ``Object`` and ``JSONPatch``. Raise `CelCompileError` with everything that is wrong."""
    try:
        return _Checker(text, root, variables, patches=patches).run()
    except RecursionError:
        raise CelCompileError(text, [Issue(root.position, "expression is nested too deeply")]) from None


class _Checker:
    def __init__(self, text: str, root: Expr, variables: Mapping[str, Type], *, patches: bool) -> None:
        self.patches = patches
        self.out = Checked(text, root)
        self.variables = variables
        self.scopes: list[dict[str, Type]] = []
        self.bindings = Bindings()
        self.issues: list[Issue] = []

    def run(self) -> Checked:
        self._check(self.out.root)
        if self.issues:
            raise CelCompileError(self.out.text, self.issues)
        types = self.out.types
        for node, found in types.items():
            types[node] = self.bindings.resolved(found, final=True)
        return self.out

    # ------------------------------------------------------------------------------------------- plumbing

    def _report(self, position: int, message: str) -> None:
        self.issues.append(Issue(position, message))

    def _check(self, node: Expr) -> Type:
        found = self._type_of(node)
        self.out.types[node] = found
        return found

    def _known(self, node: Expr) -> Type:
        return self.bindings.resolved(self.out.types[node])

    def _type_of(self, node: Expr) -> Type:
        if isinstance(node, Literal):
            return _literal(node)
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListExpr):
            return self._list(node)
        if isinstance(node, MapExpr):
            return self._map(node)
        if isinstance(node, Comprehension):
            return self._comprehension(node)
        assert isinstance(node, Struct)
        return self._struct(node)

    def _struct(self, node: Struct) -> Type:
        """Check an object that a patch is made of: fields of ``Object`` are of any type, those of ``JSONPatch`` are known."""
        patch = node.name == JSON_PATCH
        if not self.patches or not (patch or node.name == OBJECT or node.name.startswith(f"{OBJECT}.")):
            self._report(node.position, f"undeclared reference to '{node.name}' (in container '')")
            return ERROR
        for key, value, maybe in node.fields:
            found = self._check(value)
            if maybe:
                found = self._held(value, found)
            wanted = _PATCH_FIELDS.get(key) if patch else DYN
            if wanted is None:
                self._report(value.position, f"undefined field '{key}'")
            elif not self.bindings.fits((wanted,), (found,)):
                self._report(value.position, f"expected type of field '{key}' is '{wanted}' but provided type is '{self.bindings.resolved(found)}'")
        return Type("object", node.name)

    # ------------------------------------------------------------------------------------------- names and fields

    def _ident(self, node: Ident) -> Type:
        for scope in reversed(self.scopes):
            if node.name in scope:
                return scope[node.name]
        if node.name in self.variables:
            self.out.references.add(node.name)
            return self.variables[node.name]
        return self._type_name(node, node.name) or self._undeclared(node, node.name)

    def _type_name(self, node: Expr, name: str) -> Type | None:
        found = _TYPE_NAMES.get(name)
        if found is not None:
            self.out.named_types[node] = name
            return self.bindings.instantiated((found,))[0]
        return None

    def _undeclared(self, node: Expr, name: str) -> Type:
        self._report(node.position, f"undeclared reference to '{name}' (in container '')")
        return ERROR

    def _select(self, node: Select) -> Type:
        variable = self._dotted(node)
        if variable:
            self.out.references.add(variable)
            self.out.dotted[node] = variable
            return self.variables[variable]
        if not node.test and not node.optional and (name := self._qualified(node)):
            found = self._type_name(node, name)
            if found is not None:
                return found
        self._check(node.operand)
        target, optional = unwrap_optional(self._known(node.operand))
        result = self._field(node, target)
        if node.test:
            return BOOL
        return optional_of(result) if optional or node.optional else result

    def _field(self, node: Select, target: Type) -> Type:
        if target.kind == "map":
            return target.params[1]
        if target.kind == "object":
            declared = target.declared
            found = declared.fields.get(node.field) or declared.fields.get(f"__{node.field}__") if declared else None
            if found is not None:
                return found.value.type
            self._report(node.position, f"undefined field '{node.field}'")
            return ERROR
        if target.kind == "param":
            self.bindings.fits((DYN,), (target,))
            return DYN
        if not is_dyn(target):
            self._report(node.position, f"type '{target}' does not support field selection")
        return DYN

    def _dotted(self, node: Select) -> str:
        """Return the variable with a dot in its name that a selection is, "" where it is none."""
        if node.test or node.optional or not isinstance(node.operand, Ident) or any(node.operand.name in scope for scope in self.scopes):
            return ""
        name = f"{node.operand.name}.{node.field}"
        return name if name in self.variables else ""

    def _qualified(self, node: Expr) -> str | None:
        """Return the dotted name that a node spells where its first part is no variable."""
        parts: list[str] = []
        while isinstance(node, Select) and not node.test and not node.optional:
            parts.append(node.field)
            node = node.operand
        if not isinstance(node, Ident) or self._is_variable(node.name):
            return None
        return ".".join([node.name, *reversed(parts)])

    def _is_variable(self, name: str) -> bool:
        return name in self.variables or any(name in scope for scope in self.scopes)

    # ------------------------------------------------------------------------------------------- calls

    def _call(self, node: Call) -> Type:
        args = [self._check(arg) for arg in node.args]
        if node.target is None:
            return self._resolved(node, node.function, overloads(node.function), args, member=False)
        name = self._qualified(node.target)
        if name is not None:
            found = overloads(f"{name}.{node.function}")
            if found:
                return self._resolved(node, f"{name}.{node.function}", found, args, member=False)
        target = self._check(node.target)
        return self._resolved(node, node.function, overloads(node.function), [target, *args], member=True)

    def _resolved(self, node: Call, name: str, candidates: list[Overload], args: list[Type], *, member: bool) -> Type:
        if not candidates:
            return self._undeclared(node, name)
        if name in {"_&&_", "_||_"}:
            return self._logic(node, candidates, args)
        chosen: list[Overload] = []
        result: Type | None = None
        for each in candidates:
            if each.member != member:
                continue
            wanted = self.bindings.instantiated((each.result, *each.params))
            if not self.bindings.fits(wanted[1:], tuple(args)):
                continue
            chosen.append(each)
            answer = self.bindings.resolved(wanted[0])
            if result is None:
                result = answer
            elif not is_dyn(result) and not same(answer, result):
                result = DYN
        if result is None:
            self._report(node.position, f"found no matching overload for '{name}' applied to '{self._shown(args, member=member)}'")
            return ERROR
        self.out.calls[node] = chosen
        self._literals(node, name)
        if chosen[0].id == "add_list" and args[0].declared is not None:
            # What was a set or a keyed list stays one.
            return self.bindings.resolved(args[0])
        return result

    def _logic(self, node: Call, candidates: list[Overload], args: list[Type]) -> Type:
        result = BOOL
        for arg, given in zip(node.args, args, strict=True):
            if not self.bindings.fits((BOOL,), (given,)):
                self._report(arg.position, f"expected type 'bool' but found '{self.bindings.resolved(given)}'")
                result = ERROR
        self.out.calls[node] = candidates
        return result

    def _shown(self, args: list[Type], *, member: bool) -> str:
        shown = [str(self.bindings.resolved(arg, final=True)) for arg in args]
        return f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"

    def _literals(self, node: Call, name: str) -> None:
        """Check literal arguments whose texts have a form of their own."""
        literal = node.args[-1] if node.args else None
        if not isinstance(literal, Literal) or not isinstance(literal.value, str):
            return
        try:
            if name == "matches":
                compiled(literal.value)
            elif name == "duration":
                times.duration(literal.value)
            elif name == "timestamp":
                times.timestamp(literal.value)
        except (CelEvaluationError, RegexError):
            self._report(literal.position, f"invalid {name} argument")

    # ------------------------------------------------------------------------------------------- literals

    def _list(self, node: ListExpr) -> Type:
        item: Type | None = None
        for place, each in enumerate(node.items):
            found = self._check(each)
            if place in node.optional:
                found = self._held(each, found)
            item = self._joined(each, item, found)
        return list_of(item or self.bindings.fresh())

    def _map(self, node: MapExpr) -> Type:
        key: Type | None = None
        value: Type | None = None
        for key_node, value_node, maybe in node.entries:
            key = self._joined(key_node, key, self._check(key_node))
            found = self._check(value_node)
            value = self._joined(value_node, value, self._held(value_node, found) if maybe else found)
        return map_of(key or self.bindings.fresh(), value or self.bindings.fresh())

    def _held(self, node: Expr, found: Type) -> Type:
        held, optional = unwrap_optional(self.bindings.resolved(found))
        if not optional and not is_dyn(held):
            self._report(node.position, f"expected type '{optional_of(held)}' but found '{held}'")
        return held

    def _joined(self, node: Expr, before: Type | None, found: Type) -> Type:
        if before is None:
            return found
        if self.bindings.fits((before,), (found,)):
            return general(self.bindings.resolved(before), self.bindings.resolved(found))
        self._report(node.position, f"expected type '{self.bindings.resolved(before)}' but found '{self.bindings.resolved(found)}'")
        return ERROR

    # ------------------------------------------------------------------------------------------- macros

    def _comprehension(self, node: Comprehension) -> Type:
        self._check(node.range)
        given = self._known(node.range)
        if node.macro in {"optMap", "optFlatMap"}:
            return self._optional_map(node, given)
        scope = dict(zip(node.variables, self._range(node, given), strict=False))
        self.scopes.append(scope)
        body = self._check(node.body)
        condition = self._check(node.filter) if node.filter is not None else None
        self.scopes.pop()
        if node.filter is not None and condition is not None:
            self._must_be_bool(node.filter, condition)
        return self._macro_result(node, given, body)

    def _range(self, node: Comprehension, given: Type) -> tuple[Type, ...]:
        two = len(node.variables) == 2
        if given.kind == "list":
            return (INT, given.params[0]) if two else (given.params[0],)
        if given.kind == "map":
            return given.params if two else (given.params[0],)
        if is_dyn(given) or given.kind == "param":
            self.bindings.fits((DYN,), (given,))
            return (DYN, DYN)
        self._report(node.range.position, f"expression of type '{given}' cannot be range of a comprehension (must be list, map, or dynamic)")
        return (ERROR, ERROR)

    def _macro_result(self, node: Comprehension, given: Type, body: Type) -> Type:
        if node.macro in {"all", "exists", "existsOne"}:
            self._must_be_bool(node.body, body)
            return BOOL
        if node.macro == "filter":
            self._must_be_bool(node.body, body)
            return list_of(given.params[0] if given.kind in {"list", "map"} else DYN)
        if node.macro in {"map", "transformList"}:
            return list_of(body)
        if node.macro == "transformMap":
            return map_of(given.params[0] if given.kind == "map" else INT if given.kind == "list" else DYN, body)
        if node.macro == "transformMapEntry":
            self._entry(node.body, body)
            return body
        return given

    def _entry(self, node: Expr, body: Type) -> None:
        if not self.bindings.fits((map_of(self.bindings.fresh(), self.bindings.fresh()),), (body,)):
            self._report(node.position, f"expected type 'map(dyn, dyn)' but found '{self.bindings.resolved(body)}'")

    def _optional_map(self, node: Comprehension, given: Type) -> Type:
        held, optional = unwrap_optional(given)
        if not optional and not is_dyn(given):
            self._report(node.position, f"found no matching overload for '{node.macro}' applied to '{given}.(dyn)'")
            held = ERROR
        self.scopes.append({node.variables[0]: held})
        body = self._check(node.body)
        self.scopes.pop()
        if node.macro == "optMap":
            return optional_of(body)
        if not unwrap_optional(self.bindings.resolved(body))[1] and not is_dyn(body):
            self._report(node.body.position, f"expected type '{optional_of(body)}' but found '{body}'")
        return body

    def _must_be_bool(self, node: Expr, found: Type) -> None:
        if not self.bindings.fits((BOOL,), (found,)):
            self._report(node.position, f"expected type 'bool' but found '{self.bindings.resolved(found)}'")


def _literal(node: Literal) -> Type:
    value = node.value
    if value is None:
        return NULL
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, UInt):
        return UINT
    if isinstance(value, int):
        return INT
    if isinstance(value, float):
        return DOUBLE
    return STRING if isinstance(value, str) else BYTES
