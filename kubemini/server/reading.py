"""Get, list and watch: the read half of the request path, in process and behind HTTP alike."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Any

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery import errors
from kubemini.machinery.errors import BadRequest, Expired, Invalid, NotFound, Timeout, forbidden, not_supported
from kubemini.machinery.fields import FieldSelector, parse_fields
from kubemini.machinery.gotext import parse_uint, quoted
from kubemini.machinery.labels import Selector, parse_selector
from kubemini.machinery.schema.body import BodyError
from kubemini.machinery.schema.text import parse_json
from kubemini.runtime.env import Env
from kubemini.server.admission import Chain
from kubemini.server.objectmeta import key_of
from kubemini.server.options import EVERYTHING, Listing, ListOptions
from kubemini.server.registry import Kind, Registry, Served
from kubemini.store import Compacted, FutureRevision, Record, Store, Watch

Predicate = Callable[[Tree], bool]
SHORT = 64
"""A list of at most so many objects is kept until its table changes, and so many lists."""

_LABEL_INDEX = "label:"
_FIELD_INDEX = "field:"
_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
INDEXED_FIELDS = {"spec.nodeName"}
"""Selectable fields worth an index: a node's pods are asked for all the time."""


class StoreReader:
    """Synchronous reads for strategies and admission."""

    __slots__ = ("_lists", "_store", "_tables")

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tables = store.tables
        self._lists: dict[tuple[str, str], tuple[int, Sequence[Tree]]] = {}
        """Short lists and the state of the table (its log's end) that they show."""

    def get(self, resource: str, namespace: str, name: str) -> Tree | None:
        """Return an object in its storage version, or None."""
        table = self._tables.get(resource)
        if table is None:
            return None
        record: Record | None = table.records.get(f"{namespace}/{name}" if namespace else name)
        return record.obj if record is not None else None

    def list(self, resource: str, namespace: str = "") -> Sequence[Tree]:
        """Return the objects of a resource in key order."""
        table = self._tables.get(resource)
        # Admission asks for limits, quotas and default classes with every pod; most clusters have none or few, which seldom change.
        if table is None or not table.records:
            return ()
        known = self._lists.get((resource, namespace))
        state = table.log.end
        if known is not None and known[0] == state:
            return known[1]
        found = [record.obj for record in table.values(f"{namespace}/" if namespace else "")]
        if len(found) <= SHORT:
            if len(self._lists) >= SHORT:
                self._lists.clear()
            self._lists[resource, namespace] = (state, found)
        return found

    def starting(self, resource: str, namespace: str, prefix: str) -> Sequence[Tree]:
        """Return the objects of a namespace whose names start with `prefix`, in key order."""
        return [record.obj for record in self._store.table(resource).values(f"{namespace}/{prefix}")]

    def feed(self, resource: str) -> StoreFeed:
        """Return a cursor over the changes of a resource from now on."""
        return StoreFeed(self._store.table(resource).watch())


class StoreFeed:
    """The changes of a resource, for admission that keeps sums."""

    __slots__ = ("_watch",)

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def poll(self) -> list[tuple[Tree | None, Tree | None]] | None:
        """Return (before, after) of each change since the last call; None when the history no longer reaches back."""
        if not self._watch.ready:
            return []
        try:
            changes = [event.change for event in self._watch.poll()]
        except Compacted:
            return None
        return [
            (each.old.obj if each.old is not None else None, each.new.obj if each.new is not None else None) for each in changes if each is not None
        ]


class WatchStart:
    """An opened watch: `initial` records to show as ADDED first, then `cursor`; `mark_initial` asks for the initial-events bookmark between the two."""

    __slots__ = ("cursor", "initial", "mark_initial", "revision")

    def __init__(self, initial: list[Record], cursor: Watch, revision: int, *, mark_initial: bool) -> None:
        self.initial = initial
        self.cursor = cursor
        self.revision = revision
        self.mark_initial = mark_initial


