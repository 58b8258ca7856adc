"""What Go's decoder says of an object of a kind that we own: a webhook that is written in Go reads an object before it does anything else.

Asked only where something is wrong with an object anyway, so that models are imported only then.
"""

from __future__ import annotations

from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from kubemini.api.operators import OWNED_KINDS
from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.machinery.quantity import WRONG_FORMAT, QuantityError, parse
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.machinery.schema.mismatch import Mismatch, found
from kubemini.machinery.schema.nodes import Compiler
from kubemini.machinery.schema.scalars import boolean, int32, int64, named_string

_KNOWN = ("apiVersion", "kind", "metadata")
"""The API server has looked at these itself."""
_WHOLE = {int: "int", str: "string", bool: "bool"}


def undecodable(group: str, kind: str, obj: Tree) -> str:
    """Return why Go cannot decode an object in its stored version, in Go's words; "" where it can, and for a kind that is not ours."""
    owned = next((each for each in OWNED_KINDS if (each.group, each.kind) == (group, kind)), None)
    if owned is None:
        return ""
    version = owned.versions[0]
    module, _, name = version.model.partition(":")
    try:
        _Decoder(version.name).model(getattr(import_module(module), name), {key: value for key, value in obj.items() if key not in _KNOWN})
    except Mismatch as mismatch:
        return mismatch.text()
    return ""


class _Decoder:
    """Holds values against the types of models; `package` is that of the Go types. Every method raises `Mismatch`."""

    def __init__(self, package: str) -> None:
        from kubemini.api.meta.markers import BuiltIn, IntOrStringType

        self._package = package
        self._marks = (BuiltIn, IntOrStringType)
        self._builtin = Compiler(builtin_schemas(DEFAULT_VERSION), defaulting=False)

    def model(self, model: Any, tree: Any) -> None:
        """Check an object. Fields come in the order of their names, in which the API server writes them."""
        if not isinstance(tree, dict):
            raise Mismatch(found(tree), f"{self._package}.{model.__name__}")
        hints = get_type_hints(model, include_extras=True)
        types = {field.alias or name: hints[name] for name, field in model.model_fields.items()}
        for key in sorted(tree):
            if key in types:
                try:
                    self._value(types[key], tree[key])
                except Mismatch as mismatch:
                    mismatch.within(model.__name__, key)
                    raise

    def _value(self, hint: Any, value: Any, marks: tuple[Any, ...] = ()) -> None:
        if value is None:
            return
        origin, args = get_origin(hint), get_args(hint)
        if origin is Annotated:
            self._value(args[0], value, (*marks, *args[1:]))
        elif mark := next((each for each in marks if isinstance(each, self._marks)), None):
            self._marked(mark, value)
        elif origin in (Union, UnionType):
            self._value(next(each for each in args if each is not NoneType), value, marks)
        elif origin is list:
            if not isinstance(value, list):
                raise Mismatch(found(value), f"[]{self._name(args[0])}")
            for each in value:
                self._value(args[0], each)
        elif origin is dict:
            if not isinstance(value, dict):
                raise Mismatch(found(value), f"map[string]{self._name(args[1])}")
            for key in sorted(value):
                self._value(args[1], value[key])
        elif origin is Literal or hint is str:
            named_string("string")(value)
        elif hint is bool:
            boolean(value)
        elif hint is int:
            _integer(value, next((each.name for each in marks if hasattr(each, "name")), "int"))
        elif hasattr(hint, "model_fields"):
            self.model(hint, value)

    def _marked(self, mark: Any, value: Any) -> None:
        if hasattr(mark, "definition"):
            api, _, kind = mark.definition.removeprefix("io.k8s.api.").rpartition(".")
            self._builtin.object(f"{api.replace('.', '/')}.{kind}").value(value)
        elif mark.pattern:
            try:
                parse(value if isinstance(value, str) else str(value))
            except QuantityError:
                raise Mismatch.plain(WRONG_FORMAT) from None
        elif not isinstance(value, str):
            int32(value)

    def _name(self, hint: Any) -> str:
        """Return the Go type of a list's or map's elements."""
        while get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        return _WHOLE.get(hint) or (f"{self._package}.{hint.__name__}" if hasattr(hint, "model_fields") else "string")


def _integer(value: Any, go_type: str) -> None:
    try:
        (int32 if go_type == "int32" else int64)(value)
    except Mismatch as mismatch:
        raise Mismatch(mismatch.found, go_type) from None
