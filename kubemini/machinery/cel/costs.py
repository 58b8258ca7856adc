"""How much an expression may cost at most, in CEL's units, judged from the types and sizes alone.

The API server refuses CRDs whose rules could take too long: ``estimated rule cost exceeds budget by factor of …``. The numbers follow
cel-go's ``checker/cost.go`` and Kubernetes' ``pkg/cel/library/cost.go``, so that the same rules pass and the same factors are reported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from kubemini.machinery.cel.checking import Checked
from kubemini.machinery.cel.syntax import Call, Comprehension, Expr, Ident, ListExpr, Literal, MapExpr, Select
from kubemini.machinery.cel.types import Declared, Type

UNBOUNDED = 2**64 - 1
TRAVERSAL = 0.1
REGEX = 0.25
LIST_CREATION = 10
MAP_CREATION = 30
_SCALAR_KINDS = frozenset({"bool", "double", "duration", "int", "timestamp", "uint"})
_NAME_FORMAT_REGEX_SIZE = 128
_MAX_FORMAT_SIZE = 64


class Estimate(NamedTuple):
    """A range of costs or of sizes; both ends are capped at the largest uint64."""

    low: int
    high: int

    def plus(self, other: Estimate) -> Estimate:
        """Return the sum."""
        return Estimate(min(self.low + other.low, UNBOUNDED), min(self.high + other.high, UNBOUNDED))

    def times(self, other: Estimate) -> Estimate:
        """Return the product."""
        return Estimate(min(self.low * other.low, UNBOUNDED), min(self.high * other.high, UNBOUNDED))

    def scaled(self, factor: float) -> Estimate:
        """Return the product with a factor, rounded up."""
        return Estimate(_scaled(self.low, factor), _scaled(self.high, factor))

    def hull(self, other: Estimate) -> Estimate:
        """Return the range that covers both."""
        return Estimate(min(self.low, other.low), max(self.high, other.high))


def _scaled(value: int, factor: float) -> int:
    product = float(value) * factor
    return UNBOUNDED if product >= 2.0**64 else math.ceil(product)


FREE = Estimate(0, 0)
ONE = Estimate(1, 1)
ANY_SIZE = Estimate(0, UNBOUNDED)


class Entry(NamedTuple):
    """What is known of the elements of a container: its kind (``list`` or ``map``), and sizes of keys and values."""

    container: str
    key: Estimate
    value: Estimate


@dataclass(frozen=True, slots=True)
class Seen:
    """What the estimator finds of a node: cost, type, where in a schema it comes from, size, and what its elements are like."""

    cost: Estimate
    type: Type
    place: Declared | None = None
    size: Estimate | None = None
    entry: Entry | None = None

    @property
    def sized(self) -> Estimate:
        """The size; anything where it is unknown."""
        return self.size if self.size is not None else ANY_SIZE

    @property
    def element(self) -> Seen | None:
        """A list's element, without cost; None for what is no list."""
        if not self.type.params:
            return None
        place = self.place.element if self.place is not None else None
        return Seen(FREE, self.type.params[0], place, _declared_size(place))


def estimate(checked: Checked, declared: Mapping[str, Declared]) -> Estimate:
    """Return the range of an expression's cost; `declared` says what its variables are in a schema."""
    return _Estimator(checked, declared).see(checked.root).cost


def _declared_size(place: Declared | None) -> Estimate | None:
    return Estimate(0, place.max_elements) if place is not None else None


def _type_size(found: Type) -> Estimate | None:
    if found.kind in _SCALAR_KINDS:
        return ONE
    if found.kind == "opaque" and found.name == "optional_type":
        return _type_size(found.params[0])
    return None