class Reading:
    """The state of an API server, and what reads need of it."""

    def __init__(self, *, store: Store, registry: Registry, env: Env, chain: Chain) -> None:
        self.store = store
        self.registry = registry
        self.env = env
        self.chain = chain
        self.reader = StoreReader(store)

    # ------------------------------------------------------------------ get

    def live(self, kind: Kind, namespace: str, name: str) -> Record:
        """Return the live record of an object. Raise `NotFound`."""
        record = self.store.table(kind.storage).get(key_of(kind, namespace, name))
        if record is None:
            raise NotFound.of(kind.plural, kind.group, name)
        return record

    def get(self, served: Served, namespace: str, name: str, *, resource_version: str = "") -> Record:
        """Return a stored object; `resource_version` asks for a state not older than it. Raise `NotFound`, `Timeout`, `ServerError`."""
        if resource_version and resource_version != "0":
            asked = _revision(resource_version, errors.ServerError, "")
            if asked > self.store.revision:
                raise Timeout.future_revision(asked, self.store.revision)
        return self.live(served.kind, namespace, name)

    # ------------------------------------------------------------------ list

    def selection(self, served: Served, options: ListOptions) -> tuple[Predicate | None, tuple[str, str] | None]:
        """Return the predicate of an options' selectors over *stored* trees, and an index lookup that narrows it. Raise `BadRequest`."""
        labels = parse_selector(options.label_selector) if options.label_selector else None
        fields = parse_fields(options.field_selector) if options.field_selector else None
        return self.selection_of(served, labels, fields)

    def selection_of(self, served: Served, labels: Selector | None, fields: FieldSelector | None) -> tuple[Predicate | None, tuple[str, str] | None]:
        """The same from parsed selectors."""
        kind = served.kind
        tests: list[Predicate] = []
        index: tuple[str, str] | None = None
        if labels is not None and not labels.empty:
            matches = labels.matches
            tests.append(lambda obj: matches(obj["metadata"].get("labels") or {}))
            for key, value in labels.equalities:
                index = (self._label_index(kind, key), value)
                break
        if fields is not None:
            for path, wanted, equal in fields.terms:
                getter = self._field(kind, path)
                tests.append(lambda obj, getter=getter, wanted=wanted, equal=equal: (getter(obj) == wanted) is equal)  # type: ignore[misc]
                if equal and path in INDEXED_FIELDS:
                    index = (self._field_index(kind, path, getter), wanted)
        if not tests:
            return None, None
        if len(tests) == 1:
            return tests[0], index
        return (lambda obj: all(test(obj) for test in tests)), index

    def _field(self, kind: Kind, path: str) -> Callable[[Tree], str]:
        if path == "metadata.name":
            return _name
        if path == "metadata.namespace":
            return _namespace
        getter = kind.strategy.fields.get(path)
        if getter is None:
            if kind.custom or kind.strategy.fields:
                raise BadRequest(kind.strategy.unsupported_field.format(path))
            raise BadRequest(f'"{path}" is not a known field selector: only "metadata.name", "metadata.namespace"')
        return getter

    def _label_index(self, kind: Kind, key: str) -> str:
        name = _LABEL_INDEX + key

        def values(obj: Tree) -> tuple[str, ...]:
            value = (obj["metadata"].get("labels") or {}).get(key)
            return () if value is None else (value,)

        self.store.table(kind.storage).add_index(name, values)
        return name

    def _field_index(self, kind: Kind, path: str, getter: Callable[[Tree], str]) -> str:
        name = _FIELD_INDEX + path
        self.store.table(kind.storage).add_index(name, lambda obj: (getter(obj),))
        return name

    def list(self, served: Served, namespace: str = "", options: ListOptions = EVERYTHING) -> Listing:
        """Return one page of a list with Kubernetes' resourceVersion and continue semantics. Raise `BadRequest`, `Invalid`, `Expired`, `Timeout`."""
        _check_list(options)
        predicate, index = self.selection(served, options)
        prefix = f"{namespace}/" if namespace and served.kind.namespaced else ""
        start, at = "", self._list_revision(options)
        if options.continue_token:
            start, at = _read_token(options.continue_token)
            start = prefix + start if prefix else start
        table = self.store.table(served.kind.storage)
        limit = 0 if options.resource_version == "0" and not options.continue_token else options.limit
        try:
            page = table.list(prefix, start=start, limit=limit, predicate=predicate, index=index, at=at)
        except Compacted:
            if options.continue_token:
                raise _expired_continue(start[len(prefix) :]) from None
            raise Expired("The resourceVersion for the provided list is too old.") from None
        except FutureRevision as future:
            raise Timeout.future_revision(future.asked, future.current) from None
        revision = self.store.revision if at is None else at
        token = _token(revision, page.next_key[len(prefix) :]) if page.next_key else ""
        return Listing(page.records, revision, token, page.remaining if token else None)

    def _list_revision(self, options: ListOptions) -> int | None:
        text = options.resource_version
        if not text or text == "0" or options.continue_token:
            return None
        asked = _revision(text, BadRequest, "invalid resource version: ")
        match = options.resource_version_match
        if match == "Exact" or (not match and options.limit):
            return asked
        if asked > self.store.revision:
            raise Timeout.future_revision(asked, self.store.revision)
        return None

    # ------------------------------------------------------------------ watch

    def watch(self, served: Served, namespace: str = "", options: ListOptions = EVERYTHING) -> WatchStart:
        """Open a watch. The snapshot and the cursor are taken at one revision. Raise `Expired` (to be sent as an ERROR event), `Invalid`, `BadRequest`."""
        _check_watch(options)
        predicate, index = self.selection(served, options)
        prefix = f"{namespace}/" if namespace and served.kind.namespaced else ""
        table = self.store.table(served.kind.storage)
        text = options.resource_version
        sends_initial = options.send_initial_events
        from_start = sends_initial or (sends_initial is None and text in ("", "0"))
        if text and text != "0":
            asked = _revision(text, errors.ServerError, "")
            if sends_initial and asked > self.store.revision:
                raise Timeout.future_revision(asked, self.store.revision)
        else:
            asked = self.store.revision
        if from_start:
            page = table.list(prefix, predicate=predicate, index=index)
            revision = self.store.revision
            return WatchStart(page.records, table.watch(prefix=prefix, predicate=predicate), revision, mark_initial=options.bookmarks)
        try:
            cursor = table.watch(asked, prefix=prefix, predicate=predicate)
        except Compacted as gone:
            raise Expired(f"too old resource version: {gone.asked} ({gone.oldest})") from None
        return WatchStart([], cursor, asked, mark_initial=False)


