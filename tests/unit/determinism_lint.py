"""A lint of our own: the same seed must give the same trace, so nothing may ask the machine for time, chance, ids or set order.

`violations` reads one module's source and knows

- imports of ``time``, ``random``, ``uuid``, ``secrets``, and the calls ``datetime.now``, ``date.today``, ``asyncio.sleep``,
  ``os.urandom`` and the like: `kubemini.runtime.env.Env` gives these (``asyncio.sleep(0)`` only gives way, and is fine);
- ``hash()``, whose value for strings differs from process to process, and ``id()`` as a sort key;
- iteration over sets, whose order follows such hashes: directly, or through ``list``, ``tuple``, ``next(iter())``, ``join``,
  ``pop()``, where the order shows. What is a set is told from the source alone: displays, comprehensions, ``set()`` calls, set
  operators on those or on dict views, and names and attributes that are annotated or assigned as one.

A line that knows better says so: ``# order-free: reason`` after an iteration, ``# real-time: reason`` after the rest.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

BANNED_MODULES = {"time", "random", "uuid", "secrets"}
BANNED_NAMES = {
    "asyncio.sleep",
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "os.getrandom",
    "os.times",
    "os.urandom",
}
SET_TYPES = {"set", "frozenset", "Set", "AbstractSet", "MutableSet", "FrozenSet"}
SET_METHODS = {"union", "intersection", "difference", "symmetric_difference"}
ORDER_SHOWS = {"list", "tuple", "iter", "enumerate", "zip", "map", "filter", "reversed", "deque"}
"""Callables that pass an order on."""
ORDER_FREE = {"any", "all", "len", "set", "frozenset", "sum"}
BY_VALUE = {"min", "max", "sorted"}
"""Callables that are free of order without a ``key``; with one, what compares equal stands in the order in which it came."""
WAIVER = re.compile(r"#\s*(order-free|real-time):\s*\S")


def violations(source: str) -> list[str]:
    """Return ``line: what`` for each place in a module that makes a run depend on more than its seed."""
    tree = ast.parse(source)
    waived = {number for number, line in enumerate(source.splitlines(), 1) if WAIVER.search(line)}
    found = [*_clocks(tree), *_hashes(tree), *_sets(tree)]
    return [f"{node.lineno}: {what}" for node, what in sorted(found, key=lambda f: f[0].lineno) if node.lineno not in waived]


Found = Iterator[tuple[ast.expr | ast.stmt, str]]


def _clocks(tree: ast.Module) -> Found:
    names: dict[str, str] = {}  # local name -> what it stands for
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = alias.name if alias.asname else alias.name.partition(".")[0]
                if alias.name in BANNED_MODULES:
                    yield node, f"import of {alias.name}: ask Env"
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if f"{node.module}.{alias.name}" in BANNED_NAMES:
                    yield node, f"import of {node.module}.{alias.name}: ask Env"
            # types and pure functions of these modules are fine
            if node.module in BANNED_MODULES and {alias.name for alias in node.names} - {"Random", "UUID", "struct_time", "gmtime", "strftime"}:
                yield node, f"import from {node.module}: ask Env"
    yields = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call) and [ast.unparse(argument) for argument in node.args] == ["0"]}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Attribute)
            and (dotted := _dotted(node, names)) in BANNED_NAMES
            and not (dotted == "asyncio.sleep" and node in yields)
        ):
            yield node, f"{dotted}: ask Env"


def _dotted(node: ast.expr, names: dict[str, str]) -> str:
    if isinstance(node, ast.Name):
        return names.get(node.id, "")
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value, names)
        return f"{inner}.{node.attr}" if inner else ""
    return ""


def _hashes(tree: ast.Module) -> Found:
    own = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "__hash__"]
    allowed = {inner for node in own for inner in ast.walk(node)}  # a value for dicts only
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "key" and isinstance(node.value, ast.Name) and node.value.id in ("id", "hash"):
            yield node.value, f"{node.value.id} as a sort key differs from run to run"
        if isinstance(node, ast.Call) and _called(node) == "hash" and node not in allowed:
            yield node, "hash() of strings differs from process to process"


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


class _Sets(ast.NodeVisitor):
    """Tracks which names hold sets, function by function, and collects what iterates over one."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.expr | ast.stmt, str]] = []
        self.scopes: list[dict[str, bool]] = [{}]
        self.attributes: dict[str, bool] = {}
        self.allowed: set[ast.expr] = set()

    # what is a set

    def is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Name(id=name):
                return next((scope[name] for scope in reversed(self.scopes) if name in scope), False)
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                return self.attributes.get(attr, False)
            case ast.Call(func=ast.Name(id="set" | "frozenset")):
                return True
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in SET_METHODS or attr == "copy":
                return self.is_set(value)
            case ast.BinOp(left=left, op=ast.Sub() | ast.BitAnd() | ast.BitXor() | ast.BitOr() as op, right=right):
                # a view minus or and anything is a set; `a | b` of two dicts is a dict
                views = _is_view(left) or (_is_view(right) and not isinstance(op, ast.Sub))
                return views or self.is_set(left) or (self.is_set(right) and not isinstance(op, ast.Sub))
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_set(body) or self.is_set(orelse)
            case ast.BoolOp(values=values):
                return any(self.is_set(value) for value in values)
            case ast.NamedExpr(value=value):
                return self.is_set(value)
            case _:
                return False

    def learn(self, target: ast.expr, holds_set: bool) -> None:
        match target:
            case ast.Name(id=name):
                self.scopes[-1][name] = holds_set
            case ast.Attribute(value=ast.Name(id="self"), attr=attr):
                self.attributes[attr] = self.attributes.get(attr, False) or holds_set
            case _:
                pass  # items of containers are not followed

    def visit_Assign(self, node: ast.Assign) -> None:
        self.generic_visit(node)
        for target in node.targets:
            self.learn(target, self.is_set(node.value))

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self.generic_visit(node)
        self.learn(node.target, _annotates_set(node.annotation))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.generic_visit(node)
        self.learn(node.target, self.is_set(node.value))

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer = self.attributes
        self.attributes = {}
        for inner in ast.walk(node):  # attributes may be used above their assignment
            if isinstance(inner, ast.AnnAssign):
                name = inner.target
                if isinstance(name, ast.Name):
                    self.attributes[name.id] = _annotates_set(inner.annotation)
                else:
                    self.learn(name, _annotates_set(inner.annotation))
            elif isinstance(inner, ast.Assign):
                for target in inner.targets:
                    if isinstance(target, ast.Attribute):
                        self.learn(target, self.is_set(inner.value))
        self.generic_visit(node)
        self.attributes = outer

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        self.scopes.append({argument.arg: argument.annotation is not None and _annotates_set(argument.annotation) for argument in arguments})
        self.generic_visit(node)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    # what shows the order of one

    def flag(self, node: ast.expr) -> None:
        if self.is_set(node):
            self.found.append((node, "the order of a set shows: iterate over sorted(...), or keep a dict"))

    def visit_For(self, node: ast.For) -> None:
        self.flag(node.iter)
        self.learn(node.target, holds_set=False)
        self.generic_visit(node)

    def comprehension(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> None:
        self.scopes.append({})
        for part in node.generators:
            if node not in self.allowed:
                self.flag(part.iter)
            self.learn(part.target, holds_set=False)
        self.generic_visit(node)
        self.scopes.pop()

    visit_ListComp = comprehension  # noqa: N815
    visit_DictComp = comprehension  # noqa: N815
    visit_GeneratorExp = comprehension  # noqa: N815

    def visit_Starred(self, node: ast.Starred) -> None:
        if node not in self.allowed:
            self.flag(node.value)
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        self.allowed |= {element for element in node.elts if isinstance(element, ast.Starred)}
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Membership in a display does not depend on its order."""
        for operator, operand in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn) and isinstance(operand, ast.Tuple | ast.List):
                self.allowed |= {element for element in operand.elts if isinstance(element, ast.Starred)}
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = _called(node)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        keyed = any(keyword.arg == "key" for keyword in node.keywords)
        if name in ORDER_FREE or (name in BY_VALUE and not keyed) or method in {*SET_METHODS, "update", "issubset", "issuperset", "isdisjoint"}:
            self.allowed |= set(node.args)
        elif name in ORDER_SHOWS or name in BY_VALUE or method in ("join", "fromkeys", "extend"):
            for argument in node.args:
                self.flag(argument)
        if method == "pop" and not node.args and isinstance(node.func, ast.Attribute):
            self.flag(node.func.value)
        self.generic_visit(node)


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("keys", "items") and not node.args


def _annotates_set(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name):
            return name in SET_TYPES
        case ast.Attribute(attr=attr):
            return attr in SET_TYPES
        case ast.Subscript(value=value):
            return _annotates_set(value)
        case ast.BinOp(left=left, right=right):
            return _annotates_set(left) or _annotates_set(right)
        case _:
            return False


def _sets(tree: ast.Module) -> Found:
    visitor = _Sets()
    visitor.visit(tree)
    yield from visitor.found
