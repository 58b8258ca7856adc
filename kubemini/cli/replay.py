"""``kubemini replay``: plays a counterexample again and tells every commit."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import typer

from kubemini.cli.explore import rows
from kubemini.machinery.errors import ConfigError
from kubemini.store import Change
from kubemini.testing.counterexamples import Counterexample
from kubemini.testing.playing import Outcome
from kubemini.testing.telling import told

STEP = "──"
"""Marks steps of the life among its commits."""


@dataclass
class Teller:
    """Writes a life down while it is played."""

    wanted: re.Pattern[str]
    lines: list[str] = field(default_factory=list)

    def step(self, now: float, text: str) -> None:
        """Note a step."""
        self.lines.append(f"{now:10.3f}s  {STEP} {text}")

    def commit(self, now: float, table: str, change: Change) -> None:
        """Note a commit."""
        text = told(table, change)
        if self.wanted.search(text):
            self.lines.append(f"{now:10.3f}s  {change.revision:>6}  {text}")


def run(path: Path, *, only: str, last: int, step: bool) -> int:
    """Play the file; return the exit status: 1 where the same is wrong again, 0 where it is not. Raise `ConfigError`."""
    try:
        wanted = re.compile(only)
    except re.error as problem:
        raise ConfigError(f"--only {only}: is no regular expression: {problem}") from None
    example = Counterexample.load(path)
    teller = Teller(wanted)
    outcome = example.replay(teller)
    lines = teller.lines[-last:] if last else teller.lines
    if len(lines) < len(teller.lines):
        print(f"... {len(teller.lines) - len(lines)} lines before")
    _print(lines, step=step and sys.stdin.isatty())
    for row in _verdict(example, outcome):
        typer.secho(row, fg="red" if outcome.finding is not None else "green")
    return 1 if outcome.finding is not None else 0


def _print(lines: list[str], *, step: bool) -> None:
    """Print lines; with `step` one at a time: Enter goes on, c to the end, q ends it."""
    for line in lines:
        typer.secho(line, bold=STEP in line, nl=not step)
        if step:
            answer = input()
            if answer == "q":
                return
            step = answer != "c"


def _verdict(example: Counterexample, outcome: Outcome) -> Iterator[str]:
    yield ""
    yield from rows(example)
    if outcome.finding is None:
        yield f"It is all well now (it was found by kubemini {example.version})."
    elif outcome.finding != example.finding:
        yield f"Now something else is wrong: {outcome.finding.invariant}: {outcome.finding.text}"
    elif example.digest and outcome.digest != example.digest:
        yield f"The same is wrong, on another way: the trace is not that of kubemini {example.version}."
    else:
        yield f"The same {outcome.commits:,} commits, byte for byte."
