r"""Regular expressions as the API server reads them: Go's RE2 syntax on top of Python's `re`.

Schemas (``pattern``) and CEL (``matches``, ``find``) are written in RE2's dialect. What differs is rewritten: flags in the middle of a
pattern (``^(?i)[a-z]``), ``$`` that means the very end, ``\z``, ``\Q…\E``, POSIX and Unicode classes, ASCII-only ``\d``/``\w``/``\s``.
What RE2 refuses (look-around, back-references) is refused.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from typing import Any, cast

from kubemini.machinery.backtracking import suspicious

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_PERL = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
_SCRIPTS = {
    "Greek": "GREEK",
    "Latin": "LATIN",
    "Cyrillic": "CYRILLIC",
    "Han": "CJK UNIFIED",
    "Hiragana": "HIRAGANA",
    "Katakana": "KATAKANA",
    "Arabic": "ARABIC",
    "Hebrew": "HEBREW",
}


class RegexError(ValueError):
    """A pattern is no RE2 pattern; the message is worded like Go's."""


def found(pattern: str, text: str) -> bool:
    """Tell whether an RE2 pattern matches anywhere in a text, in time that grows with the text only. Raise `RegexError`.

    >>> found("^(a+)+$", "a" * 5000 + "!"), found("(x|y)*z", "xyxz")
    (False, True)
    """
    return compiled(pattern).search(text) is not None


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    r"""Return the compiled form of an RE2 pattern; where Python's might back-track without end, RE2's own. Raise `RegexError`.

    >>> bool(compiled("^(?i)[a-z]+$").search("ABC")), bool(compiled("^a$").search("a\n"))
    (True, False)
    """
    try:
        translated = re.compile(_Translation(pattern).run())
    except re.error as error:
        raise RegexError(f"error parsing regexp: {error.msg}: `{pattern}`") from None
    return _linear(pattern) if suspicious(translated.pattern) else translated


def _linear(pattern: str) -> re.Pattern[str]:
    import re2  # loaded for those who need it: most patterns are harmless

    options = re2.Options()
    options.log_errors = False
    try:
        matcher: Any = re2.compile(pattern, options)
    except re2.error as error:
        raise RegexError(f"error parsing regexp: {error}: `{pattern}`") from None
    return cast("re.Pattern[str]", matcher)  # it has the same methods