def _name(obj: Tree) -> str:
    name: str = obj["metadata"]["name"]
    return name


def _namespace(obj: Tree) -> str:
    namespace: str = obj["metadata"].get("namespace", "")
    return namespace


def _revision(text: str, error: type[errors.ApiStatus], head: str) -> int:
    try:
        return parse_uint(text)
    except ValueError as problem:
        raise error(f"{head}resourceVersion: Invalid value: {quoted(text)}: {problem}") from None


def _token(revision: int, start: str) -> str:
    return base64.urlsafe_b64encode(orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})).rstrip(b"=").decode()


def _read_token(token: str) -> tuple[str, int | None]:
    """Return where a list goes on, and the revision that it shows, None for the present one. Raise `BadRequest`."""
    bad = next((at for at, char in enumerate(token) if char not in _BASE64), len(token) - 1 if len(token) % 4 == 1 else -1)
    if bad >= 0:
        raise BadRequest(f"continue key is not valid: illegal base64 data at input byte {bad}")
    try:
        body: Any = parse_json(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))[0]
    except BodyError as problem:
        raise BadRequest(f"continue key is not valid: {problem}") from None
    found: Tree = body if isinstance(body, dict) else {}
    if found.get("v") != "meta.k8s.io/v1":
        raise BadRequest(f"continue key is not valid: server does not recognize this encoded version {found.get('v', '')}")
    revision, start = found.get("rv"), found.get("start")
    if not isinstance(revision, int) or not revision:
        raise BadRequest("continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise BadRequest("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")
    return start.rstrip("\0"), None if revision == -1 else revision


def _expired_continue(start: str) -> Expired:
    return Expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the "
        "continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
        "that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        metadata={"continue": _token(-1, start)},
    )


def _check_list(options: ListOptions) -> None:
    version, match = options.resource_version, options.resource_version_match
    problems = []
    if options.continue_token and version not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    if match:
        if not version:
            problems.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden unless resourceVersion is provided"))
        if options.continue_token:
            problems.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
        if match not in ("Exact", "NotOlderThan"):
            problems.append(not_supported("resourceVersionMatch", match, ("Exact", "NotOlderThan", "")))
        elif match == "Exact" and version == "0":
            problems.append(forbidden("resourceVersionMatch", 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    if options.send_initial_events is not None:
        problems.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if problems:
        raise Invalid.of("ListOptions", "meta.k8s.io", "", problems)


def _check_watch(options: ListOptions) -> None:
    match = options.resource_version_match
    problems = []
    if options.send_initial_events is not None:
        if match != "NotOlderThan":
            problems.append(forbidden("resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
            if match:
                problems.append(not_supported("resourceVersionMatch", match, ("NotOlderThan",)))
    elif match:
        problems.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
    if problems:
        raise Invalid.of("ListOptions", "meta.k8s.io", "", problems)
