"""Play the conformance cases; what disagrees with the pending list is played again by itself before it counts.

Some of what was recorded on the real control plane depends on when things happened, so a busy machine may disagree once,
and an idle one always: every other time the neighbours play too.
A case that disagrees every time fails the run; one that agrees in the end is named, so that nobody overlooks it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

RUNNER = Path("../shared/conformance/run.py")
PENDING = "tests/conformance_pending.txt"
AGAIN = 8
MANY = 60
"""With so many disagreements something is broken, and playing again would only take time."""


def main() -> int:
    """Play all cases, then, up to `AGAIN` times, those that disagree; return the exit status."""
    status, odd = play("-j", "6")
    if status == 0 or not odd or len(odd) > MANY:
        return status
    for number in range(AGAIN):
        print(f"conformance: playing again what disagrees ({number + 1} of {AGAIN}): {' '.join(odd)}", flush=True)
        _, again = play(*(among_neighbours(odd) if number % 2 else alone(odd)))
        if settled := [each for each in odd if each not in again]:
            print(f"conformance: agree now, so they depend on time: {' '.join(settled)}", flush=True)
        odd = [each for each in odd if each in again]
        if not odd:
            return 0
    print(f"conformance: disagree every time: {' '.join(odd)}")
    return 1


def alone(odd: list[str]) -> tuple[str, ...]:
    """Options of the runner for these ids by themselves."""
    only = "|".join(sorted({re.escape(each.removesuffix(":golden")) for each in odd}))
    return "-j", "2", "--only", f"^({only})$"


def among_neighbours(odd: list[str]) -> tuple[str, ...]:
    """Options of the runner for these ids among some others, so that the machine is busy."""
    only = "|".join(sorted({found[0] for each in odd if (found := re.match(r"[a-z]+-([0-9]{2}|[a-z]+)", each))}))
    return "-j", "6", "--only", f"^({only})"


def play(*options: str) -> tuple[int, list[str]]:
    """Run the runner; return its status and the ids that disagree with the pending list."""
    command = [sys.executable, str(RUNNER), "--golden", "--quiet", *options, "--pending", PENDING]
    print(" ".join(command[1:]), flush=True)
    odd: dict[str, None] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        for line in running.stdout or ():
            print(line, end="", flush=True)
            if found := re.match(r"FAILED\s+(\S+) \(|(\S+) passes now:", line):
                odd[found[1] or found[2]] = None
    return running.returncode, list(odd)


if __name__ == "__main__":
    sys.exit(main())
