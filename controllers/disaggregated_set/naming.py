"""Names, labels and the revision of what a DisaggregatedSet makes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.controllers.disaggregated_set.go_order import group_template
from kubemini.machinery.memo import IdentityMemo

REVISION_LENGTH = 8

_revisions: IdentityMemo[str] = IdentityMemo(1024)


def revision_of(roles: list[Tree]) -> str:
    """Return the revision of roles: the start of a hash over their names and templates, in their order. Replicas, metadata and strategies do not count."""
    found = _revisions.get(roles)
    if found is None:
        parts = [{"name": role["name"], "template": group_template((role.get("spec") or {}).get("leaderWorkerTemplate") or {})} for role in roles]
        found = _revisions.put(roles, sha256(_go_text(parts).encode()).hexdigest()[:REVISION_LENGTH])
    return found


def _go_text(value: Sequence[Tree]) -> str:
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for plain, escaped in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(plain, escaped)
    return text


def set_name(base: str, slice_: int, revision: str, role: str) -> str:
    """Return the name of the LeaderWorkerSet of a role.

    >>> set_name("llm", 0, "98aa074d", "decode")
    'llm-0-98aa074d-decode'
    """
    return f"{base}-{slice_}-{revision}-{role}"


def legacy_name(base: str, revision: str, role: str) -> str:
    """Return the name that such a LeaderWorkerSet had before there were slices."""
    return f"{base}-{revision}-{role}"


def scaler_name(base: str, role: str) -> str:
    """Return the name of the scaler of a role."""
    return f"{base}-{role}"


def labels_of(base: str, slice_: int, revision: str, role: str) -> Tree:
    """Return the labels of a role's LeaderWorkerSet and of its pods."""
    return {
        "app": f"{base}-{slice_}-{role}",
        names.DS_ROLE: role,
        names.DS_SLICE: str(slice_),
        names.DS_NAME: base,
        names.DS_REVISION: revision,
    }


def label(obj: Tree, key: str) -> str:
    """Return a label, "" without one."""
    found: str = (obj["metadata"].get("labels") or {}).get(key, "")
    return found


def slice_of(obj: Tree) -> int | None:
    """Return the slice that an object is labelled with, None where that is no number."""
    text = label(obj, names.DS_SLICE)
    return int(text) if text.isdecimal() else None


def in_slice(obj: Tree, slice_: int) -> bool:
    """Tell whether an object belongs to a slice; one from before there were slices belongs to slice 0."""
    text = label(obj, names.DS_SLICE)
    return text == str(slice_) if text else slice_ == 0
