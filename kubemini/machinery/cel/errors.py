"""What can be wrong with an expression: texts at places when it is compiled, one text when it is evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubemini.machinery.errors import KubeminiError


class CelError(KubeminiError):
    """Root of the errors of this package."""


class CelEvaluationError(CelError):
    """An evaluation has no value: ``no such key: x``, ``division by zero``, ``no such overload``."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One fault of an expression; `position` is an offset into its text."""

    position: int
    message: str

    def shown(self, text: str) -> str:
        """Return the fault with its line and a pointer, as cel-go displays it."""
        line = text.count("\n", 0, self.position) + 1
        start = text.rfind("\n", 0, self.position) + 1
        column = self.position - start
        end = text.find("\n", start)
        snippet = text[start : end if end >= 0 else None].replace("\t", " ")
        dots = "".join("." if each.isascii() else "\uff0e" for each in snippet[:column]) + "." * max(0, column - len(snippet))
        pointer = "^" if column >= len(snippet) or snippet[column].isascii() else "\uff3e"
        return f"ERROR: <input>:{line}:{column + 1}: {self.message}\n | {snippet}\n | {dots}{pointer}"


class CelCompileError(CelError):
    """An expression is malformed or ill-typed; the text lists all faults as cel-go does."""

    def __init__(self, text: str, issues: Sequence[Issue]) -> None:
        ordered = sorted(issues, key=lambda issue: issue.position)
        super().__init__("\n".join(issue.shown(text) for issue in ordered))
        self.text = text
        self.issues = tuple(ordered)
