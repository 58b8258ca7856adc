"""Conditions, and a draft of a Workload's status: all changes of one reconcile become one write, and none where nothing changed."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names


def find(obj: Tree, type_: str) -> Tree | None:
    """Return an object's condition, or None."""
    status = obj.get("status")
    if status:
        for condition in status.get("conditions") or ():
            if condition["type"] == type_:
                found: Tree = condition
                return found
    return None


def is_true(obj: Tree, type_: str) -> bool:
    """Tell whether a condition is True."""
    condition = find(obj, type_)
    return condition is not None and condition["status"] == "True"


def is_false(obj: Tree, type_: str) -> bool:
    """Tell whether a condition is there and False."""
    condition = find(obj, type_)
    return condition is not None and condition["status"] == "False"


def reserved(workload: Tree) -> bool:
    """Tell whether a Workload holds quota."""
    return is_true(workload, names.QUOTA_RESERVED)


def admitted(workload: Tree) -> bool:
    """Tell whether a Workload may run."""
    return is_true(workload, names.ADMITTED)


def finished(workload: Tree) -> bool:
    """Tell whether a Workload has ended."""
    return is_true(workload, names.FINISHED)


def evicted(workload: Tree) -> bool:
    """Tell whether a Workload has to give its quota back."""
    return is_true(workload, names.EVICTED)


def active(workload: Tree) -> bool:
    """Tell whether a Workload is not deactivated."""
    return workload["spec"].get("active") is not False


class Draft:
    """A status to be: reads fall through to the object, the first change copies. Works for any kind with conditions."""

    __slots__ = ("_conditions", "_now", "_status", "obj")

    def __init__(self, obj: Tree, now: str) -> None:
        self.obj = obj
        self._now = now
        self._status: Tree | None = None
        self._conditions: list[Tree] | None = None

    # ------------------------------------------------------------------ reading

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field of the status as it will be."""
        status = self._status if self._status is not None else self.obj.get("status") or {}
        return status.get(key, default)

    def condition(self, type_: str) -> Tree | None:
        """Return a condition as it will be."""
        conditions = self._conditions if self._conditions is not None else self.get("conditions") or ()
        for condition in conditions:
            if condition["type"] == type_:
                found: Tree = condition
                return found
        return None

    def is_true(self, type_: str) -> bool:
        """Tell whether a condition will be True."""
        condition = self.condition(type_)
        return condition is not None and condition["status"] == "True"

    # ------------------------------------------------------------------ changing

    def set(self, key: str, value: Any) -> None:
        """Set a field of the status; None removes it."""
        if self.get(key) == value and (value is not None or key not in (self.obj.get("status") or {})):
            return
        if self._status is None:
            self._status = dict(self.obj.get("status") or {})
        if value is None:
            self._status.pop(key, None)
        else:
            self._status[key] = value

    def mark(self, type_: str, status: bool, reason: str, message: str, *, observed: bool = True) -> bool:
        """Set a condition; its transition time moves only when its status does. Tell whether anything changed."""
        value = "True" if status else "False"
        old = self.condition(type_)
        generation = self.obj["metadata"].get("generation", 1) if observed else None
        if old is not None and (old["status"], old["reason"], old["message"], old.get("observedGeneration")) == (value, reason, message, generation):
            return False
        since = old["lastTransitionTime"] if old is not None and old["status"] == value else self._now
        new: Tree = {"type": type_, "status": value, "lastTransitionTime": since, "reason": reason, "message": message}
        if observed:
            new["observedGeneration"] = generation
        conditions = self._own()
        for position, condition in enumerate(conditions):
            if condition["type"] == type_:
                conditions[position] = new
                return True
        conditions.append(new)
        return True

    def drop(self, type_: str) -> None:
        """Remove a condition."""
        if self.condition(type_) is not None:
            conditions = self._own()
            conditions[:] = [condition for condition in conditions if condition["type"] != type_]

    def _own(self) -> list[Tree]:
        if self._conditions is None:
            self._conditions = list(self.get("conditions") or ())
        return self._conditions

    # ------------------------------------------------------------------ the result

    @property
    def changed(self) -> bool:
        """Whether the status differs from the object's."""
        return self._status is not None or self._conditions is not None

    def tree(self) -> Tree:
        """Return the object with the new status."""
        status = dict(self._status if self._status is not None else self.obj.get("status") or {})
        if self._conditions is not None:
            status["conditions"] = self._conditions
        return {**self.obj, "status": status}
