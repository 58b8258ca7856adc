"""Parts of objects as field errors show them: upstream prints its internal Go types, under Go's names and in their order, also what is not given."""

from __future__ import annotations

import re
from typing import Any


class Struct:
    """A Go type: its fields in order with their zero values. A field that holds another struct, or a list of them, has that for its zero.

    >>> Struct(Type="", RollingUpdate=Struct(Partition=0)).shown({"type": "Blue"})
    {'Type': 'Blue', 'RollingUpdate': None}
    >>> Struct(APIGroup="", Rules=Struct(Verb="")).shown({"rules": [{}]})
    {'APIGroup': '', 'Rules': [{'Verb': ''}]}
    """

    def __init__(self, **fields: Any) -> None:
        self._fields = [(name, _json_name(name), zero) for name, zero in fields.items()]

    def shown(self, value: Any) -> Any:
        """Return a value, or a list of values, of this type as errors show it; None is nil."""
        if value is None:
            return None
        if isinstance(value, list):
            return [self.shown(each) for each in value]
        return {name: _shown(value.get(key), zero) for name, key, zero in self._fields}


def _shown(value: Any, zero: Any) -> Any:
    if isinstance(zero, Struct):
        return zero.shown(value)
    return zero if value is None else value


def _json_name(name: str) -> str:
    """Return the name of a Go field in JSON: ``APIGroup`` is ``apiGroup``."""
    return re.sub(r"^[A-Z]+(?=[A-Z][a-z])|^[A-Z]", lambda found: found[0].lower(), name)
