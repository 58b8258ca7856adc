"""What the tables of several kinds share: cells for ages, label maps, containers.

Mirrors ``pkg/printers/internalversion/printers.go`` (1.36).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.human import human_duration
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.env import from_stamp
from kubemini.server.strategy import Column, Table

NONE = "<none>"
UNKNOWN = "<unknown>"
UNSET = "<unset>"

_NAME_TEXT = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the "
    "generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be "
    "updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
_AGE_TEXT = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before "
    "order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. "
    "Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
NAME = Column("Name", "string", "name", _NAME_TEXT)
AGE = Column("Age", "string", "", _AGE_TEXT)

Cell = Callable[[Tree, float], Any]


def column(name: str, kind: str = "string", text: str = "") -> Column:
    """Return a column that always shows."""
    return Column(name, kind, "", text)


def wide(name: str, kind: str = "string", text: str = "") -> Column:
    """Return a column that shows with ``-o wide`` only."""
    return Column(name, kind, "", text, 1)


def name(obj: Tree) -> str:
    """Return the Name cell."""
    return str(obj["metadata"].get("name", ""))


def since(stamp: str | None, now: float) -> str:
    """Return how long ago a stamp was; ``<unknown>`` without one."""
    return human_duration(now - from_stamp(stamp)) if stamp else UNKNOWN


def age(obj: Tree, now: float) -> str:
    """Return the Age cell."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def pairs(labels: Mapping[str, str] | None) -> str:
    """Return a label map as ``a=b,c=d``, sorted; ``<none>`` when empty."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else NONE


def selector(tree: Tree | None) -> str:
    """Return a LabelSelector object as text; ``<none>`` when it selects everything or nothing."""
    return str(from_label_selector(tree)) or NONE if tree else NONE


def containers(pod_spec: Tree) -> list[str]:
    """Return the Containers and Images cells of a template."""
    entries = pod_spec.get("containers") or ()
    return [",".join(each.get("name", "") for each in entries), ",".join(each.get("image", "") for each in entries)]


CONTAINERS = (
    wide("Containers", text="Names of each container in the template."),
    wide("Images", text="Images referenced by each container in the template."),
)
SELECTOR = wide("Selector", text="Label selector of the object.")


def simple(*columns: Column, cells: Callable[[Tree], list[Any]]) -> Table:
    """Return a table of Name, some columns, and Age."""

    def row(obj: Tree, now: float) -> list[Any]:
        return [name(obj), *cells(obj), age(obj, now)]

    return Table((NAME, *columns, AGE), row)


def get(tree: Tree, *path: str, default: Any = "") -> Any:
    """Return a value by path; the default where it is absent or null."""
    here: Any = tree
    for key in path:
        here = here.get(key) if isinstance(here, dict) else None
        if here is None:
            return default
    return here
