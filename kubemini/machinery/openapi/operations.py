"""``paths`` of one group and version: every operation of every resource, with its parameters, bodies and answers.

What clients read here: ``x-kubernetes-group-version-kind`` with ``x-kubernetes-action``, the query parameter ``fieldValidation`` of PATCH
(whether kubectl leaves validation to the server), and the media types of PATCH (whether it may send strategic merge patches).
Named as upstream names them (apiserver, ``pkg/endpoints/installer.go`` and ``pkg/endpoints/openapi``, 1.36).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.openapi.schemas import Schemas
from kubemini.machinery.openapi.served import SchemaSource, ServedKind, ServedSubresource, group_version_path
from kubemini.machinery.schema.definitions import REFERENCE

STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCHES: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_FORMS: Final = ("application/json", "application/yaml")
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_METHODS: Final = {"get": "get", "create": "post", "update": "put", "patch": "patch", "delete": "delete"}
"""Verb of a resource → HTTP method."""
_NAMES: Final = {"get": "read", "create": "create", "update": "replace", "patch": "patch", "delete": "delete"}
"""Verb of a resource → how operations are named."""
_RESULTS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "get": (("200", "OK"),),
    "create": (("200", "OK"), ("201", "Created"), ("202", "Accepted")),
    "update": (("200", "OK"), ("201", "Created")),
    "patch": (("200", "OK"), ("201", "Created")),
    "delete": (("200", "OK"), ("202", "Accepted")),
}


def _query(name: str, kind: str, description: str) -> Tree:
    return {"description": description, "in": "query", "name": name, "schema": {"type": kind, "uniqueItems": True}}


def _in_path(name: str, description: str) -> Tree:
    return {"description": description, "in": "path", "name": name, "required": True, "schema": {"type": "string", "uniqueItems": True}}


_PRETTY: Final = _query("pretty", "string", "If 'true', then the output is pretty printed.")
_NAMESPACE: Final = _in_path("namespace", "object name and auth scope, such as for teams and projects")
_DRY_RUN: Final = _query("dryRun", "string", "When All, every stage runs but nothing is persisted.")
_MANAGER: Final = _query(
    "fieldManager", "string", "Name of the actor that makes these changes; required for apply requests. At most 128 printable characters."
)
_VALIDATION: Final = _query(
    "fieldValidation",
    "string",
    "What is done about unknown and duplicate fields in the body: Ignore drops them silently, Warn (the default) drops them with a warning, Strict refuses the request.",
)
_FORCE: Final = _query(
    "force", "boolean", "Whether an apply request takes over conflicting fields of other managers. Must be unset for other patches."
)
_CONTINUE: Final = _query("continue", "string", "Token of a previous answer, to get what follows.")
_FIELDS: Final = _query("fieldSelector", "string", "A selector to restrict the list of returned objects by their fields. Defaults to everything.")
_LABELS: Final = _query("labelSelector", "string", "A selector to restrict the list of returned objects by their labels. Defaults to everything.")
_LIMIT: Final = _query("limit", "integer", "Maximum number of objects in one answer.")
_VERSION: Final = _query("resourceVersion", "string", "Constraint on the resource versions that a request may be served from.")
_MATCH: Final = _query("resourceVersionMatch", "string", "How resourceVersion is applied to lists: Exact or NotOlderThan.")
_INITIAL: Final = _query("sendInitialEvents", "boolean", "Whether a watch begins with the current objects, followed by a bookmark.")
_TIMEOUT: Final = _query("timeoutSeconds", "integer", "Limits the duration of the call, regardless of any activity or inactivity.")
_GRACE: Final = _query("gracePeriodSeconds", "integer", "Seconds before the object is deleted. Zero means delete immediately.")
_ORPHAN: Final = _query("orphanDependents", "boolean", "Deprecated: use propagationPolicy.")
_PROPAGATION: Final = _query("propagationPolicy", "string", "What happens to dependents: Orphan, Background or Foreground.")
_LIST: Final = (
    _query("allowWatchBookmarks", "boolean", "Whether a watch may send events of type BOOKMARK."),
    _CONTINUE,
    _FIELDS,
    _LABELS,
    _LIMIT,
    _VERSION,
    _MATCH,
    _INITIAL,
    _TIMEOUT,
    _query("watch", "boolean", "Watch for changes and return them as a stream of add, update, and remove notifications."),
)
_PARAMETERS: Final[dict[str, tuple[Tree, ...]]] = {
    "get": (),
    "create": (_DRY_RUN, _MANAGER, _VALIDATION),
    "update": (_DRY_RUN, _MANAGER, _VALIDATION),
    "patch": (_DRY_RUN, _MANAGER, _VALIDATION, _FORCE),
    "delete": (_DRY_RUN, _GRACE, _ORPHAN, _PROPAGATION),
}
_DELETE_LISTED: Final = (_CONTINUE, _DRY_RUN, _FIELDS, _GRACE, _LABELS, _LIMIT, _ORPHAN, _PROPAGATION, _VERSION, _MATCH, _INITIAL, _TIMEOUT)

_STREAMS: Final = (
    _query("command", "string", "The remote command to execute, not run in a shell."),
    _query("container", "string", "Container in which to execute the command. Defaults to the only container of the pod."),
    *(_query(name, "boolean", f"Whether to use {name}.") for name in ("stderr", "stdin", "stdout", "tty")),
)
_CONNECT: Final[dict[str, tuple[Tree, ...]]] = {
    "attach": _STREAMS[1:],
    "exec": _STREAMS,
    "portforward": (_query("ports", "integer", "List of ports to forward; required with WebSockets."),),
    "proxy": (_query("path", "string", "The URL path to use in the proxied request."),),
}
_LOG: Final = (
    _query("container", "string", "The container of which to stream logs. Defaults to the only container of the pod."),
    _query("follow", "boolean", "Whether to follow the log. Defaults to false."),
    _query("limitBytes", "integer", "The number of bytes after which the log ends."),
    _query("previous", "boolean", "Whether to return the log of the previous, terminated container. Defaults to false."),
    _query("sinceSeconds", "integer", "How many seconds back the log starts."),
    _query("tailLines", "integer", "How many lines from the end are returned. Defaults to all."),
    _query("timestamps", "boolean", "Whether each line begins with an RFC3339 timestamp. Defaults to false."),
)


class Operations:
    """Collects the paths of one group and version. `schemas` learns what they refer to."""

    def __init__(self, group: str, version: str, schemas: Schemas) -> None:
        self._group, self._version = group, version
        self._schemas = schemas
        self._root = "/" + group_version_path(group, version)
        short = group.removesuffix(".k8s.io") if group else "core"
        self._prefix = capitalized(short) + capitalized(version)
        self._tags = [f"{joined(short)}_{joined(version)}"]
        self.paths: dict[str, Tree] = {}
        self._add_discovery()

    def _add_discovery(self) -> None:
        resources = self._schemas.type("meta/v1.APIResourceList")
        operation: Tree = {
            "description": "get available resources",
            "operationId": f"get{self._prefix}APIResources",
            "responses": _answers(resources, (("200", "OK"),), (*_FORMS, _PROTOBUF)),
            "tags": self._tags,
        }
        self.paths[f"{self._root}/"] = {"get": operation}

    def add(self, kind: ServedKind, codec: SchemaSource) -> None:
        """Add the paths of a kind and its subresources."""
        if kind.namespaced and "list" in kind.verbs:
            listed = self._list(kind, codec, f"list{self._prefix}{kind.kind}ForAllNamespaces")
            self.paths[f"{self._root}/{kind.plural}"] = {"get": listed, "parameters": [_PRETTY]}
        collection = f"{self._root}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{self._root}/{kind.plural}"
        self._add_collection(kind, codec, collection)
        item = f"{collection}/{{name}}"
        body = self._schemas.kind(kind, codec)
        operations = {_METHODS[verb]: self._operation(kind, verb, body) for verb in ("get", "update", "patch", "delete") if verb in kind.verbs}
        if operations:
            self.paths[item] = {**operations, "parameters": self._place(kind)}
        for subresource in kind.subresources:
            self._add_subresource(kind, subresource, body, f"{item}/{subresource.name}")

    def _add_collection(self, kind: ServedKind, codec: SchemaSource, path: str) -> None:
        scope = "Namespaced" if kind.namespaced else ""
        operations: Tree = {}
        if "deletecollection" in kind.verbs:
            operations["delete"] = self._described(
                kind,
                f"delete collection of {kind.kind}",
                f"delete{self._prefix}Collection{scope}{kind.kind}",
                "deletecollection",
                _DELETE_LISTED,
                _answers(self._schemas.type("meta/v1.Status"), (("200", "OK"),), self._forms(kind)),
                self._options(),
            )
        if "list" in kind.verbs:
            operations["get"] = self._list(kind, codec, f"list{self._prefix}{scope}{kind.kind}")
        if "create" in kind.verbs:
            operations["post"] = self._operation(kind, "create", self._schemas.kind(kind, codec))
        if operations:
            self.paths[path] = {**operations, "parameters": [_NAMESPACE, _PRETTY] if kind.namespaced else [_PRETTY]}

    def _add_subresource(self, kind: ServedKind, subresource: ServedSubresource, parent: str, path: str) -> None:
        if subresource.kind.endswith("Options"):
            self._add_connection(kind, subresource, path)
            return
        place = self._place(kind)
        if subresource.name == "log":
            operation = self._operation(kind, "get", parent, subresource)
            operation["responses"] = _texts(("text/plain", *self._forms(kind)))
            self.paths[path] = {"get": operation, "parameters": [*place, *_LOG]}
            return
        group, version = (subresource.group, subresource.version) if subresource.version else (self._group, self._version)
        own = subresource.kind != kind.kind
        body = (self._schemas.body(group, version, subresource.kind) if own else parent) or parent
        operations = {_METHODS[verb]: self._operation(kind, verb, body, subresource) for verb in subresource.verbs}
        self.paths[path] = {**operations, "parameters": place}

    def _add_connection(self, kind: ServedKind, subresource: ServedSubresource, path: str) -> None:
        paths = (path, f"{path}/{{path}}") if subresource.name == "proxy" else (path,)
        for each in paths:
            below = each != path
            operations: Tree = {}
            for verb in subresource.verbs:
                method = _METHODS[verb]
                name = (
                    f"connect{self._prefix}{method.capitalize()}{_scope(kind)}{kind.kind}{capitalized(subresource.name)}{'WithPath' if below else ''}"
                )
                operations[method] = {
                    "description": f"connect {method.upper()} requests to {subresource.name} of {kind.kind}",
                    "operationId": name,
                    "responses": _texts(("*/*",)),
                    "tags": self._tags,
                    "x-kubernetes-action": "connect",
                    "x-kubernetes-group-version-kind": {"group": self._group, "kind": subresource.kind, "version": self._version},
                }
            more = [_in_path("path", "path to the resource")] if below else []
            self.paths[each] = {**operations, "parameters": [*self._place(kind), *more, *_CONNECT.get(subresource.name, ())]}

    # ------------------------------------------------------------------ operations

    def _list(self, kind: ServedKind, codec: SchemaSource, name: str) -> Tree:
        forms = self._forms(kind)
        streams = tuple(f"{form};stream=watch" for form in forms if "watch" in kind.verbs and form != "application/yaml")
        answers = _answers(self._schemas.list(kind, codec), (("200", "OK"),), (*forms, *streams))
        return self._described(kind, f"list or watch objects of kind {kind.kind}", name, "list", _LIST, answers)

    def _operation(self, kind: ServedKind, verb: str, schema: str, subresource: ServedSubresource | None = None) -> Tree:
        """Return an operation on an object. `schema`: the OpenAPI name of what goes in and comes out."""
        of = f"{subresource.name} of " if subresource else ""
        what = {
            "get": f"read {of}the specified {kind.kind}",
            "update": f"replace {of}the specified {kind.kind}",
            "patch": f"partially update {of}the specified {kind.kind}",
        }.get(verb, f"{verb} {of}{_article(kind.kind)} {kind.kind}")
        name = f"{_NAMES[verb]}{self._prefix}{_scope(kind)}{kind.kind}{capitalized(subresource.name) if subresource else ''}"
        body = {
            "create": lambda: _body(schema, ("*/*",)),
            "update": lambda: _body(schema, ("*/*",)),
            "patch": lambda: _body(self._schemas.patch(), _PATCHES if kind.custom else (*_PATCHES, STRATEGIC)),
            "delete": self._options,
        }.get(verb, dict)()
        answered = self._schemas.type("meta/v1.Status") if verb == "delete" else schema
        answers = _answers(answered, _RESULTS[verb], self._forms(kind))
        return self._described(kind, what, name, _METHODS[verb], _PARAMETERS[verb], answers, body, subresource)

    def _described(
        self,
        kind: ServedKind,
        description: str,
        name: str,
        action: str,
        parameters: Sequence[Tree],
        answers: Tree,
        body: Tree | None = None,
        subresource: ServedSubresource | None = None,
    ) -> Tree:
        group, version = self._group, self._version
        if subresource is not None and subresource.version:
            group, version = subresource.group, subresource.version
        out: Tree = {"description": description, "operationId": name}
        if parameters:
            out["parameters"] = list(parameters)
        if body:
            out["requestBody"] = body
        out["responses"] = answers
        out["tags"] = self._tags
        out["x-kubernetes-action"] = action
        out["x-kubernetes-group-version-kind"] = {"group": group, "kind": subresource.kind if subresource else kind.kind, "version": version}
        return out

    def _options(self) -> Tree:
        return {"content": {"*/*": {"schema": {"$ref": REFERENCE + self._schemas.type("meta/v1.DeleteOptions")}}}}

    @staticmethod
    def _forms(kind: ServedKind) -> tuple[str, ...]:
        return _FORMS if kind.custom else (*_FORMS, _PROTOBUF)

    @staticmethod
    def _place(kind: ServedKind) -> list[Tree]:
        name = _in_path("name", f"name of the {kind.kind}")
        return [name, _NAMESPACE, _PRETTY] if kind.namespaced else [name, _PRETTY]


def _scope(kind: ServedKind) -> str:
    return "Namespaced" if kind.namespaced else ""


def _article(noun: str) -> str:
    return "an" if noun[0] in "AEIOU" else "a"


def _content(schema: str, forms: Iterable[str]) -> Tree:
    referred: Tree = {"schema": {"$ref": REFERENCE + schema}}
    return dict.fromkeys(sorted(forms), referred)


def _body(schema: str, forms: Iterable[str]) -> Tree:
    return {"content": _content(schema, forms), "required": True}


def _answers(schema: str, results: Iterable[tuple[str, str]], forms: Sequence[str]) -> Tree:
    content = _content(schema, forms)
    return {**{code: {"content": content, "description": text} for code, text in results}, "401": {"description": "Unauthorized"}}


def _texts(forms: Iterable[str]) -> Tree:
    content = {form: {"schema": {"type": "string"}} for form in sorted(forms)}
    return {"200": {"content": content, "description": "OK"}, "401": {"description": "Unauthorized"}}


_WORD = re.compile(r"[^A-Za-z0-9_]+(.?)")


def joined(name: str) -> str:
    """Return a name without punctuation, in camel case.

    >>> joined("jobset.x-k8s.io")
    'jobsetXK8sIo'
    """
    return _WORD.sub(lambda found: found[1].upper(), name)


def capitalized(name: str) -> str:
    """Return a name without punctuation, in camel case that begins with a capital."""
    return name[:1].upper() + joined(name)[1:]
