"""Writes ``docs/mutants.md``: ``python -m tests.quality.report`` searches every mutant and says what found it, after how many lives and how much CPU time."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.quality.corpus import MUTANTS, SCENARIOS
from tests.quality.searching import Finding, Mutant, search

TABLE = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"
MARKER = "| mutant | defect | seen | replaced | found by | in life | seconds |"

HEAD = """# Mutants

Would the promises notice? Each row is a defect that some controller really had, or a promise turned round: one behaviour of kubemini is replaced for the time of a test,
lives of a whole cluster are drawn and played under virtual time, with late events, lost requests, conflicts and restarts, and the first thing that is found wrong ends the
search. *Found by* names the invariant of `kubemini.testing.invariants`, or the end of the life: it never came to rest, it did not end, or something was left. The same
searches of the product as it is find nothing.

`kubernetes`, `jobset`, `lws` with a number are issues and pull requests of these projects, a KEP the design that says how it should be, an invariant with a number one of
[invariants.md](invariants.md); *found here* are defects of kubemini that these searches brought to light. The table is written by `python -m tests.quality.report`; `tests/quality/test_mutants.py` holds it to the code.

"""


def names_in(text: str) -> list[str]:
    """Return the mutants that a table lists."""
    return re.findall(r"^\| `([a-z0-9-]+)` \|", text, re.MULTILINE)


def row(mutant: Mutant, found: Finding | None) -> str:
    """Return the row of a mutant."""
    cells = [f"`{mutant.name}`", mutant.defect, mutant.source, mutant.replaced]
    cells += [found.invariant, str(found.examples), f"{found.seconds:.1f}"] if found is not None else ["**nothing**", "", ""]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Search, and write the table."""
    rows = []
    for mutant in MUTANTS:
        found = search(mutant.scenario, mutant.swaps)
        rows.append(row(mutant, found))
        sys.stdout.write(f"{rows[-1]}\n")
    sum_up = f"{len(MUTANTS)} mutants in {len(SCENARIOS)} scenarios.\n"
    TABLE.write_text("\n".join([HEAD + MARKER, "| --- " * 7 + "|", *rows, "", sum_up]), encoding="utf-8")


if __name__ == "__main__":
    main()
