"""The functions an expression may call: their signatures, and who answers.

A library function is declared where it is written, by its CEL signature:

    @function("(string).charAt(int) -> string", "string_char_at_int")
    def char_at(text: str, place: int) -> str: ...

Single capital letters are type parameters. The overload's name is cel-go's; cost rules and the compiler know overloads by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from kubemini.machinery.cel.types import SCALARS, TYPE, Type, list_of, map_of, optional_of, type_of
from kubemini.machinery.cel.values import no_such_overload, type_name

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a function; a method's first parameter is its target."""

    id: str
    function: str
    member: bool
    params: tuple[Type, ...]
    result: Type
    answer: Callable[..., Any]

    def accepts(self, args: tuple[Any, ...]) -> bool:
        """Tell whether values fit at run time (by their outer types)."""
        return len(args) == len(self.params) and all(map(_matches, self.params, args))


_FUNCTIONS: dict[str, list[Overload]] = {}
_signature = re.compile(r"(?:\((?P<target>[^.]+(?:\([^)]*\))?)\)\.)?(?P<name>[@\w.!?:\[\]+*/%<>=&|-]+)\((?P<params>.*)\) -> (?P<result>.+)").fullmatch
OPAQUE = {
    "Quantity": "kubernetes.Quantity",
    "URL": "kubernetes.URL",
    "IP": "net.IP",
    "CIDR": "net.CIDR",
    "Semver": "kubernetes.Semver",
    "Format": "kubernetes.NamedFormat",
    "Authorizer": "kubernetes.authorization.Authorizer",
    "PathCheck": "kubernetes.authorization.PathCheck",
    "GroupCheck": "kubernetes.authorization.GroupCheck",
    "ResourceCheck": "kubernetes.authorization.ResourceCheck",
    "Decision": "kubernetes.authorization.Decision",
}
"""The library's own types: short names of signatures and what CEL calls them."""


def function(signature: str, overload: str) -> Callable[[F], F]:
    """Declare one signature of a library function."""

    def declare(answer: F) -> F:
        declare_overload(signature, overload, answer)
        return answer

    return declare


def declare_overload(signature: str, overload: str, answer: Callable[..., Any]) -> None:
    """Declare one signature of a function that is defined elsewhere."""
    found = _signature(signature)
    assert found is not None, signature
    params = [found["target"]] if found["target"] else []
    params += _split(found["params"])
    _FUNCTIONS.setdefault(found["name"], []).append(
        Overload(overload, found["name"], bool(found["target"]), tuple(map(parsed_type, params)), parsed_type(found["result"]), answer)
    )


def overloads(name: str) -> list[Overload]:
    """Return the signatures of a function, none for an unknown one."""
    if not _FUNCTIONS:
        import_module("kubemini.machinery.cel.library")  # importing it declares the functions
    return _FUNCTIONS.get(name, [])


def dispatch(name: str, args: tuple[Any, ...], *, member: bool) -> Any:
    """Call the overload that fits the values: for what the checker could not decide."""
    for each in overloads(name):
        if each.member == member and each.accepts(args):
            return each.answer(*args)
    raise no_such_overload()


def parsed_type(text: str) -> Type:
    """Return the type that a signature names: ``string``, ``list(A)``, ``map(K, V)``, ``optional(V)``, ``Quantity``."""
    text = text.strip()
    name, bracket, rest = text.partition("(")
    if bracket:
        params = tuple(map(parsed_type, _split(rest[:-1])))
        if name == "list":
            return list_of(params[0])
        if name == "map":
            return map_of(params[0], params[1])
        return optional_of(*params) if name == "optional" else type_of(*params)
    if len(text) == 1:
        return Type("param", text)
    if text == "type":
        return TYPE
    return SCALARS[text] if text in SCALARS else _OPAQUE_TYPES[text]


_OPAQUE_TYPES = {short: Type("opaque", name) for short, name in OPAQUE.items()}


def _split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    out: list[str] = []
    depth = 0
    for char in text:
        if char == "," and depth == 0:
            out.append("")
            continue
        depth += (char == "(") - (char == ")")
        if not out:
            out.append("")
        out[-1] += char
    return out


_RUN_TIME = {
    "bool": "bool",
    "int": "int",
    "uint": "uint",
    "double": "double",
    "string": "string",
    "bytes": "bytes",
    "null_type": "null_type",
    "list": "list",
    "map": "map",
    "type": "type",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}


def _matches(wanted: Type, value: Any) -> bool:
    if wanted.kind in {"param", "dyn"}:
        return True
    name = type_name(value)
    if wanted.kind == "opaque":
        return name == wanted.name
    if name != _RUN_TIME.get(wanted.kind):
        return False
    if wanted.kind == "list" and value:
        return all(_matches(wanted.params[0], each) for each in value)
    return True
