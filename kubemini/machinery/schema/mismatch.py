"""How decoding fails: the errors of Go's JSON decoder, in its own words."""

from __future__ import annotations

from typing import Any


class Mismatch(Exception):
    """A value does not fit its type. Objects on the way out add their Go type and field name (list indices are not told, as in Go)."""

    def __init__(self, found: str, go_type: str) -> None:
        super().__init__()
        self.found = found
        """What was found: ``string``, ``number 1.5``, …; "" when `go_type` is the whole text."""
        self.go_type = go_type
        self.struct = ""
        self.path: list[str] = []

    @classmethod
    def plain(cls, text: str) -> Mismatch:
        """Return a failure whose text does not name the field (quantities, times, base64)."""
        return cls("", text)

    def within(self, struct: str, field: str) -> None:
        """Note that the value stands in a field of a Go struct."""
        self.struct = self.struct or struct
        self.path.append(field)

    def text(self) -> str:
        """Return the text as Go prints it."""
        if not self.found:
            return self.go_type
        if not self.path:
            return f"json: cannot unmarshal {self.found} into Go value of type {self.go_type}"
        return f"json: cannot unmarshal {self.found} into Go struct field {self.struct}.{'.'.join(reversed(self.path))} of type {self.go_type}"


def found(value: Any, *, literal: bool = False) -> str:
    """Return how Go names a JSON value; numbers with their text when `literal`."""
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return f"number {value!r}" if literal else "number"
    return "array" if isinstance(value, list | tuple) else "object"
