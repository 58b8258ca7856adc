"""Parts of objects as field errors show them: upstream prints its internal Go types, under Go's names and in their order, also what is not given."""

from __future__ import annotations

import json
import re
from difflib import unified_diff
from functools import cached_property
from typing import Any, Final

from kubemini.machinery.gotext import go_escaped

_JSON_NAMES: Final = {
    "CephFS": "cephfs",
    "CephMonitors": "monitors",
    "DataDiskURI": "diskURI",
    "DiscoveryCHAPAuth": "chapAuthDiscovery",
    "EndpointsName": "endpoints",
    "RBDImage": "image",
    "RBDPool": "pool",
    "RadosUser": "user",
    "SessionCHAPAuth": "chapAuthSession",
    "StorageOS": "storageos",
    "WWIDs": "wwids",
}
_META: Final = ("name", "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers")
"""What the metadata of a template may hold; they are none of the internal types, and show what is given."""


class Struct:
    """A Go type: its fields in order with their zero values. A field that holds another struct, or a list of them, has that for its zero.

    >>> Struct(Type="", RollingUpdate=Struct(Partition=0)).shown({"type": "Blue"})
    {'Type': 'Blue', 'RollingUpdate': None}
    >>> Struct(APIGroup="", Rules=Struct(Verb="")).shown({"rules": [{}]})
    {'APIGroup': '', 'Rules': [{'Verb': ''}]}
    """

    def __init__(self, **fields: Any) -> None:
        self._zeros = fields

    @cached_property
    def _fields(self) -> list[tuple[str, str, Any]]:
        return [(name, _JSON_NAMES.get(name) or _json_name(name), zero) for name, zero in self._zeros.items()]

    def shown(self, value: Any) -> Any:
        """Return a value, or a list of values, of this type as errors show it; None is nil."""
        if value is None:
            return None
        if isinstance(value, list):
            return [self.shown(each) for each in value]
        return {name: _shown(value.get(key), zero) for name, key, zero in self._fields}

    def difference(self, old: Any, new: Any) -> str:
        """Return how two values of this type differ, line by line of what errors show of them."""
        changes = list(unified_diff(_lines(self.shown(old)), _lines(self.shown(new))))
        return "".join(changes[2:])


class Held(Struct):
    """A struct that its holder has by value: there is always one.

    >>> Struct(Resources=Held(Limits=None)).shown({})
    {'Resources': {'Limits': None}}
    """

    def shown(self, value: Any) -> Any:
        """Return a value as errors show it."""
        return super().shown({} if value is None else value)


class Tagged(Struct):
    """A struct of the API's own, whose fields have the names that clients know; it leaves out what is not given.

    >>> LABEL_SELECTOR.shown({"matchExpressions": [{"operator": "Exists", "key": "k"}]})
    {'matchExpressions': [{'key': 'k', 'operator': 'Exists'}]}
    """

    def shown(self, value: Any) -> Any:
        """Return a value as errors show it."""
        found = super().shown(value)
        return {key: each for key, each in found.items() if each} if isinstance(found, dict) else found


class Template(Struct):
    """A struct that embeds metadata, whose fields stand among its own.

    >>> Template(Spec=Held(Paused=False)).shown({"metadata": {"labels": {"b": "1", "a": "2"}}})
    {'labels': {'a': '2', 'b': '1'}, 'Spec': {'Paused': False}}
    """

    def shown(self, value: Any) -> Any:
        """Return a value as errors show it."""
        if value is None:
            return None
        meta = value.get("metadata") or {}
        return {**{key: _shown(meta[key], None) for key in _META if meta.get(key)}, **super().shown(value)}


def _lines(shown: Any) -> list[str]:
    text: str = go_escaped(json.dumps(shown, ensure_ascii=False, indent=1))
    return [f"{line}\n" for line in text.split("\n")]


def _shown(value: Any, zero: Any) -> Any:
    if isinstance(zero, Struct):
        return zero.shown(value)
    if isinstance(value, dict):
        return {key: value[key] for key in sorted(value)}
    return zero if value is None else value


def _json_name(name: str) -> str:
    """Return the name of a Go field in JSON: ``APIGroup`` is ``apiGroup``, ``OS`` is ``os``."""
    return re.sub(r"^[A-Z]+(?=[A-Z][a-z]|$)|^[A-Z]", lambda found: found[0].lower(), name)


LABEL_SELECTOR: Final = Tagged(matchLabels=None, matchExpressions=Tagged(key="", operator="", values=None))
