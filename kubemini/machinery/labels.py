"""Label selectors: the text form (``app=a,tier in (x,y)``), the LabelSelector object, and matching.

`parse_selector` reads the query parameter, `from_label_selector` the object; both answer a `Selector`, which the
store, informers and controllers match with. Mirrors apimachinery's ``pkg/labels`` and ``LabelSelectorAsSelector`` (1.36).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, FieldError, forbidden, invalid, required
from kubemini.machinery.memo import IdentityMemo
from kubemini.machinery.names import errors, faults, label_value, qualified_name

BINARY_OPERATORS = ("in", "notin", "=", "==", "!=", "gt", "lt")
_EXPRESSION_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
_SYMBOLS = {"gt": ">", "lt": "<"}
_INT64 = 2**63


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition: `operator` is one of ``= == != in notin exists ! gt lt``; `values` are sorted."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether labels meet the condition. ``!=`` and ``notin`` also hold where the key is absent."""
        operator = self.operator
        if operator in {"=", "==", "in"}:
            return labels.get(self.key) in self.values
        if operator in {"!=", "notin"}:
            return labels.get(self.key) not in self.values
        if operator == "exists":
            return self.key in labels
        if operator == "!":
            return self.key not in labels
        have = _integer(labels.get(self.key))
        want = _integer(self.values[0])
        if have is None or want is None:
            return False
        return have > want if operator == "gt" else have < want

    def __str__(self) -> str:
        operator = self.operator
        if operator == "exists":
            return self.key
        if operator == "!":
            return f"!{self.key}"
        if operator in {"in", "notin"}:
            return f"{self.key} {operator} ({','.join(self.values)})"
        return f"{self.key}{_SYMBOLS.get(operator, operator)}{self.values[0]}"


class Selector:
    """A conjunction of requirements, sorted by key. `equalities` are the label pairs that every match has: an index may use them."""

    __slots__ = ("_text", "equalities", "nothing", "requirements", "rest")

    def __init__(self, requirements: tuple[Requirement, ...] = (), *, nothing: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda each: each.key))
        self.nothing = nothing
        """Whether it is the null selector, which matches nothing."""
        self.equalities: tuple[tuple[str, str], ...] = tuple(
            (each.key, each.values[0]) for each in self.requirements if each.operator in {"=", "==", "in"} and len(each.values) == 1
        )
        self.rest = tuple(each for each in self.requirements if each.operator not in {"=", "==", "in"} or len(each.values) != 1)
        self._text: str | None = None

    @property
    def empty(self) -> bool:
        """Whether it selects everything."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Tell whether an object with these labels is selected. O(requirements)."""
        if labels is None:
            labels = _NO_LABELS
        for key, value in self.equalities:
            if labels.get(key) != value:
                return False
        for each in self.rest:
            if not each.matches(labels):
                return False
        return not self.nothing

    def matches_object(self, tree: Tree) -> bool:
        """Tell whether an object is selected by the labels of its metadata."""
        return self.matches(tree["metadata"].get("labels"))

    def taken(self, objects: Iterable[Tree]) -> list[Tree]:
        """Return the objects that are selected. O(objects), and quick where one label decides."""
        if len(self.requirements) == 1 and self.equalities and not self.nothing:
            key, value = self.equalities[0]
            return [each for each in objects if (each["metadata"].get("labels") or _NO_LABELS).get(key) == value]
        return [each for each in objects if self.matches(each["metadata"].get("labels"))]

    def value_of(self, key: str) -> str | None:
        """Return the one value that the selector wants of a label, None when it leaves a choice."""
        for name, value in self.equalities:
            if name == key:
                return value
        return None

    def __str__(self) -> str:
        if self._text is None:
            self._text = ",".join(map(str, self.requirements))
        return self._text

    def __repr__(self) -> str:
        return "Selector(nothing)" if self.nothing else f"Selector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Selector) and self.nothing == other.nothing and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash((self.requirements, self.nothing))


_NO_LABELS: dict[str, str] = {}
EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def from_labels(labels: Mapping[str, str] | None) -> Selector:
    """Return the selector of objects that have all these labels; everything for none (``spec.selector`` of a Service or ReplicationController)."""
    return Selector(tuple(Requirement(key, "=", (value,)) for key, value in labels.items())) if labels else EVERYTHING


# ----------------------------------------------------------------------------------------------- the object

_FROM_OBJECT: IdentityMemo[Selector] = IdentityMemo(4096)


