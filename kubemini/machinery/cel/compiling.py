"""A checked expression to a Python function.

Two forms are made from the same tree. The *quick* one is plain Python: ``has(self.a)`` is ``'a' in self``, ``&&`` is ``and``, ``all`` is a
generator. It is right whenever it does not fail, since a short circuit that raised nothing met no error. When it raises, the *careful* form
decides: there every step is checked, errors have CEL's texts, and a logical operator outweighs an error on its other side. The careful form
is built on the first failure only.

Functions are assembled as Python syntax trees; no text of an expression ever becomes Python source.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from kubemini.machinery.cel import values
from kubemini.machinery.cel.checking import Checked
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.library.lists import sorted_by
from kubemini.machinery.cel.overloads import Overload, dispatch
from kubemini.machinery.cel.patches import built
from kubemini.machinery.cel.syntax import Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select, Struct
from kubemini.machinery.cel.types import Declared, Type, is_dyn
from kubemini.machinery.cel.values import NONE, Optional, TypeValue, some

Function = Callable[..., Any]

_BOOLEAN = "bool"
_COMPARED = {"_<_": ast.Lt, "_<=_": ast.LtE, "_>_": ast.Gt, "_>=_": ast.GtE}
_NATIVE_ORDER = frozenset({"bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"})
_NATIVE_EQUALITY = _NATIVE_ORDER | {"null_type", "opaque", "type"}


def compile_function(checked: Checked, parameters: Sequence[str], *, careful: bool) -> Function:
    """Return a function of the variables `parameters` (positional, in this order) that evaluates the expression."""
    return _Emitter(checked, careful=careful).function(parameters)


def _name(identifier: str) -> ast.expr:
    return ast.Name(identifier, ast.Load())


def _invoke(function: ast.expr, *args: ast.expr) -> ast.expr:
    return ast.Call(function, list(args), [])


def _thunk(body: ast.expr, *parameters: str) -> ast.expr:
    arguments = ast.arguments(posonlyargs=[], args=[ast.arg(each) for each in parameters], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(arguments, body)


def _compare(left: ast.expr, operator: ast.cmpop, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [operator], [right])


class _Emitter:
    def __init__(self, checked: Checked, *, careful: bool) -> None:
        self.checked = checked
        self.types = checked.types
        self.careful = careful
        self.constants: dict[str, Any] = {}
        self.scopes: list[dict[str, str]] = []
        self.count = 0

    def function(self, parameters: Sequence[str]) -> Function:
        names = {name: f"x{place}" for place, name in enumerate(parameters)}
        self.scopes.append(names)
        body = self.emit(self.checked.root)
        module = ast.Expression(_thunk(body, *names.values()))
        code = compile(ast.fix_missing_locations(module), "<cel>", "eval")
        function: Function = eval(code, {"__builtins__": {}, **self.constants})  # noqa: S307 - a tree assembled here, not text from outside
        return function

    # ------------------------------------------------------------------------------------------- plumbing

    def _constant(self, value: Any) -> ast.expr:
        """Return a reference to a Python object."""
        for name, known in self.constants.items():
            if known is value:
                return _name(name)
        name = f"c{len(self.constants)}"
        self.constants[name] = value
        return _name(name)

    def _apply(self, function: Callable[..., Any], *args: ast.expr) -> ast.expr:
        return _invoke(self._constant(function), *args)

    def _local(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def _truth(self, node: Expr) -> ast.expr:
        """Emit a node that has to be a bool."""
        emitted = self.emit(node)
        if self.types[node].kind == _BOOLEAN and not self.careful:
            return emitted
        return self._apply(values.truth, emitted)

    def _read(self, raw: ast.expr, found: Type, declared: Declared | None) -> ast.expr:
        """Emit what makes a value of raw JSON that was just read."""
        del found
        if declared is None or declared.convert is None:
            return raw
        convert = declared.convert
        return self._apply(lambda each: None if each is None else convert(each), raw)

    def emit(self, node: Expr) -> ast.expr:
        if isinstance(node, Literal):
            value = node.value
            return ast.Constant(value) if type(value) in {bool, int, str, bytes, type(None)} else self._constant(value)
        if node in self.checked.named_types:
            return self._constant(TypeValue(self.checked.named_types[node]))
        if isinstance(node, Ident):
            return self._ident(node.name)
        if isinstance(node, Select):
            variable = self.checked.dotted.get(node)
            return self._select(node) if variable is None else self._ident(variable)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListExpr):
            return self._list(node)
        if isinstance(node, MapExpr):
            return self._map(node)
        if isinstance(node, Struct):
            return self._struct(node)
        assert isinstance(node, Comprehension)
        return self._comprehension(node)

    def _struct(self, node: Struct) -> ast.expr:
        name, fields = node.name, [(key, maybe) for key, _, maybe in node.fields]
        return self._apply(lambda *given: built(name, fields, given), *(self.emit(value) for _, value, _ in node.fields))

    # ------------------------------------------------------------------------------------------- names and fields

    def _ident(self, name: str) -> ast.expr:
        for depth in range(len(self.scopes) - 1, -1, -1):
            if name in self.scopes[depth]:
                return _name(self.scopes[depth][name])
        raise AssertionError(name)

    def _select(self, node: Select) -> ast.expr:
        operand = self.emit(node.operand)
        target = self.types[node.operand]
        declared: Declared | None = None
        key = node.field
        if target.kind == "opaque":
            target = target.params[0] if target.params else target
            node_is_optional = True
        else:
            node_is_optional = node.optional
        if target.kind == "object" and target.declared is not None:
            fields = target.declared.fields
            field = fields.get(node.field) or fields[f"__{node.field}__"]
            key, declared = field.key, field.value
        if node.test:
            if self.careful or node_is_optional or target.kind not in {"object", "map"}:
                return self._apply(values.has, operand, ast.Constant(key))
            return _compare(ast.Constant(key), ast.In(), operand)
        if node_is_optional:
            return self._optional_read(self._apply(values.optional_select, operand, ast.Constant(key)), declared)
        if self.careful or target.kind not in {"object", "map"}:
            raw = self._apply(values.select, operand, ast.Constant(key))
        else:
            raw = ast.Subscript(operand, ast.Constant(key), ast.Load())
        return self._read(raw, self.types[node], declared)

    def _optional_read(self, optional: ast.expr, declared: Declared | None) -> ast.expr:
        if declared is None or declared.convert is None:
            return optional
        convert = declared.convert
        return self._apply(lambda each: some(convert(each.value)) if each.present else NONE, optional)

    # ------------------------------------------------------------------------------------------- calls

    def _call(self, node: Call) -> ast.expr:
        name = node.function
        special = self._special.get(name)
        if special is not None and node.target is None:
            emitted = special(self, node)
            if emitted is not None:
                return emitted
        chosen = self.checked.calls[node]
        member = chosen[0].member
        args = ([self.emit(node.target)] if member and node.target is not None else []) + [self.emit(arg) for arg in node.args]
        function = chosen[0].function
        if len(chosen) == 1 and not self.careful and not self._dynamic(node, chosen[0]):
            return self._apply(chosen[0].answer, *args)
        return self._apply(lambda *given: dispatch(function, given, member=member), *args)

    def _dynamic(self, node: Call, overload: Overload) -> bool:
        """Tell whether an argument's type is only known at run time while the overload wants a certain one."""
        given = ([node.target] if overload.member and node.target is not None else []) + list(node.args)
        return any(is_dyn(self.types[arg]) and wanted.kind not in {"param", "dyn"} for arg, wanted in zip(given, overload.params, strict=True))

    def _kinds(self, node: Call) -> list[Type]:
        return [self.types[arg] for arg in node.args]

    def _logic(self, node: Call) -> ast.expr:
        operands: list[Expr] = []
        self._flatten(node, node.function, operands)
        if not self.careful:
            operator = ast.And() if node.function == "_&&_" else ast.Or()
            return ast.BoolOp(operator, [self._truth(each) for each in operands])
        combine = values.both if node.function == "_&&_" else values.either
        emitted = self.emit(operands[-1])
        for each in reversed(operands[:-1]):
            emitted = self._apply(combine, _thunk(self.emit(each)), _thunk(emitted))
        return emitted

    def _flatten(self, node: Expr, function: str, into: list[Expr]) -> None:
        """Collect the operands of a chain of one operator, so that a long chain nests no deeper than a short one."""
        stack = [node]
        while stack:
            each = stack.pop()
            if isinstance(each, Call) and each.function == function and each.target is None:
                stack.extend(reversed(each.args))
            else:
                into.append(each)

    def _not(self, node: Call) -> ast.expr:
        return ast.UnaryOp(ast.Not(), self._truth(node.args[0]))

    def _conditional(self, node: Call) -> ast.expr:
        condition, yes, no = node.args
        return ast.IfExp(self._truth(condition), self.emit(yes), self.emit(no))

    def _equality(self, node: Call) -> ast.expr:
        left, right = (self.emit(arg) for arg in node.args)
        compared = self._compared(left, right, *self._kinds(node))
        if node.function == "_==_":
            return compared
        return ast.UnaryOp(ast.Not(), compared)

    def _compared(self, left: ast.expr, right: ast.expr, a: Type, b: Type) -> ast.expr:
        if a.kind in _NATIVE_EQUALITY and b.kind in _NATIVE_EQUALITY and "optional_type" not in {a.name, b.name}:
            return _compare(left, ast.Eq(), right)
        declared = a.declared or b.declared
        if declared is None or is_dyn(a) or is_dyn(b):
            return self._apply(values.equals, left, right)
        same = declared.same
        if declared.plain and isinstance(left, ast.Name) and isinstance(right, ast.Name):
            return ast.BoolOp(ast.Or(), [_compare(left, ast.Is(), right), _compare(left, ast.Eq(), right)])
        if self.careful:
            return self._apply(lambda x, y: x is y if x is None or y is None else same(x, y), left, right)
        return self._apply(same, left, right)

    def _order(self, node: Call) -> ast.expr | None:
        if self.careful or any(each.kind not in _NATIVE_ORDER for each in self._kinds(node)):
            return None
        left, right = (self.emit(arg) for arg in node.args)
        return _compare(left, _COMPARED[node.function](), right)

    def _add(self, node: Call) -> ast.expr | None:
        a, b = self._kinds(node)
        declared = a.declared
        if a.kind == "list" and declared is not None and declared.list_type in {"set", "map"}:
            left, right = (self.emit(arg) for arg in node.args)
            if declared.list_type == "map":
                return self._apply(values.merged_by_key, left, right, self._constant(declared.keys))
            item = declared.element.same if declared.element is not None else values.equals
            return self._apply(values.union, left, right, self._constant(item))
        if not self.careful and a.kind == b.kind and a.kind in {"string", "double", "list", "bytes"}:
            left, right = (self.emit(arg) for arg in node.args)
            return ast.BinOp(left, ast.Add(), right)
        return None

    def _in(self, node: Call) -> ast.expr | None:
        item, container = self._kinds(node)
        left, right = (self.emit(arg) for arg in node.args)
        if self.careful:
            return None
        if container.kind == "map" and item.kind == "string":
            return _compare(left, ast.In(), right)
        if container.kind == "list" and item.kind in {"string", "int", "timestamp", "duration"} and container.params[0].kind == item.kind:
            return _compare(left, ast.In(), right)
        if container.kind == "list" and container.declared is not None and container.declared.element is not None:
            same = container.declared.element.same
            return self._apply(lambda each, items: any(same(each, other) for other in items), left, right)
        return None

    def _index(self, node: Call) -> ast.expr | None:
        container, position = self._kinds(node)
        if self.careful or container.kind != "map" or position.kind != "string":
            return None
        left, right = (self.emit(arg) for arg in node.args)
        return ast.Subscript(left, right, ast.Load())

    # ------------------------------------------------------------------------------------------- literals

    _special: ClassVar[dict[str, Callable[[_Emitter, Call], ast.expr | None]]] = {
        "_&&_": _logic,
        "_||_": _logic,
        "!_": _not,
        "_?_:_": _conditional,
        "_==_": _equality,
        "_!=_": _equality,
        "_<_": _order,
        "_<=_": _order,
        "_>_": _order,
        "_>=_": _order,
        "_+_": _add,
        "@in": _in,
        "_[_]": _index,
    }
    """How operators are written, where the types allow better than a call."""

    def _list(self, node: ListExpr) -> ast.expr:
        if not node.optional:
            return ast.List([self.emit(each) for each in node.items], ast.Load())
        items: list[ast.expr] = [
            ast.Tuple([self.emit(each), ast.Constant(place in node.optional)], ast.Load()) for place, each in enumerate(node.items)
        ]
        return self._apply(values.new_list, ast.List(items, ast.Load()))

    def _map(self, node: MapExpr) -> ast.expr:
        entries: list[ast.expr] = [
            ast.Tuple([self.emit(key), self.emit(value), ast.Constant(maybe)], ast.Load()) for key, value, maybe in node.entries
        ]
        return self._apply(values.new_map, ast.List(entries, ast.Load()))

    # ------------------------------------------------------------------------------------------- macros

    def _comprehension(self, node: Comprehension) -> ast.expr:
        if node.macro in {"optMap", "optFlatMap"}:
            return self._optional_map(node)
        items = self._items(node)
        locals_ = [self._local() for _ in node.variables]
        self.scopes.append(dict(zip(node.variables, locals_, strict=True)))
        emitted = self._macro(node, items, locals_)
        self.scopes.pop()
        return emitted

    def _items(self, node: Comprehension) -> ast.expr:
        emitted = self.emit(node.range)
        kind = self.types[node.range].kind
        if len(node.variables) == 2 or node.macro.startswith("transform"):
            return self._apply(values.pairs, emitted)
        if self.careful or kind not in {"list", "map"}:
            return self._apply(values.elements, emitted)
        return emitted

    def _macro(self, node: Comprehension, items: ast.expr, names: list[str]) -> ast.expr:
        macro = node.macro
        if macro in {"all", "exists"}:
            return self._quantifier(node, items, names)
        if macro == "existsOne":
            return self._apply(values.one_of, self._generator(self._truth(node.body), items, names))
        if macro == "filter":
            return ast.ListComp(_name(names[0]), self._clauses(items, names, self._truth(node.body)))
        condition = self._truth(node.filter) if node.filter is not None else None
        if macro in {"map", "transformList"}:
            return ast.ListComp(self.emit(node.body), self._clauses(items, names, condition))
        if macro == "transformMap":
            return ast.DictComp(_name(names[0]), self.emit(node.body), self._clauses(items, names, condition))
        if macro == "transformMapEntry":
            return self._apply(values.merged, ast.ListComp(self.emit(node.body), self._clauses(items, names, condition)))
        keys = _thunk(ast.ListComp(self.emit(node.body), self._clauses(_name("items"), names, None)), "items")
        return self._apply(lambda given, key_of: sorted_by(given, key_of(given)), items, keys)

    def _quantifier(self, node: Comprehension, items: ast.expr, names: list[str]) -> ast.expr:
        if not self.careful:
            test = all if node.macro == "all" else any
            return self._apply(test, self._generator(self._truth(node.body), items, names))
        body = self.emit(node.body)
        decide = values.every if node.macro == "all" else values.any_of
        if len(names) == 1:
            return self._apply(decide, items, _thunk(body, *names))
        return self._apply(lambda given, predicate: decide(given, lambda pair: predicate(*pair)), items, _thunk(body, *names))

    def _clauses(self, items: ast.expr, names: list[str], condition: ast.expr | None) -> list[ast.comprehension]:
        stores: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        target = stores[0] if len(stores) == 1 else ast.Tuple(stores, ast.Store())
        return [ast.comprehension(target, items, [condition] if condition is not None else [], 0)]

    def _generator(self, body: ast.expr, items: ast.expr, names: list[str]) -> ast.expr:
        return ast.GeneratorExp(body, self._clauses(items, names, None))

    def _optional_map(self, node: Comprehension) -> ast.expr:
        target = self.emit(node.range)
        local = self._local()
        self.scopes.append({node.variables[0]: local})
        body = _thunk(self.emit(node.body), local)
        self.scopes.pop()
        return self._apply(_opt_map if node.macro == "optMap" else _opt_flat_map, target, body)


def _opt_map(optional: Any, body: Function) -> Optional:
    if not isinstance(optional, Optional):
        raise values.no_such_overload()
    return some(body(optional.value)) if optional.present else NONE


def _opt_flat_map(optional: Any, body: Function) -> Optional:
    if not isinstance(optional, Optional):
        raise values.no_such_overload()
    if not optional.present:
        return NONE
    result = body(optional.value)
    if not isinstance(result, Optional):
        raise values.no_such_overload()
    return result


QUICK_FAILURES = (CelEvaluationError, KeyError, TypeError, IndexError, AttributeError, ValueError, ArithmeticError, RecursionError)
"""What the quick form may raise; the careful form then decides."""
