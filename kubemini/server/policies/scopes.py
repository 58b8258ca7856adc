"""What the expressions of webhooks and policies may name, and what those names mean for a request.

Mirrors ``apiserver/pkg/admission/plugin/cel`` (1.36): the types that an expression is checked with when it is stored, and the permissions of who asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from kubemini.machinery.cel import Environment
from kubemini.machinery.cel.library.authorization import Authorizer, ResourceCheck
from kubemini.machinery.cel.overloads import OPAQUE
from kubemini.machinery.cel.types import BOOL, DYN, STRING, Declared, Field, Type, list_of, map_of
from kubemini.server.admission import AdmissionRequest
from kubemini.server.kinds.groups.authorizing import Attributes, decide

AUTHORIZER: Final[Mapping[str, Type]] = {
    "authorizer": Type("opaque", OPAQUE["Authorizer"]),
    "authorizer.requestResource": Type("opaque", OPAQUE["ResourceCheck"]),
}

SCOPE: Final = Environment({**dict.fromkeys(("object", "oldObject", "request", "namespaceObject", "params", "variables"), DYN), **AUTHORIZER})
"""What an expression is evaluated with."""


def _object(name: str, /, **fields: Type) -> Type:
    return Declared(Type("object", name), min_size=2, fields={key: Field(key, _node(found)) for key, found in fields.items()}).type


def _node(found: Type) -> Declared:
    node = Declared(DYN, min_size=1)
    node.type = found
    return node


def _request() -> Type:
    kind = _object("kubernetes.GroupVersionKind", group=STRING, version=STRING, kind=STRING)
    resource = _object("kubernetes.GroupVersionResource", group=STRING, version=STRING, resource=STRING)
    strings = list_of(STRING)
    user = _object("kubernetes.UserInfo", username=STRING, uid=STRING, groups=strings, extra=map_of(STRING, strings))
    return _object(
        "kubernetes.AdmissionRequest",
        kind=kind,
        resource=resource,
        subResource=STRING,
        requestKind=kind,
        requestResource=resource,
        requestSubResource=STRING,
        name=STRING,
        namespace=STRING,
        operation=STRING,
        userInfo=user,
        dryRun=BOOL,
        options=DYN,
    )


REQUEST: Final = _request()
"""The type of ``request``."""


def checked(*, params: bool, authorizer: bool = True, variables: Mapping[str, Type] | None = None, patches: bool = False) -> Environment:
    """Return what an expression is checked with: `variables` are the composed ones before it with their types, None where there can be none."""
    if not variables:
        return _plain(params, authorizer, variables is not None, patches)
    return _environment(params, authorizer, _object("kubernetes.variables", **variables), patches)


@lru_cache(maxsize=16)
def _plain(params: bool, authorizer: bool, variables: bool, patches: bool) -> Environment:
    return _environment(params, authorizer, _object("kubernetes.variables") if variables else None, patches)


def _environment(params: bool, authorizer: bool, variables: Type | None, patches: bool) -> Environment:
    known: dict[str, Type] = {"object": DYN, "oldObject": DYN, "request": REQUEST, "namespaceObject": DYN}
    if params:
        known["params"] = DYN
    if authorizer:
        known |= AUTHORIZER
    if variables is not None:
        known["variables"] = variables
    return Environment(known, patches=patches)


def permissions(request: AdmissionRequest, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of `AUTHORIZER` for a request, of which `attributes` is how a policy sees it."""
    ctx = request.ctx

    def ask(user: str, groups: tuple[str, ...], wanted: Mapping[str, str]) -> tuple[bool, str]:
        decision = decide(ctx.reader, user, groups, Attributes(**wanted))
        return decision.allowed, decision.reason

    authorizer = Authorizer(ctx.user, ctx.groups, ask)
    resource = attributes["resource"]
    return {
        "authorizer": authorizer,
        "authorizer.requestResource": ResourceCheck(
            authorizer,
            resource["group"],
            resource["resource"],
            attributes.get("subResource", ""),
            attributes.get("namespace", ""),
            attributes.get("name", ""),
        ),
    }