class _Estimator:
    def __init__(self, checked: Checked, declared: Mapping[str, Declared]) -> None:
        self.checked = checked
        self.declared = declared
        self.scopes: list[dict[str, Seen]] = []

    def see(self, node: Expr) -> Seen:
        """Return what is known of a node."""
        if isinstance(node, Literal):
            return self._literal(node)
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
        assert isinstance(node, Comprehension)
        return self._comprehension(node)

    def _seen(self, node: Expr, cost: Estimate, place: Declared | None = None, size: Estimate | None = None, entry: Entry | None = None) -> Seen:
        found = self.checked.types[node]
        return Seen(cost, found, place, size or _declared_size(place) or _type_size(found), entry)

    def _literal(self, node: Literal) -> Seen:
        size = len(node.value) if isinstance(node.value, str | bytes) else 1
        return self._seen(node, FREE, size=Estimate(size, size))

    def _ident(self, node: Ident) -> Seen:
        for scope in reversed(self.scopes):
            if node.name in scope:
                return replace(scope[node.name], cost=ONE)
        return self._seen(node, ONE, self.declared.get(node.name))

    def _select(self, node: Select) -> Seen:
        if node in self.checked.named_types:
            return self._seen(node, ONE)
        operand = self.see(node.operand)
        if node.test:
            return self._seen(node, operand.cost)
        place: Declared | None = None
        if operand.place is not None:
            field = operand.place.fields.get(node.field) or operand.place.fields.get(f"__{node.field}__")
            place = field.value if field is not None else None
        if node.optional:
            return self._seen(node, operand.cost.plus(ONE), place)
        charged = operand.type.kind in {"map", "object", "param"}
        return self._seen(node, operand.cost.plus(ONE) if charged else operand.cost, place)

    def _list(self, node: ListExpr) -> Seen:
        items = [self.see(each) for each in node.items]
        count = Estimate(len(items), len(items))
        return self._seen(node, _total(items).plus(Estimate(LIST_CREATION, LIST_CREATION)), size=count, entry=Entry("list", ONE, _sizes(items)))

    def _map(self, node: MapExpr) -> Seen:
        keys = [self.see(key) for key, _, _ in node.entries]
        found = [self.see(value) for _, value, _ in node.entries]
        count = Estimate(len(keys), len(keys))
        cost = _total(keys).plus(_total(found)).plus(Estimate(MAP_CREATION, MAP_CREATION))
        return self._seen(node, cost, size=count, entry=Entry("map", _sizes(keys), _sizes(found)))

    # ------------------------------------------------------------------------------------------- calls

    def _call(self, node: Call) -> Seen:
        args = [self.see(arg) for arg in node.args]
        if node.function == "dyn":
            return replace(args[0], cost=args[0].cost.plus(ONE), type=self.checked.types[node])
        chosen = self.checked.calls[node]
        target = self.see(node.target) if chosen[0].member and node.target is not None else None
        cost = Estimate(UNBOUNDED, 0)
        size: Estimate | None = None
        for overload in chosen:
            each, result = _call_cost(node.function, overload.id, target, args)
            cost = cost.hull(each)
            if result is not None:
                size = result if size is None else size.hull(result)
        if target is not None:
            cost = target.cost.plus(cost)
        place, entry = self._indexed(chosen[0].id, args)
        if entry is not None and size is None:
            size = entry.value
            entry = None
        return self._seen(node, cost, place, size, entry or _joined_entry(node.function, args))

    @staticmethod
    def _indexed(overload: str, args: list[Seen]) -> tuple[Declared | None, Entry | None]:
        if overload not in {"index_list", "index_map"}:
            return None, None
        place = args[0].place
        return (place.element if place is not None else None), args[0].entry

    # ------------------------------------------------------------------------------------------- macros

    def _comprehension(self, node: Comprehension) -> Seen:
        given = self.see(node.range)
        if node.macro in {"optMap", "optFlatMap"}:
            return self._optional(node, given)
        self.scopes.append(self._variables(node, given))
        body = self.see(node.body)
        condition = self.see(node.filter) if node.filter is not None else None
        self.scopes.pop()
        step, base, size, entry = self._step(node, body, condition)
        cost = given.cost.plus(base).plus(given.sized.times(step)).plus(ONE)
        return self._seen(node, cost, size=given.sized if size is None else size, entry=entry)

    def _optional(self, node: Comprehension, given: Seen) -> Seen:
        self.scopes.append({node.variables[0]: replace(given, type=self.checked.types[node.range].params[0] if given.type.params else given.type)})
        body = self.see(node.body)
        self.scopes.pop()
        return self._seen(node, given.cost.plus(body.cost).plus(Estimate(LIST_CREATION, LIST_CREATION + 3)))

    def _variables(self, node: Comprehension, given: Seen) -> dict[str, Seen]:
        kind = given.entry.container if given.entry is not None else given.type.kind
        params = given.type.params
        item = params[-1] if params else given.type
        key = params[0] if kind == "map" and params else item
        place = given.place
        element = place.element if place is not None else None
        value_size = given.entry.value if given.entry is not None else _declared_size(element)
        key_place = place.key if place is not None else None
        key_size = given.entry.key if given.entry is not None else _declared_size(key_place)
        value = Seen(ONE, item, element, value_size or _type_size(item))
        if len(node.variables) == 2:
            index_type = self._index_type(kind, key)
            return {node.variables[0]: Seen(ONE, index_type, key_place, key_size or _type_size(index_type)), node.variables[1]: value}
        if kind == "list":
            return {node.variables[0]: value}
        return {node.variables[0]: Seen(ONE, key, key_place, key_size or _type_size(key))}

    def _index_type(self, kind: str, key: Type) -> Type:
        return Type("int") if kind == "list" else key

    def _step(self, node: Comprehension, body: Seen, condition: Seen | None) -> tuple[Estimate, Estimate, Estimate | None, Entry | None]:
        """Return the cost of one round, the cost before the first, the size of the result where the range's is not it, and its entries."""
        macro = node.macro
        if macro == "all":
            # not_strictly_false(accu) = 2; accu && body
            return Estimate(2 + 1, 3).plus(Estimate(0, body.cost.high)), FREE, ONE, None
        if macro == "exists":
            # not_strictly_false(!accu) = 3; accu || body
            return Estimate(3 + 1, 4).plus(Estimate(0, body.cost.high)), FREE, ONE, None
        if macro == "existsOne":
            return body.cost.plus(Estimate(1, 2)), FREE, ONE, None
        creation = Estimate(LIST_CREATION, LIST_CREATION)
        if macro in {"map", "transformList"}:
            grown = body.cost.plus(creation).plus(Estimate(2, 2))
            return self._filtered(grown, condition), creation, None, Entry("list", ONE, body.sized)
        if macro == "filter":
            # body ? accu + [item] : accu
            grown = ONE.plus(creation).plus(Estimate(2, 2))
            return body.cost.plus(ONE.hull(grown)), creation, None, None
        if macro in {"transformMap", "transformMapEntry"}:
            grown = body.cost.plus(Estimate(3, 3))
            return self._filtered(grown, condition), Estimate(MAP_CREATION, MAP_CREATION), None, None
        # sortBy: one pass of keys, then comparisons
        return body.cost.plus(creation).plus(Estimate(3, 3)), creation, None, None

    @staticmethod
    def _filtered(grown: Estimate, condition: Seen | None) -> Estimate:
        return grown if condition is None else condition.cost.plus(ONE.hull(grown))


