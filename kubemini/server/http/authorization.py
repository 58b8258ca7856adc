"""May the caller do what the request asks? RBAC in front of every request that is not an administrator's. Mirrors apiserver's RequestInfo (1.36)."""

from __future__ import annotations

from typing import Final

from kubemini.machinery.errors import ApiStatus, Forbidden
from kubemini.machinery.fields import parse_fields
from kubemini.server.http.bodies import Query, truth
from kubemini.server.http.paths import ResourcePath
from kubemini.server.kinds.groups.authorizing import BINDINGS, CLUSTER_BINDINGS, CLUSTER_ROLES, MASTERS, ROLES, Attributes, decide, refusal
from kubemini.server.options import Caller
from kubemini.server.reading import StoreReader
from kubemini.store import Store

_VERBS: Final = {"GET": "get", "HEAD": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_REMEMBERED: Final = 4096


class Authorizer:
    """Asks RBAC, and remembers the answers for as long as no role or binding changes."""

    def __init__(self, store: Store, reader: StoreReader) -> None:
        self._tables = [store.table(name) for name in (ROLES, CLUSTER_ROLES, BINDINGS, CLUSTER_BINDINGS)]
        self._reader = reader
        self._seen = -1
        self._answers: dict[tuple[str, tuple[str, ...], Attributes], bool] = {}

    def allowed(self, caller: Caller, wanted: Attributes) -> bool:
        """Tell whether a caller may do something."""
        if MASTERS in caller.groups:
            return True
        seen = sum(table.log.end for table in self._tables)
        if seen != self._seen or len(self._answers) >= _REMEMBERED:
            self._seen = seen
            self._answers.clear()
        key = (caller.user, caller.groups, wanted)
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = decide(self._reader, caller.user, caller.groups, wanted).allowed
        return found

    def check(self, caller: Caller, wanted: Attributes) -> None:
        """Raise `Forbidden` where a caller may not do something."""
        if not self.allowed(caller, wanted):
            raise refused(caller.user, wanted)


def refused(user: str, wanted: Attributes) -> Forbidden:
    """Return the refusal of what a user may not do."""
    text = refusal(user, wanted)
    if wanted.path:
        return Forbidden(f"forbidden: {text}")
    return Forbidden.of(wanted.resource, wanted.group, wanted.name, text)


def of_path(method: str, path: str) -> Attributes:
    """Return what a request for a document outside the resource space wants."""
    return Attributes(method.lower(), path=path)


def of_resource(method: str, where: ResourcePath, query: Query) -> Attributes:
    """Return what a request for a resource wants."""
    verb, name, namespace = _VERBS.get(method, method.lower()), where.name, where.namespace or ""
    if where.plural == "namespaces" and not where.group and not namespace:
        namespace = name
    if not name or where.watch:
        if method in ("GET", "HEAD"):
            verb = "watch" if where.watch or truth(query, "watch") else "list"
            name = name or _selected_name(query)
        elif verb == "delete":
            verb = "deletecollection"
    return Attributes(verb, where.group, where.plural, where.subresource, name, namespace)


def _selected_name(query: Query) -> str:
    """Return the one name that a field selector asks for: a rule with resourceNames may allow it."""
    text = query.get("fieldSelector", "")
    if "metadata.name" not in text:
        return ""
    try:
        terms = parse_fields(text).terms
    except ApiStatus:
        return ""
    return next((wanted for path, wanted, equal in terms if path == "metadata.name" and equal), "")
