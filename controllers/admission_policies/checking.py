"""What a policy's expressions get wrong about the kinds that it matches. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.controllers.admission_policies.matching import GroupVersionKind
from kubemini.machinery.cel import CelCompileError, Environment, Program
from kubemini.machinery.cel.declared import escape
from kubemini.machinery.cel.overloads import OPAQUE
from kubemini.machinery.cel.types import DYN, Declared, Field, Type

_AUTHORIZER: Mapping[str, Type] = {
    "authorizer": Type("opaque", OPAQUE["Authorizer"]),
    "authorizer.requestResource": Type("opaque", OPAQUE["ResourceCheck"]),
}


class Types(Protocol):
    """Who knows what objects look like."""

    def of(self, kind: GroupVersionKind) -> Declared | None:
        """Return the type of a kind's objects, None where nothing is known about them."""
        ...


def warnings(spec: Tree, kinds: Sequence[GroupVersionKind], types: Types) -> list[Tree]:
    """Return `expressionWarnings`: one for each expression that is wrong about some kind, with the faults by kind."""
    scopes = [(kind, _scope(spec, found, types)) for kind in kinds if (found := types.of(kind)) is not None]
    told: list[Tree] = []
    for number, rule in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            faults = [f"{kind}: {fault}\n" for kind, scope in scopes if (fault := _fault(rule.get(field, ""), scope))]
            if faults:
                told.append({"fieldRef": f"spec.validations[{number}].{field}", "warning": "\n".join(faults)})
    return told


def _fault(expression: str, scope: Environment) -> str:
    if not expression.strip():
        return ""
    try:
        Program.compile(expression, scope)
    except CelCompileError as problem:
        return str(problem)
    return ""


def _scope(spec: Tree, object_: Declared, types: Types) -> Environment:
    """Return what the expressions of a policy may name: the object as it is, the parameters where their kind is known, the rest as it comes."""
    params = _params(spec.get("paramKind"), types)
    known: dict[str, Type] = {
        "object": object_.type,
        "oldObject": object_.type,
        "params": params.type if params is not None else DYN,
        "request": DYN,
        "namespaceObject": DYN,
        **_AUTHORIZER,
    }
    return Environment({**known, "variables": _variables(spec.get("variables") or (), known)})


def _params(kind: Tree | None, types: Types) -> Declared | None:
    if kind is None:
        return None
    group, _, version = kind.get("apiVersion", "").rpartition("/")
    return types.of(GroupVersionKind(group, version, kind.get("kind", "")))


def _variables(variables: Sequence[Tree], known: Mapping[str, Type]) -> Type:
    """Return the type of ``variables``: each is of the type of its expression, and may use those before it."""
    fields: dict[str, Field] = {}
    for each in variables:
        scope = Environment({**known, "variables": Declared(Type("object", "variables"), min_size=2, fields=fields).type})
        try:
            type_ = Program.compile(each["expression"], scope).result
        except CelCompileError:
            type_ = DYN
        value = Declared(DYN, min_size=1)
        value.type = type_
        fields = {**fields, escape(each["name"]) or each["name"]: Field(each["name"], value)}
    return Declared(Type("object", "variables"), min_size=2, fields=fields).type
