"""Events: one stored object, seen through v1 and through events.k8s.io/v1, which name its fields differently.

Mirrors ``pkg/apis/core/validation/events.go`` (1.36).
"""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, invalid, required
from kubemini.server.kinds.core.formats import Errors, wrong
from kubemini.server.kinds.tables import EVENT
from kubemini.server.strategy import Strategy, WriteContext

_RENAMED = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
"""Fields of v1 and their names in events.k8s.io/v1."""
_BACK = {new: old for old, new in _RENAMED.items()}
_LIMIT = 128
_MESSAGE_LIMIT = 1024


def to_new_form(event: Tree) -> Tree:
    """Return a stored event as events.k8s.io/v1 shows it."""
    return {**{_RENAMED.get(key, key): value for key, value in event.items()}, "apiVersion": "events.k8s.io/v1"}


def to_stored_form(event: Tree) -> Tree:
    """Return an event of events.k8s.io/v1 as it is stored."""
    return {**{_BACK.get(key, key): value for key, value in event.items()}, "apiVersion": "v1"}


def _involved(key: str) -> Callable[[Tree], str]:
    def read(event: Tree) -> str:
        return str((event.get("involvedObject") or {}).get(key) or "")

    return read


def _own(key: str) -> Callable[[Tree], str]:
    def read(event: Tree) -> str:
        return str(event.get(key) or "")

    return read


def _source(event: Tree) -> str:
    return str((event.get("source") or {}).get("component") or event.get("reportingComponent") or "")


_KEYS = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_COMMON = {"reason": _own("reason"), "reportingComponent": _own("reportingComponent"), "source": _source, "type": _own("type")}
EVENT_FIELDS = {**{f"involvedObject.{key}": _involved(key) for key in _KEYS}, **_COMMON}
NEW_EVENT_FIELDS = {
    **{f"regarding.{key}": _involved(key) for key in _KEYS},
    **EVENT_FIELDS,
    "reportingController": _own("reportingComponent"),
}


class EventStrategy(Strategy):
    """Events of v1."""

    create_on_update = True
    vouched = ("",)
    table = EVENT
    fields = EVENT_FIELDS

    def validate_name(self, name: str, *, prefix: bool = False) -> str | None:
        """Whatever the object is called that an event is about, its event can be named after it."""
        return names.path_segment(name, prefix=prefix)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check that the event stands in the namespace of its object."""
        return list(_event(obj, "reportingComponent", "involvedObject"))


class NewEventStrategy(EventStrategy):
    """Events of events.k8s.io/v1, which must be complete and leave the old fields alone."""

    fields = NEW_EVENT_FIELDS

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check completeness."""
        return [*_event(obj, "reportingController", "regarding"), *_complete(obj)]

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Only a series may go on."""
        errors = list(_event(new, "reportingController", "regarding"))
        if not old.get("eventTime"):
            return errors
        for key in ("involvedObject", "reason", "message", "action", "reportingComponent", "reportingInstance", "type", "related", "eventTime"):
            if new.get(key) != old.get(key):
                errors.append(invalid(_RENAMED.get(key, key), new.get(key), "field is immutable"))
        return errors


def _event(obj: Tree, component: str, involved: str) -> Errors:
    mine, theirs = obj["metadata"].get("namespace", ""), (obj.get("involvedObject") or {}).get("namespace", "")
    new_style = bool(obj.get("eventTime"))
    if mine != theirs and (theirs or mine not in ("", "default", *(["kube-system"] if new_style else []))):
        yield invalid(f"{involved}.namespace", theirs, "does not match event.namespace")
    if not new_style:
        return
    controller = obj.get("reportingComponent", "")
    if controller:
        yield from wrong(names.qualified_name, controller, component)
    else:
        yield required(component)
    for key in ("reportingInstance", "action", "reason"):
        value = obj.get(key, "")
        if not value:
            yield required(key)
        elif len(value) > _LIMIT:
            yield invalid(key, "", f"can have at most {_LIMIT} characters")
    if len(obj.get("message", "")) > _MESSAGE_LIMIT:
        yield invalid("message", "", f"can have at most {_MESSAGE_LIMIT} characters")


def _complete(obj: Tree) -> Errors:
    if not obj.get("eventTime"):
        yield required("eventTime")
    if obj.get("type") not in ("Normal", "Warning"):
        yield invalid("type", "", f"has invalid value: {obj.get('type', '')}")
    for key in ("firstTimestamp", "lastTimestamp", "count"):
        if obj.get(key):
            yield invalid(key, "", "needs to be unset")
    for key in ("component", "host"):
        if (obj.get("source") or {}).get(key):
            yield invalid("source", "", "needs to be unset")
