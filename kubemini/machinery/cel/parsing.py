"""Tokens to a syntax tree: CEL's grammar by recursive descent, macros recognised on the way.

Mirrors cel-go's parser with the options of Kubernetes: optional syntax (``.?``, ``[?]``), two-variable comprehensions, ``sortBy``.
"""

from __future__ import annotations

from kubemini.machinery.cel.errors import CelCompileError, Issue
from kubemini.machinery.cel.lexing import RESERVED, Token, negated, tokens
from kubemini.machinery.cel.syntax import Call, Comprehension, Expr, Ident, ListExpr, Literal, Macro, MapExpr, Select, Struct
from kubemini.machinery.cel.values import INT_MAX, UInt

_MAX_DEPTH = 250
_MAX_LENGTH = 100_000
_OPERANDS = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_RELATIONS = {"<": "_<_", "<=": "_<=_", ">": "_>_", ">=": "_>=_", "==": "_==_", "!=": "_!=_", "in": "@in"}
_SUMS = {"+": "_+_", "-": "_-_"}
_PRODUCTS = {"*": "_*_", "/": "_/_", "%": "_%_"}

_ONE_VARIABLE: dict[tuple[str, int], Macro] = {
    ("all", 2): "all",
    ("exists", 2): "exists",
    ("exists_one", 2): "existsOne",
    ("existsOne", 2): "existsOne",
    ("map", 2): "map",
    ("map", 3): "map",
    ("filter", 2): "filter",
    ("sortBy", 2): "sortBy",
    ("optMap", 2): "optMap",
    ("optFlatMap", 2): "optFlatMap",
}
_TWO_VARIABLES: dict[tuple[str, int], Macro] = {
    ("all", 3): "all",
    ("exists", 3): "exists",
    ("exists_one", 3): "existsOne",
    ("existsOne", 3): "existsOne",
    ("transformList", 3): "transformList",
    ("transformList", 4): "transformList",
    ("transformMap", 3): "transformMap",
    ("transformMap", 4): "transformMap",
    ("transformMapEntry", 3): "transformMapEntry",
    ("transformMapEntry", 4): "transformMapEntry",
}