def from_label_selector(tree: Mapping[str, Any] | None) -> Selector:
    """Return the selector of a LabelSelector object: None selects nothing, ``{}`` everything. Raise ValueError for an unknown operator.

    >>> str(from_label_selector({"matchLabels": {"b": "1"}, "matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}))
    'a in (x,y),b=1'
    """
    if tree is None:
        return NOTHING
    found = _FROM_OBJECT.get(tree)
    return found if found is not None else _FROM_OBJECT.put(tree, _from_label_selector(tree))


def _from_label_selector(tree: Mapping[str, Any]) -> Selector:
    found = [Requirement(key, "=", (value,)) for key, value in (tree.get("matchLabels") or {}).items()]
    for each in tree.get("matchExpressions") or ():
        operator = _EXPRESSION_OPERATORS.get(each.get("operator", ""))
        if operator is None:
            raise ValueError(f'"{each.get("operator", "")}" is not a valid label selector operator')
        found.append(Requirement(each.get("key", ""), operator, tuple(sorted(set(each.get("values") or ())))))
    return Selector(tuple(found)) if found else EVERYTHING


def validate_labels(labels: Mapping[str, str] | None, field: str) -> list[FieldError]:
    """Return what is wrong with keys and values of labels, all at the path of the map."""
    found: list[FieldError] = []
    for key, value in (labels or {}).items():
        found += errors(field, key, qualified_name(key))
        found += errors(field, value, label_value(value))
    return found


def validate_label_selector(tree: Mapping[str, Any] | None, field: str, *, invalid_values: bool = False) -> list[FieldError]:
    """Return what is wrong with a LabelSelector object; `invalid_values` tolerates bad values (an update of an object that has some)."""
    if tree is None:
        return []
    found = validate_labels(tree.get("matchLabels"), f"{field}.matchLabels")
    for index, each in enumerate(tree.get("matchExpressions") or ()):
        found += _validate_expression(each, f"{field}.matchExpressions[{index}]", invalid_values=invalid_values)
    return found


