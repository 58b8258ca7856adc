"""CEL rules of custom objects: ``x-kubernetes-validations`` evaluated over an object, with the API server's texts.

Mirrors apiextensions-apiserver's ``schema/cel/validation.go`` (1.36). Rules are compiled when a node is first visited. A subtree that an
update did not change is passed over unless rules below it look at the old value.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.cel import CelCompileError, CelEvaluationError, Environment, Program
from kubemini.machinery.cel.declared import declared
from kubemini.machinery.cel.types import Declared
from kubemini.machinery.cel.values import NONE, some
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, invalid_omitted, required
from kubemini.machinery.schema.fieldpaths import FieldPathError, field_path
from kubemini.machinery.schema.keywords import Path, keyed
from kubemini.machinery.schema.structure import NOTHING, Node
from kubemini.machinery.schema.validating import by_keys

MAX_MESSAGE = 5 * 1024
_SELF = ("self",)


class Rule:
    """One compiled rule: what it needs, and what it says when it is broken."""

    __slots__ = ("field", "looks_back", "message", "optional_old", "problem", "program", "source", "type")

    def __init__(
        self, node: Node, source: Tree, field: str, program: Program | None = None, message: Program | None = None, problem: str = ""
    ) -> None:
        self.type = str(node.schema.get("type", ""))
        self.source = source
        self.field = field
        """The relative path that errors name, "" for the node itself."""
        self.program = program
        self.message = message
        self.problem = problem
        """What is wrong with the rule itself; "" when it compiles."""
        self.looks_back = program is not None and "oldSelf" in program.references
        """Whether it reads the old value."""
        self.optional_old = bool(source.get("optionalOldSelf"))
        """Whether the old value is an optional."""


class RuledNode:
    """The rules of one schema and of those below it."""

    def __init__(self, node: Node, known: Declared | None) -> None:
        self.node = node
        self._declared = known
        self._children: dict[str, RuledNode | None] = {}

    @cached_property
    def rules(self) -> list[Rule]:
        """The rules stated here."""
        return [_compiled(self.node, rule, self._declared) for rule in self.node.rules if rule.get("rule", "").strip()]

    @cached_property
    def items(self) -> RuledNode | None:
        """The rules of a list's elements."""
        return self._below(self.node.items, self._declared.element if self._declared is not None else None)

    @cached_property
    def additional(self) -> RuledNode | None:
        """The rules of a map's values."""
        return self._below(self.node.additional, self._declared.element if self._declared is not None else None)

    def child(self, key: str) -> RuledNode | None:
        """Return the rules of a property, None where there are none."""
        if key in self._children:
            return self._children[key]
        node = self.node.properties.get(key)
        known = self._field(key) if node is not None and node.has_rules else None
        self._children[key] = found = self._below(node, known)
        return found

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The properties below which there are rules."""
        return tuple(key for key, node in self.node.properties.items() if node.has_rules)

    @cached_property
    def looking_back(self) -> tuple[str, ...]:
        """The properties below which there are rules that look at the old value."""
        return tuple(key for key in self.keys if self.node.properties[key].has_transitions)

    def _field(self, key: str) -> Declared | None:
        if self._declared is not None:
            for field in self._declared.fields.values():
                if field.key == key:
                    return field.value
        return None

    def _below(self, node: Node | None, known: Declared | None) -> RuledNode | None:
        if node is None or not node.has_rules:
            return None
        return RuledNode(node, known if known is not None else _declared(node))


def ruled(root: Node) -> RuledNode | None:
    """Return the rules of a schema, None where there are none."""
    return RuledNode(root, _declared(root)) if root.has_rules else None


def _declared(node: Node) -> Declared | None:
    return declared(node.schema, root=node.is_root or node.embedded, resolve=node.structure.resolve)


def _compiled(node: Node, source: Tree, known: Declared | None) -> Rule:
    field = ""
    if source.get("fieldPath"):
        try:
            field = field_path(source["fieldPath"], node).text
        except FieldPathError:
            field = ""
    if known is None:
        return Rule(node, source, field, problem="failed to convert to declType for CEL validation rules")
    environment = Environment.of_schema(known, optional_old=bool(source.get("optionalOldSelf")))
    try:
        program = Program.compile(source["rule"], environment)
    except CelCompileError as error:
        return Rule(node, source, field, problem=f"compilation failed: {error}")
    message: Program | None = None
    if source.get("messageExpression"):
        try:
            message = Program.compile(source["messageExpression"], environment)
        except CelCompileError:
            message = None
    return Rule(node, source, field, program, message)


# ----------------------------------------------------------------------------------------------- evaluation


def evaluate(
    ruled_node: RuledNode, value: Any, path: Path, errors: list[FieldError], old: Any = NOTHING, anchor: tuple[Any, Any] | None = None
) -> None:
    """Evaluate the rules of a value and of all below it.

    `old` is the comparable value before an update, or `NOTHING`. `anchor` is the nearest value on the way here (new and old) that can be
    compared: where those are equal, broken rules that do not look back are forgiven.
    """
    if value is None:
        return
    node = ruled_node.node
    unchanged = value is old
    if unchanged and not node.has_transitions:
        return
    for rule in ruled_node.rules:
        _apply(rule, value, path, errors, old, anchor)
    if type(value) is dict:
        before: Any = old if type(old) is dict else {}
        for key in ruled_node.looking_back if unchanged else ruled_node.keys:
            if key in value:
                child = ruled_node.child(key)
                if child is not None:
                    _descend(child, value[key], (path, ".", key), errors, before.get(key, NOTHING), anchor)
        if ruled_node.additional is not None:
            for key, each in value.items():
                if key not in node.properties:
                    _descend(ruled_node.additional, each, (path, "{", key), errors, before.get(key, NOTHING), anchor)
    elif type(value) is list and ruled_node.items is not None:
        if unchanged and node.list_type != "map":
            return
        before_item = _itself if unchanged else by_keys(node, old)
        for place, each in enumerate(value):
            _descend(ruled_node.items, each, (path, "[", place), errors, before_item(each), anchor)


def _itself(item: Any) -> Any:
    return item


def _descend(child: RuledNode, value: Any, path: Path, errors: list[FieldError], old: Any, anchor: tuple[Any, Any] | None) -> None:
    evaluate(child, value, path, errors, old, anchor if old is NOTHING else (value, old))


def _apply(rule: Rule, value: Any, path: Path, errors: list[FieldError], old: Any, anchor: tuple[Any, Any] | None) -> None:
    program = rule.program
    if program is None:
        errors.append(invalid(keyed(path), rule.type, f"rule compile error: {rule.problem}"))
        return
    looks_back = rule.looks_back
    if looks_back and (old is NOTHING or old is None) and not rule.optional_old:
        return
    args = _arguments(program, value, old, optional=rule.optional_old)
    try:
        if program.call(*args) is True:
            return
    except CelEvaluationError as error:
        errors.append(_failed(rule, path, str(error)))
        return
    if not looks_back and anchor is not None and (anchor[0] is anchor[1] or anchor[0] == anchor[1]):
        return
    errors.append(_broken(rule, value, path, old))


def _arguments(program: Program, value: Any, old: Any, *, optional: bool) -> tuple[Any, ...]:
    names = program.parameters
    if names == _SELF:
        return (value,)
    if optional:
        old = NONE if old is NOTHING or old is None else some(old)
    return (old, value) if len(names) == 2 else (old,) if names else ()


def _said(rule: Rule) -> str:
    return str(rule.source.get("message") or rule.source["rule"]).strip()


def _failed(rule: Rule, path: Path, problem: str) -> FieldError:
    if problem.startswith("no such overload"):
        detail = f"'{problem}': call arguments did not match a supported operator, function or macro signature for rule: {_said(rule)}"
    else:
        detail = f"{problem} evaluating rule: {_said(rule)}"
    return invalid(keyed(path), rule.type, detail)


def _broken(rule: Rule, value: Any, path: Path, old: Any) -> FieldError:
    where = keyed(path)
    if rule.field:
        where = rule.field if not path else f"{where}{rule.field}" if rule.field.startswith("[") else f"{where}.{rule.field}"
    detail = _message(rule, value, old)
    reason = rule.source.get("reason")
    shows = type(value) not in {dict, list}
    if reason == "FieldValueForbidden":
        return forbidden(where, detail)
    if reason == "FieldValueRequired":
        return required(where, detail)
    if reason == "FieldValueDuplicate":
        return duplicate(where, value) if shows else FieldError("FieldValueDuplicate", where, "Duplicate value")
    return invalid(where, value, detail) if shows else invalid_omitted(where, detail)


def _message(rule: Rule, value: Any, old: Any) -> str:
    """Return the text of a broken rule: its expression's where that gives one line, its message, or the rule itself."""
    if rule.message is not None:
        try:
            text = rule.message.call(*_arguments(rule.message, value, old, optional=rule.optional_old))
        except CelEvaluationError:
            text = None
        if isinstance(text, str):
            text = text.strip()
            if text and len(text.encode()) <= MAX_MESSAGE and "\n" not in text:
                return text
    message = rule.source.get("message")
    return str(message).strip() if message else f"failed rule: {rule.source['rule'].strip()}"