def parse(text: str) -> Expr:
    """Return the syntax tree of an expression. Raise `CelCompileError`."""
    if len(text) > _MAX_LENGTH:
        raise CelCompileError("", [Issue(0, f"expression code point size exceeds limit: size: {len(text)}, limit {_MAX_LENGTH}")])
    try:
        return _Parser(text).run()
    except RecursionError:
        raise CelCompileError(text, [Issue(0, f"expression recursion limit exceeded: {_MAX_DEPTH}")]) from None


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0
        self.depth = 0

    def run(self) -> Expr:
        expr = self._expr()
        if self._here.kind != "end":
            raise self._wrong("<EOF>", extraneous=True)
        return expr

    # ------------------------------------------------------------------------------------------- tokens

    @property
    def _here(self) -> Token:
        return self.tokens[self.at]

    def _take(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._here.kind == kind else None

    def _expect(self, kind: str) -> Token:
        if self._here.kind != kind:
            raise self._wrong(f"'{kind}'" if kind != "name" else "IDENTIFIER")
        return self._take()

    def _wrong(self, expected: str, *, extraneous: bool = False) -> CelCompileError:
        token = self._here
        how = "extraneous" if extraneous else "mismatched"
        return self._error(token.position, f"Syntax error: {how} input '{token.text}' expecting {expected}")

    def _error(self, position: int, message: str) -> CelCompileError:
        return CelCompileError(self.text, [Issue(position, message)])

    # ------------------------------------------------------------------------------------------- operators

    def _expr(self) -> Expr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._error(self._here.position, f"expression recursion limit exceeded: {_MAX_DEPTH}")
        expr = self._disjunction()
        if self._here.kind == "?":
            position = self._take().position
            yes = self._disjunction()
            self._expect(":")
            expr = Call(position, "_?_:_", (expr, yes, self._expr()))
        self.depth -= 1
        return expr

    def _disjunction(self) -> Expr:
        operands, operators = [self._conjunction()], list[int]()
        while token := self._accept("||"):
            operators.append(token.position)
            operands.append(self._conjunction())
        return _balanced("_||_", operands, operators)

    def _conjunction(self) -> Expr:
        operands, operators = [self._relation()], list[int]()
        while token := self._accept("&&"):
            operators.append(token.position)
            operands.append(self._relation())
        return _balanced("_&&_", operands, operators)

    def _relation(self) -> Expr:
        expr = self._sum()
        while self._here.kind in _RELATIONS:
            token = self._take()
            expr = Call(token.position, _RELATIONS[token.kind], (expr, self._sum()))
        return expr

    def _sum(self) -> Expr:
        expr = self._product()
        while self._here.kind in _SUMS:
            token = self._take()
            expr = Call(token.position, _SUMS[token.kind], (expr, self._product()))
        return expr

    def _product(self) -> Expr:
        expr = self._unary()
        while self._here.kind in _PRODUCTS:
            token = self._take()
            expr = Call(token.position, _PRODUCTS[token.kind], (expr, self._unary()))
        return expr

    def _unary(self) -> Expr:
        """Take a run of one prefix operator; an even number of them is none, as in cel-go."""
        operator = self._here.kind
        if operator not in {"!", "-"}:
            return self._member()
        first = self._here
        count = 0
        while self._here.kind == operator:
            self.at += 1
            count += 1
        if operator == "-" and self._is_number(self._here):
            self.tokens[self.at] = negated(self.text, self._here)._replace(position=first.position)
            count -= 1
        operand = self._member()
        if count % 2 == 0:
            return operand
        return Call(first.position, "!_" if operator == "!" else "-_", (operand,))

    @staticmethod
    def _is_number(token: Token) -> bool:
        value = token.value
        return token.kind == "literal" and isinstance(value, int | float) and not isinstance(value, bool | UInt)

    # ------------------------------------------------------------------------------------------- members

    def _member(self) -> Expr:
        expr = self._primary()
        while True:
            if token := self._accept("."):
                expr = self._selected(expr, token.position)
            elif token := self._accept(".?"):
                expr = Select(token.position, expr, self._expect("name").text, optional=True)
            elif token := self._accept("["):
                index = self._expr()
                self._expect("]")
                expr = Call(token.position, "_[_]", (expr, index))
            elif token := self._accept("[?"):
                index = self._expr()
                self._expect("]")
                expr = Call(token.position, "_[?_]", (expr, index))
            elif self._here.kind == "{" and (name := _dotted(expr)):
                expr = self._struct(name, expr.position)
            else:
                return expr

    def _selected(self, operand: Expr, position: int) -> Expr:
        name = self._expect("name").text
        opening = self._accept("(")
        if opening is None:
            return Select(position, operand, name)
        args = self._arguments(")")
        macro = _ONE_VARIABLE.get((name, len(args)))
        if macro is not None and (len(args) != 3 or macro == "map"):
            return self._comprehension(macro, opening.position, operand, args, variables=1)
        macro = _TWO_VARIABLES.get((name, len(args)))
        if macro is not None:
            return self._comprehension(macro, opening.position, operand, args, variables=2)
        return Call(opening.position, name, tuple(args), operand)

    def _comprehension(self, macro: Macro, position: int, target: Expr, args: list[Expr], *, variables: int) -> Expr:
        names: list[str] = []
        for arg in args[:variables]:
            if not isinstance(arg, Ident):
                raise self._error(arg.position, "argument must be a simple name" if variables > 1 else "argument is not an identifier")
            if arg.name in names or arg.name in {"__result__", "@result"}:
                raise self._error(
                    arg.position, "duplicate variable name" if arg.name in names else "iteration variable overwrites accumulator variable"
                )
            names.append(arg.name)
        rest = args[variables:]
        return Comprehension(position, macro, target, tuple(names), rest[-1], rest[0] if len(rest) == 2 else None)

    def _arguments(self, closing: str) -> list[Expr]:
        args: list[Expr] = []
        while not self._accept(closing):
            if args:
                self._expect(",")
            args.append(self._expr())
        return args

    def _struct(self, name: str, position: int) -> Expr:
        self._expect("{")
        fields: list[tuple[str, Expr, bool]] = []
        while not self._accept("}"):
            if fields:
                self._expect(",")
                if self._accept("}"):
                    break
            maybe = self._accept("?") is not None
            key = self._expect("name").text
            self._expect(":")
            fields.append((key, self._expr(), maybe))
        return Struct(position, name, tuple(fields))

    # ------------------------------------------------------------------------------------------- primaries

    def _primary(self) -> Expr:
        token = self._here
        if token.kind == "literal":
            self.at += 1
            if isinstance(token.value, int) and not isinstance(token.value, UInt) and token.value > INT_MAX:
                raise self._error(token.position, "Syntax error: invalid int literal")
            return Literal(token.position, token.value)
        if token.kind in {"name", "."}:
            return self._name()
        if self._accept("("):
            expr = self._expr()
            self._expect(")")
            return expr
        if token.kind in {"[", "[?"}:
            return self._list()
        if self._accept("{"):
            return self._map(token.position)
        raise self._wrong(_OPERANDS, extraneous=token.kind != "end" and self._next_is_operand())

    def _next_is_operand(self) -> bool:
        return self.tokens[self.at + 1].kind in {"literal", "name", "("}

    def _name(self) -> Expr:
        self._accept(".")
        token = self._expect("name")
        opening = self._accept("(")
        if opening is None:
            if token.text in RESERVED:
                raise self._error(token.position, f"reserved identifier: {token.text}")
            return Ident(token.position, token.text)
        args = self._arguments(")")
        if token.text == "has" and len(args) == 1:
            return self._has(opening.position, args[0])
        return Call(opening.position, token.text, tuple(args))

    def _has(self, position: int, arg: Expr) -> Expr:
        if not isinstance(arg, Select) or arg.test or arg.optional:
            raise self._error(arg.position, "invalid argument to has() macro")
        return Select(position, arg.operand, arg.field, test=True)

    def _list(self) -> Expr:
        opening = self._take()
        items: list[Expr] = []
        optional: set[int] = set()
        if opening.kind == "[?":
            optional.add(0)
            items.append(self._expr())
        while not self._accept("]"):
            if items:
                self._expect(",")
                if self._accept("]"):
                    break
            if self._accept("?"):
                optional.add(len(items))
            items.append(self._expr())
        return ListExpr(opening.position, tuple(items), frozenset(optional))

    def _map(self, position: int) -> Expr:
        entries: list[tuple[Expr, Expr, bool]] = []
        while not self._accept("}"):
            if entries:
                self._expect(",")
                if self._accept("}"):
                    break
            maybe = self._accept("?") is not None
            key = self._expr()
            self._expect(":")
            entries.append((key, self._expr(), maybe))
        return MapExpr(position, tuple(entries))


def _balanced(operator: str, operands: list[Expr], positions: list[int]) -> Expr:
    """Return a chain of one operator as a tree that is as flat as can be."""
    if len(operands) == 1:
        return operands[0]
    middle = len(operands) // 2
    left = _balanced(operator, operands[:middle], positions[: middle - 1])
    return Call(positions[middle - 1], operator, (left, _balanced(operator, operands[middle:], positions[middle:])))


def _dotted(expr: Expr) -> str | None:
    """Return the dotted name that an expression spells, or None."""
    if isinstance(expr, Ident):
        return expr.name
    if isinstance(expr, Select) and not expr.test and not expr.optional:
        head = _dotted(expr.operand)
        return f"{head}.{expr.field}" if head else None
    return None
