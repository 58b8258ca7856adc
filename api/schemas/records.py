"""Read the files of ``data/``: the types and fields of one Kubernetes version, as words.

Files are read when one of their types is asked for, blocks are taken apart when they are used. `boil` describes the format.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

DATA = Path(__file__).parent / "data"
VERSIONS = tuple(f"1.{minor}" for minor in range(31, 38))
"""The Kubernetes versions that the data describe."""
DEFAULT_VERSION = "1.36"


class KindRecord(NamedTuple):
    """One kind that a type serves; the core group is ""."""

    group: str
    version: str
    kind: str


@dataclass(frozen=True, slots=True)
class TypeRecord:
    """One type: its name (``core/v1.Container``), its kinds, and for each field its words but the version."""

    name: str
    atomic: bool
    kinds: tuple[KindRecord, ...]
    unions: tuple[str, ...]
    """``x-kubernetes-unions``, each in JSON."""
    fields: tuple[tuple[str, ...], ...]


class Records:
    """The built-in types of one Kubernetes version (``1.36``, ``v1.36.3``). Raise ValueError for a version without data."""

    def __init__(self, version: str = DEFAULT_VERSION) -> None:
        parts = version.removeprefix("v").split(".")
        self.version = ".".join(parts[:2])
        if self.version not in VERSIONS:
            raise ValueError(f"Kubernetes version {version!r} is not one of {VERSIONS[0]} to {VERSIONS[-1]}")
        self._minor = int(parts[1])
        self._blocks: dict[str, dict[str, str]] = {}

    def names(self) -> list[str]:
        """Return the names of all types, sorted. Reads every file."""
        return sorted(f"{stem.replace('-', '/')}.{name}" for stem in self._stems for name in self._file(stem))

    def get(self, name: str) -> TypeRecord | None:
        """Return a type by name, or None. Reads its file on first use."""
        owner, _, kind = name.rpartition(".")
        block = self._file(owner.replace("/", "-")).get(kind)
        return None if block is None else self._parse(name, block)

    @cached_property
    def kinds(self) -> dict[KindRecord, str]:
        """The type of every kind. Reads every file."""
        found: dict[KindRecord, str] = {}
        for stem in self._stems:
            owner = stem.replace("-", "/")
            for name, block in self._file(stem).items():
                if "\n  = " in block:
                    for kind in self._kinds(block.split("\n")):
                        found[kind] = f"{owner}.{name}"
        return found

    @cached_property
    def _stems(self) -> list[str]:
        return sorted(path.stem for path in DATA.glob("*.txt"))

    def _file(self, stem: str) -> dict[str, str]:
        """Return the blocks of one file by type, those of this version."""
        blocks = self._blocks.get(stem)
        if blocks is None:
            path = DATA / f"{stem}.txt"
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            blocks = self._blocks[stem] = {}
            for block in text.rstrip("\n").split("\n\n"):
                head = block.partition("\n")[0].split(" ")
                if head[0] and (head[-1][0] != "@" or self._has(head[-1])):
                    blocks[head[0]] = block
        return blocks

    def _has(self, word: str) -> bool:
        """Tell whether a version word (``@33-``, ``@-35``, ``@36``) has this version."""
        first, dash, last = word[1:].partition("-")
        if not dash:
            return int(first) == self._minor
        return (not first or int(first) <= self._minor) and (not last or self._minor <= int(last))

    def _lines(self, lines: list[str]) -> Iterator[str]:
        """Yield the lines below the head that this version has, without indent and version word."""
        for line in lines[1:]:
            if " @" not in line:
                yield line[2:]
                continue
            head, _, rest = line.partition(" @")
            word, _, tail = rest.partition(" ")
            if self._has(f"@{word}"):
                yield f"{head[2:]} {tail}" if tail else head[2:]

    def _kinds(self, lines: list[str]) -> Iterator[KindRecord]:
        for line in self._lines(lines):
            if line[0] == "=":
                _, version, kind, *group = line.split(" ")
                yield KindRecord(group[0] if group else "", version, kind)

    def _parse(self, name: str, block: str) -> TypeRecord:
        lines = block.split("\n")
        own = list(self._lines(lines))
        fields: list[tuple[str, ...]] = []
        for line in own:
            if line[0] not in "=|":
                words, default, value = line.partition(" default=")
                fields.append((*words.split(" "), f"default={value}") if default else tuple(words.split(" ")))
        unions = tuple(line[2:] for line in own if line[0] == "|")
        return TypeRecord(name, " atomic" in lines[0], tuple(self._kinds(lines)), unions, tuple(fields))