def _total(seen: list[Seen]) -> Estimate:
    total = FREE
    for each in seen:
        total = total.plus(each.cost)
    return total


def _sizes(seen: list[Seen]) -> Estimate:
    if not seen:
        return FREE
    size = seen[0].sized
    for each in seen[1:]:
        size = size.hull(each.sized)
    return size


def _joined_entry(function: str, args: list[Seen]) -> Entry | None:
    pair = args[1:] if function == "_?_:_" else args if function == "_+_" else []
    if len(pair) != 2 or pair[0].entry is None or pair[1].entry is None:
        return None
    return Entry(pair[0].entry.container, pair[0].entry.key.hull(pair[1].entry.key), pair[0].entry.value.hull(pair[1].entry.value))


# ----------------------------------------------------------------------------------------------- costs of calls

Cost = tuple[Estimate, Estimate | None]
"""The cost of a call without its arguments, and the size of its result where it is known."""
Rule = Callable[[str, Seen | None, list[Seen]], Cost | None]


def _call_cost(function: str, overload: str, target: Seen | None, args: list[Seen]) -> Cost:
    if function in {"_&&_", "_||_"}:
        return Estimate(args[0].cost.low, args[0].cost.plus(args[1].cost).high), None
    if function == "_?_:_":
        return args[0].cost.plus(args[1].cost.hull(args[2].cost)), args[1].sized.hull(args[2].sized)
    rule = _RULES.get(function)
    found = rule(overload, target, args) if rule is not None else None
    cost, size = found if found is not None else (ONE, None)
    return cost.plus(_total(args)), size