class _Translation:
    """One pass over a pattern. `flags` are those in force, as Python's inline letters."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0

    def run(self) -> str:
        out = self._alternatives("", depth=0)
        if self.at < len(self.text):
            self._fail("unexpected )")
        return out

    def _fail(self, what: str) -> None:
        raise RegexError(f"error parsing regexp: {what}: `{self.text}`")

    def _alternatives(self, flags: str, depth: int) -> str:
        """Translate up to the end or an unmatched ``)``; a flag group in the middle wraps the rest of its group."""
        out: list[str] = []
        wraps = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == ")":
                if depth == 0:
                    break
                return "".join(out) + ")" * wraps
            if char == "|" and wraps:
                # The flags hold for the later alternatives too, and the alternatives are the group's, not the wrapper's.
                out.append(")" * wraps + "|" + f"(?{flags}:" * bool(flags))
                wraps = 1 if flags else 0
                self.at += 1
            elif char == "(":
                changed = self._flag_group(flags)
                if changed is not None:
                    flags = changed
                    if flags:
                        out.append(f"(?{flags}:")
                        wraps += 1
                else:
                    out.append(self._group(flags, depth))
            elif char == "[":
                out.append(self._bracket())
            elif char == "\\":
                out.append(self._escape())
            elif char == "$":
                out.append("$" if "m" in flags.partition("-")[0] else r"\Z")
                self.at += 1
            else:
                if char == "+" and re.search(r"[*+?}]$", self.text[: self.at]) and not self.text[: self.at].endswith("\\", 0, self.at - 1):
                    self._fail(f"invalid nested repetition operator: `{self.text[self.at - 1 : self.at + 1]}`")
                out.append(self._repeat() if char == "{" else char)
                self.at += 1
        if depth:
            self._fail("missing closing )")
        return "".join(out) + ")" * wraps

    def _repeat(self) -> str:
        """A brace that is no repetition is literal in both dialects; Python wants it escaped where it looks like one without a minimum."""
        return r"\{" if re.match(r"\{,\d*\}", self.text[self.at :]) else "{"

    def _flag_group(self, flags: str) -> str | None:
        """Return the flags in force after a group such as ``(?i)``, or None where there is none at this place."""
        found = re.match(r"\(\?([imsU]*)(?:-([imsU]+))?\)", self.text[self.at :])
        if found is None:
            return None
        self.at += found.end()
        return self._merged(flags, found.group(1), found.group(2) or "")

    @staticmethod
    def _merged(flags: str, on: str, off: str) -> str:
        kept = [flag for flag in "ims" if (flag in flags or flag in on) and flag not in off]
        return "".join(kept)

    def _group(self, flags: str, depth: int) -> str:
        rest = self.text[self.at :]
        head = "("
        if rest.startswith("(?"):
            scoped = re.match(r"\(\?([imsU]*)(?:-([imsU]+))?:", rest)
            named = re.match(r"\(\?P?<([A-Za-z_]\w*)>", rest)
            if scoped:
                inner = self._merged(flags, scoped.group(1), scoped.group(2) or "")
                off = "".join(flag for flag in "ims" if flag in flags and flag not in inner)
                on = "".join(flag for flag in inner if flag not in flags)
                head = f"(?{on}{'-' + off if off else ''}:"
                flags = inner
                self.at += scoped.end()
            elif named:
                head = f"(?P<{named.group(1)}>"
                self.at += named.end()
            else:
                self._fail("invalid or unsupported Perl syntax")
        else:
            self.at += 1
        body = self._alternatives(flags, depth + 1)
        if self.at >= len(self.text):
            self._fail("missing closing )")
        self.at += 1
        return head + body + ")"

    def _bracket(self) -> str:
        out = ["["]
        self.at += 1
        if self.text[self.at : self.at + 1] == "^":
            out.append("^")
            self.at += 1
        first = True
        while True:
            if self.at >= len(self.text):
                self._fail("missing closing ]")
            char = self.text[self.at]
            if char == "]" and not first:
                self.at += 1
                return "".join(out) + "]"
            posix = re.match(r"\[:(\^?)(\w+):\]", self.text[self.at :])
            if posix:
                if posix.group(2) not in _POSIX:
                    self._fail(f"invalid character class range: `{posix.group(0)}`")
                out.append(_inverted(_POSIX[posix.group(2)]) if posix.group(1) else _POSIX[posix.group(2)])
                self.at += posix.end()
            elif char == "\\":
                out.append(self._escape(inside=True))
            else:
                out.append("\\" + char if char in "[]&~|" else char)
                self.at += 1
            first = False

    def _escape(self, *, inside: bool = False) -> str:
        letter = self.text[self.at + 1 : self.at + 2]
        if not letter:
            self._fail("trailing backslash at end of expression")
        if letter in "pP":
            return self._unicode_class(negated=letter == "P", inside=inside)
        if letter == "x" and self.text[self.at + 2 : self.at + 3] == "{":
            end = self.text.find("}", self.at)
            digits = self.text[self.at + 3 : end]
            if end < 0 or not re.fullmatch("[0-9A-Fa-f]{1,6}", digits):
                self._fail("invalid escape sequence")
            self.at = end + 1
            return re.escape(chr(int(digits, 16)))
        if letter == "Q" and not inside:
            end = self.text.find(r"\E", self.at + 2)
            literal = self.text[self.at + 2 : end if end >= 0 else None]
            self.at = len(self.text) if end < 0 else end + 2
            return re.escape(literal)
        self.at += 2
        if letter.lower() in _PERL:
            members = _PERL[letter.lower()]
            if letter.isupper():
                return _inverted(members) if inside else f"[^{members}]"
            return members if inside else f"[{members}]"
        if not inside and letter in "bBA":
            return f"(?a:\\{letter})" if letter in "bB" else r"\A"
        if not inside and letter == "z":
            return r"\Z"
        if letter in "afnrtv":
            return "\\" + letter
        if letter == "x":
            return "\\x"
        if letter in "01234567":
            return self._octal(letter)
        if letter.isalnum():
            self._fail(f"invalid escape sequence: `\\{letter}`")
        return "\\" + letter

    def _octal(self, first: str) -> str:
        digits = re.match("[0-7]{0,2}", self.text[self.at :])
        assert digits is not None
        if first != "0" and not digits.group():
            self._fail(f"invalid escape sequence: `\\{first}`")
        self.at += digits.end()
        return re.escape(chr(int(first + digits.group(), 8)))

    def _unicode_class(self, *, negated: bool, inside: bool) -> str:
        found = re.match(r"\\[pP](?:\{(\^?)(\w+)\}|(\w))", self.text[self.at :])
        if found is None:
            self._fail("invalid character class range")
            raise AssertionError
        self.at += found.end()
        name = found.group(2) or found.group(3)
        members = _members(name)
        if not members:
            self._fail(f"invalid character class range: `{found.group(0)}`")
        if found.group(1):
            negated = not negated
        if negated:
            return _inverted(members) if inside else f"[^{members}]"
        return members if inside else f"[{members}]"


@lru_cache(maxsize=64)
def _members(name: str) -> str:
    """Return the body of a bracket expression for a Unicode category or script; "" for an unknown one."""
    script = _SCRIPTS.get(name)
    points = [
        point
        for point in range(sys.maxunicode + 1)
        if (unicodedata.name(chr(point), "").startswith(script) if script else unicodedata.category(chr(point)).startswith(name))
    ]
    return _ranges(points)


@lru_cache(maxsize=64)
def _inverted(members: str) -> str:
    """Return the body of a bracket expression for everything but `members`."""
    outside = re.compile(f"[^{members}]")
    return _ranges([point for point in range(sys.maxunicode + 1) if outside.match(chr(point))])


def _ranges(points: list[int]) -> str:
    out: list[str] = []
    start = previous = -2
    for point in [*points, sys.maxunicode + 2]:
        if point != previous + 1:
            if start >= 0:
                out.append(f"\\U{start:08X}-\\U{previous:08X}")
            start = point
        previous = point
    return "".join(out)
