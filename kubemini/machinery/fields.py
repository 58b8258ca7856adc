"""Field selectors (``status.phase=Running,spec.nodeName!=n1``): parsing, the fields a kind knows, matching.

Mirrors apimachinery's ``pkg/fields`` (1.36). Which fields may be asked for is the kind's affair: `FieldSelector.check`
refuses the others with the text of the API server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest

Extractors = Mapping[str, Callable[[Tree], str]]
"""Selectable fields of a kind: path → its value as text ("" where absent)."""


class FieldTerm(NamedTuple):
    """One condition: the field is (`equal`) or is not the value."""

    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape(self.value)}"


class FieldSelector:
    """A conjunction of terms. `name` and `namespace` are what the selector wants of metadata, None when it leaves a choice."""

    __slots__ = ("equalities", "name", "namespace", "terms")

    def __init__(self, terms: Iterable[FieldTerm] = ()) -> None:
        self.terms = tuple(terms)
        self.equalities: tuple[tuple[str, str], ...] = tuple((each.field, each.value) for each in self.terms if each.equal)
        """Pairs of field and value that every match has: an index may use them."""
        self.name = self.value_of("metadata.name")
        self.namespace = self.value_of("metadata.namespace")

    @property
    def empty(self) -> bool:
        """Whether it selects everything."""
        return not self.terms

    def value_of(self, field: str) -> str | None:
        """Return the one value that the selector wants of a field, None when it leaves a choice."""
        for name, value in self.equalities:
            if name == field:
                return value
        return None

    def check(self, known: Iterable[str], *, kind: str = "") -> None:
        """Raise `BadRequest` where the selector asks for a field that is neither in metadata nor among `known`.

        With a `kind`, the answer is that of kinds with conversion functions of their own (``field label not supported``);
        without, that of the others.
        """
        allowed = {"metadata.name", "metadata.namespace", *known}
        for each in self.terms:
            if each.field not in allowed:
                if kind:
                    raise BadRequest(f"field label not supported: {each.field}")
                raise BadRequest(f'"{each.field}" is not a known field selector: only "metadata.name", "metadata.namespace"')

    def matches(self, tree: Tree, extractors: Extractors) -> bool:
        """Tell whether an object is selected; `extractors` give the fields beside metadata. O(terms)."""
        for each in self.terms:
            field = each.field
            if field == "metadata.name":
                value = tree["metadata"].get("name", "")
            elif field == "metadata.namespace":
                value = tree["metadata"].get("namespace", "")
            else:
                extract = extractors.get(field)
                value = extract(tree) if extract is not None else ""
            if (value == each.value) is not each.equal:
                return False
        return True

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))

    def __repr__(self) -> str:
        return f"FieldSelector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSelector) and self.terms == other.terms

    def __hash__(self) -> int:
        return hash(self.terms)


EVERYTHING = FieldSelector()

_PARSED: dict[str, FieldSelector] = {"": EVERYTHING}
_PARSED_LIMIT = 4096


def parse_fields(text: str) -> FieldSelector:
    r"""Return the selector of a query parameter. Raise `BadRequest` with upstream's text.

    >>> str(parse_fields(r"status.phase!=Failed,metadata.name==a\,b"))
    'metadata.name=a\\,b,status.phase!=Failed'
    """
    found = _PARSED.get(text)
    if found is None:
        # Sorted as texts, as upstream does: the order shows in the first error and in what the selector prints as.
        found = FieldSelector(each for part in sorted(_split(text)) if part for each in _term(part, text))
        if len(_PARSED) >= _PARSED_LIMIT:
            _PARSED.clear()
        _PARSED[text] = found
    return found


def escape(value: str) -> str:
    r"""Return a value as a selector writes it.

    >>> escape("a,b=c")
    'a\\,b\\=c'
    """
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")


def unescape(text: str) -> str:
    """Return the value that a selector writes as `text`. Raise `BadRequest`."""
    if not any(each in text for each in "\\,="):
        return text
    found: list[str] = []
    escaped = False
    for each in text:
        if escaped:
            if each not in "\\,=":
                raise BadRequest(f"invalid field selector: invalid escape sequence: \\{each}")
            found.append(each)
            escaped = False
        elif each == "\\":
            escaped = True
        elif each in ",=":
            raise BadRequest(f"invalid field selector: unescaped character in value: {ord(each)}")
        else:
            found.append(each)
    if escaped:
        raise BadRequest("invalid field selector: invalid escape sequence: \\")
    return "".join(found)


def _split(text: str) -> list[str]:
    """Split at commas that are not escaped."""
    found: list[str] = []
    start, escaped = 0, False
    for at, each in enumerate(text):
        if escaped:
            escaped = False
        elif each == "\\":
            escaped = True
        elif each == ",":
            found.append(text[start:at])
            start = at + 1
    found.append(text[start:])
    return found


def _term(part: str, text: str) -> list[FieldTerm]:
    """Return the term of one part, none for a term that says nothing (``=``)."""
    for at in range(len(part)):
        for operator in ("!=", "==", "="):
            if part.startswith(operator, at):
                field, value = part[:at], unescape(part[at + len(operator) :])
                return [FieldTerm(field, value, equal=operator != "!=")] if field or value else []
    raise BadRequest(f"invalid selector: '{text}'; can't understand '{part}'")