def _compared(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del target
    if overload in {"equals", "not_equals"} or overload.rpartition("_")[2] in {"string", "bytes"}:
        special = _opaque_equality(overload, args)
        if special is not None:
            return special, None
        least = min(args[0].sized.high, args[1].sized.high)
        return Estimate(1 if least > 0 else 0, least).scaled(TRAVERSAL), None
    return None


def _opaque_equality(overload: str, args: list[Seen]) -> Estimate | None:
    a, b = args[0].type, args[1].type
    if overload != "equals" or a.kind != "opaque" or a.name != b.name:
        return None
    if a.name in {"net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"}:
        return ONE
    if a.name == "kubernetes.NamedFormat":
        return Estimate(1, _MAX_FORMAT_SIZE).scaled(TRAVERSAL)
    return None


def _added(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del target
    size = args[0].sized.plus(args[1].sized)
    if overload == "add_list":
        return ONE, size
    if overload in {"add_string", "add_bytes"}:
        return size.scaled(TRAVERSAL), size
    return None


def _in(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del target
    return (args[1].sized.scaled(1), None) if overload == "in_list" else None


def _affix(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload, target
    return args[0].sized.scaled(TRAVERSAL), None


def _contains(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload
    return (target.sized.scaled(TRAVERSAL).times(args[0].sized.scaled(TRAVERSAL)), None) if target is not None else None


def _regex(text: Seen, pattern: Seen) -> Estimate:
    return text.sized.plus(ONE).scaled(TRAVERSAL).times(pattern.sized.scaled(REGEX))


def _matches(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    # cel-go knows the method only; the function form costs one.
    del overload
    return (_regex(target, args[0]), None) if target is not None else None


def _find(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload
    return (_regex(target, args[0]), Estimate(0, target.sized.high)) if target is not None else None


def _scan(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    """Walk over a list once (or over a string for indexOf)."""
    del overload, args
    if target is None:
        return None
    element = target.element
    if element is None:
        return target.sized.scaled(TRAVERSAL), None
    each = ONE.plus(element.sized.scaled(TRAVERSAL)) if element.type.kind in {"string", "bytes"} else ONE
    return target.sized.times(each), None


def _first_argument(factor: float, *, sized: bool = False) -> Rule:
    def rule(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
        if not args or overload == "cidr_ip":
            return ONE, None
        return args[0].sized.scaled(factor), args[0].sized if sized else None

    return rule


def _target(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload, args
    return (target.sized.scaled(TRAVERSAL), target.sized) if target is not None else None


def _replaced(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload
    if target is None:
        return None
    size, old, new = target.sized, args[0].sized, args[1].sized
    if old.low == 0:
        most, kept_most = min(size.high + 1, UNBOUNDED), size.high
    elif new.high <= old.low:
        most, kept_most = 0, size.high
    else:
        most, kept_most = math.ceil(float(size.high) / float(old.low)), 0
    if old.high == 0:
        least, kept_least = min(size.low + 1, UNBOUNDED), size.low
    elif old.high <= new.low:
        least, kept_least = 0, size.low
    else:
        least, kept_least = math.ceil(float(size.low) / float(old.high)), 0
    return size.scaled(2 * TRAVERSAL), Estimate(least, most).times(new).plus(Estimate(kept_least, kept_most))


def _split(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload, args
    return (target.sized.scaled(2 * TRAVERSAL), Estimate(0, target.sized.high)) if target is not None else None


def _join(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload
    if target is None:
        return None
    count, element = target.sized, target.element
    size = count.times(element.sized) if element is not None else FREE
    if args:
        size = size.plus(args[0].sized.times(Estimate(max(0, count.low - 1), max(0, count.high - 1))))
    return size.scaled(TRAVERSAL), size


def _contains_network(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del target
    bytes_ = Estimate(4, 16)
    cost = bytes_.plus(bytes_).scaled(TRAVERSAL)
    if overload.startswith("cidr_contains_cidr"):
        cost = cost.plus(bytes_.scaled(TRAVERSAL)).plus(ONE)
    if overload.endswith("_string"):
        cost = cost.plus(args[0].sized.scaled(TRAVERSAL))
    return cost, None


def _validate(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload, target
    return args[0].sized.scaled(TRAVERSAL).scaled(_NAME_FORMAT_REGEX_SIZE * REGEX), None


def _formatted(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del overload, args
    return (target.sized.scaled(TRAVERSAL), None) if target is not None else None


def _converted(overload: str, target: Seen | None, args: list[Seen]) -> Cost | None:
    del target
    size = args[0].sized
    if overload == "string_to_bytes":
        return size.scaled(TRAVERSAL), Estimate(size.low, min(size.high * 4, UNBOUNDED))
    if overload == "bytes_to_string":
        return size.scaled(TRAVERSAL), Estimate(size.low // 4, size.high)
    return None


_RULES: dict[str, Rule] = {
    **dict.fromkeys(("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"), _compared),
    "_+_": _added,
    "@in": _in,
    **dict.fromkeys(("startsWith", "endsWith"), _affix),
    "contains": _contains,
    "matches": _matches,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _scan),
    "url": _first_argument(TRAVERSAL, sized=True),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _target),
    "replace": _replaced,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver"), _first_argument(TRAVERSAL)),
    "isCanonical": _first_argument(2 * TRAVERSAL),
    **dict.fromkeys(("containsIP", "containsCIDR"), _contains_network),
    "validate": _validate,
    "format": _formatted,
    **dict.fromkeys(("bytes", "string"), _converted),
}