def _validate_expression(tree: Mapping[str, Any], field: str, *, invalid_values: bool) -> list[FieldError]:
    found: list[FieldError] = []
    operator, values = tree.get("operator", ""), tree.get("values") or ()
    if operator in {"In", "NotIn"}:
        if not values:
            found.append(required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in {"Exists", "DoesNotExist"}:
        if values:
            found.append(forbidden(f"{field}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
    else:
        found.append(invalid(f"{field}.operator", operator, "not a valid selector operator"))
    key = tree.get("key", "")
    found += errors(f"{field}.key", key, qualified_name(key))
    if not invalid_values:
        for index, value in enumerate(values):
            found += errors(f"{field}.values[{index}]", value, label_value(value))
    return found


# ----------------------------------------------------------------------------------------------- the text

_PARSED: dict[str, Selector] = {"": EVERYTHING}
_PARSED_LIMIT = 4096


def parse_selector(text: str) -> Selector:
    """Return the selector of a query parameter. Raise `BadRequest` with upstream's text.

    >>> str(parse_selector("tier notin (b, a),!gone, app==x,n>5"))
    'app==x,!gone,n>5,tier notin (a,b)'
    """
    found = _PARSED.get(text)
    if found is None:
        found = Selector(tuple(_Parser(text).selector()))
        if len(_PARSED) >= _PARSED_LIMIT:
            _PARSED.clear()
        _PARSED[text] = found
    return found


class _RequirementError(Exception):
    """A requirement cannot be understood; the parser wraps the text once."""


_SPACE = " \t\r\n"
_SPECIAL = "=!(),><"
_OPERATOR_TOKENS = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}
_SYMBOL_TOKENS = frozenset({")", ",", "!", "==", "=", ">", "<", "!=", "("})
_WORD = "word"
_END = ""


def _tokens(text: str) -> list[tuple[str, str]]:
    """Split a selector into (kind, literal): symbols are their own kind, the rest are words; ends with the end token."""
    found: list[tuple[str, str]] = []
    at, end = 0, len(text)
    while at < end:
        here = text[at]
        if here == "\0":
            break
        if here in _SPACE:
            at += 1
        elif here in _SPECIAL:
            size = 2 if text[at : at + 2] in _SYMBOL_TOKENS else 1
            found.append((text[at : at + size], text[at : at + size]))
            at += size
        else:
            start = at
            while at < end and text[at] not in _SPACE and text[at] not in _SPECIAL:
                at += 1
            found.append((_WORD, text[start:at]))
    found.append((_END, ""))
    return found


class _Parser:
    """The grammar of selectors, by recursive descent. ``in`` and ``notin`` are words wherever no operator is expected."""

    def __init__(self, text: str) -> None:
        self.items = _tokens(text)
        self.at = 0

    def peek(self) -> tuple[str, str]:
        """Return the next token."""
        return self.items[self.at]

    def take(self) -> tuple[str, str]:
        """Return the next token and go past it."""
        found = self.items[self.at]
        self.at = min(self.at + 1, len(self.items) - 1)
        return found

    def selector(self) -> list[Requirement]:
        """Parse the whole text."""
        found: list[Requirement] = []
        while True:
            kind, literal = self.peek()
            if kind == _END:
                return found
            if kind not in {_WORD, "!"}:
                raise BadRequest(f"found '{literal}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self.requirement())
            except _RequirementError as error:
                raise BadRequest(f"unable to parse requirement: {error}") from None
            kind, literal = self.take()
            if kind == _END:
                return found
            if kind != ",":
                raise BadRequest(f"found '{literal}', expected: ',' or 'end of string'")
            kind, literal = self.peek()
            if kind not in {_WORD, "!"}:
                raise BadRequest(f"found '{literal}', expected: identifier after ','")

    def requirement(self) -> Requirement:
        """Parse one requirement."""
        kind, key = self.take()
        negated = kind == "!"
        if negated:
            kind, key = self.take()
        if kind != _WORD:
            raise _RequirementError(f"found '{key}', expected: identifier")
        problem = qualified_name(key)
        if problem:
            raise _RequirementError(str(invalid("<nil>", key, "; ".join(faults(problem)))))
        if self.peek()[0] in {_END, ","}:
            return Requirement(key, "!" if negated else "exists")
        if negated:
            return Requirement(key, "!")
        operator = self.operator()
        values = self.values() if operator in {"in", "notin"} else [self.exact_value()]
        return _checked(Requirement(key, operator, tuple(sorted(set(values)))))

    def operator(self) -> str:
        """Parse a binary operator."""
        _, literal = self.take()
        operator = _OPERATOR_TOKENS.get(literal)
        if operator is None:
            raise _RequirementError(f"found '{literal}', expected: {', '.join(BINARY_OPERATORS)}")
        return operator

    def exact_value(self) -> str:
        """Parse the value of a comparison; nothing is the empty value."""
        if self.peek()[0] in {_END, ","}:
            return ""
        kind, literal = self.take()
        if kind != _WORD:
            raise _RequirementError(f"found '{literal}', expected: identifier")
        return literal

    def values(self) -> list[str]:
        """Parse ``(a,b)``; an empty place between commas is the empty value."""
        kind, literal = self.take()
        if kind != "(":
            raise _RequirementError(f"found '{literal}' expected: '('")
        kind, literal = self.peek()
        if kind == ")":
            self.take()
            return [""]
        if kind not in {_WORD, ","}:
            raise _RequirementError(f"found '{literal}', expected: ',', ')' or identifier")
        found: list[str] = []
        while True:
            kind, literal = self.take()
            if kind == _WORD:
                found.append(literal)
                kind, literal = self.peek()
                if kind == ")":
                    break
                if kind != ",":
                    raise _RequirementError(f"found '{literal}', expected: ',' or ')'")
            elif kind == ",":
                if not found or self.peek()[0] in {")", ","}:
                    found.append("")
                if self.peek()[0] == ")":
                    break
            else:
                raise _RequirementError(f"found '{literal}', expected: ',', or identifier")
        self.take()
        return found


def _checked(requirement: Requirement) -> Requirement:
    """Return the requirement if its values are legal."""
    found: list[str] = []
    if requirement.operator in {"gt", "lt"} and _integer(requirement.values[0]) is None:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        found.append(str(invalid("values[0]", requirement.values[0], detail)))
    for index, value in enumerate(requirement.values):
        problem = label_value(value)
        if problem:
            found.append(str(invalid(f"values[{index}][{requirement.key}]", value, "; ".join(faults(problem)))))
    if found:
        raise _RequirementError(found[0] if len(found) == 1 else f"[{', '.join(found)}]")
    return requirement


def _integer(text: str | None) -> int | None:
    """Return a 64-bit integer as Go's strconv reads it, None for anything else."""
    if not text:
        return None
    digits = text[1:] if text[0] in "+-" else text
    if not digits.isascii() or not digits.isdigit():
        return None
    value = int(text)
    return value if -_INT64 <= value < _INT64 else None
