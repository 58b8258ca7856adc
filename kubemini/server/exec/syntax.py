"""The language of the simulated shell: words with quotes and variables, joined by ``;``, ``&&``, ``||`` and newlines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_TOKEN: Final = re.compile(
    r"""(?P<space>[ \t\r]+)|(?P<comment>\#.*)|(?P<joint>\n|;|&&|\|\|)|(?P<other>\$\(|`|[|<>()&])|(?P<single>'[^']*')|(?P<double>"(?:[^"\\]|\\.)*")"""
    r"""|(?P<escaped>\\.)|(?P<bare>(?:[^ \t\r\n;&|<>()'"\\`$]|\$(?!\())+)""",
    re.DOTALL,
)
_VARIABLE: Final = re.compile(r"\$(?:(\?)|([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::-([^}]*))?\})")


class NotUnderstood(Exception):
    """The text uses what the simulated shell does not know; the message says what."""


@dataclass(slots=True)
class Word:
    """One word: pieces of text, each told whether variables are put in, and whether it was quoted."""

    pieces: list[tuple[str, bool, bool]] = field(default_factory=list)

    def text(self, variables: Mapping[str, str]) -> str | None:
        """Return the word with its variables; None where nothing is left of a bare one."""
        made = "".join(_filled(text, variables) if fills else text for text, fills, _ in self.pieces)
        return made if made or any(quoted for _, _, quoted in self.pieces) else None


@dataclass(slots=True)
class Step:
    """One command, and how it is joined to the one before: ``;``, ``&&`` or ``||``."""

    joint: str
    words: list[Word]


def steps(script: str) -> Iterator[Step]:
    r"""Yield the commands of a script. Raise `NotUnderstood`.

    >>> [(step.joint, [word.text({"A": "1"}) for word in step.words]) for step in steps("echo \"a b\"c$A && false; true")]
    [(';', ['echo', 'a bc1']), ('&&', ['false']), (';', ['true'])]
    """
    step, word = Step(";", []), None
    position = 0
    while position < len(script):
        match = _TOKEN.match(script, position)
        if match is None:
            raise NotUnderstood("unterminated quoted string")
        position = match.end()
        kind, text = match.lastgroup, match[0]
        if kind == "other":
            raise NotUnderstood(f"'{text}' is not simulated")
        if kind == "comment" and word is not None:
            kind = "bare"
        if kind in ("space", "comment", "joint"):
            word = None
            if kind == "joint":
                if step.words:
                    yield step
                step = Step(";" if text == "\n" else text, [])
            continue
        if word is None:
            word = Word()
            step.words.append(word)
        word.pieces.append(_piece(kind or "", text))
    if step.words:
        yield step


def _piece(kind: str, text: str) -> tuple[str, bool, bool]:
    if kind == "single":
        return text[1:-1], False, True
    if kind == "double":
        return re.sub(r'\\(["\\])', r"\1", text[1:-1]), True, True
    if kind == "escaped":
        return ("" if text[1] == "\n" else text[1]), False, True
    return text, True, False


def _filled(text: str, variables: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2] or match[3], match[4] or ""), text)
