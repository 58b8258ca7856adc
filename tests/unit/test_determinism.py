"""Same seed, same trace: the product asks its environment, and nothing else, for time, chance, ids and order."""

from pathlib import Path
from textwrap import dedent

import pytest

from tests.unit.determinism_lint import violations

ROOT = Path(__file__).resolve().parents[2]
EXEMPT = ("kubemini/runtime/env.py", "kubemini/sim/", "kubemini/cli/", "kubemini/benchmarks/")
"""The environment itself, the simulation that stands in for the machine, and the commands and benchmarks, which live in real time."""


def product() -> list[str]:
    """Return the modules under the rule, relative to the root."""
    found = [path.relative_to(ROOT).as_posix() for folder in ("api", "controllers", "kubemini") for path in sorted((ROOT / folder).rglob("*.py"))]
    return [name for name in found if not name.startswith((*EXEMPT, "kubemini/api/", "kubemini/controllers/"))]


def test_product_is_deterministic() -> None:
    """No module of the product reads the machine's clock, chance or ids, or shows the order of a set."""
    assert [f"{name}:{what}" for name in product() for what in violations((ROOT / name).read_text())] == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "import random as r",
        "from time import monotonic",
        "from uuid import uuid4",
        "from asyncio import sleep",
        "import asyncio\nasync def f():\n    await asyncio.sleep(1)",
        "from datetime import datetime, UTC\nx = datetime.now(UTC)",
        "import datetime as dt\nx = dt.datetime.now()",
        "import os\nx = os.urandom(4)",
        "x = hash('a')",
        "x = sorted(rows, key=id)",
        "for x in {1, 2}: pass",
        "for x in set(y): pass",
        "x = [a for a in set(y)]",
        "x = {a: 1 for a in frozenset(y)}",
        "x = list({a for a in y})",
        "x = next(iter(set(y) & z))",
        "x = ', '.join(set(y))",
        "x = a.keys() - b.keys()\nfor k in x: pass",
        "def f(seen: set[str]) -> None:\n    for x in seen: pass",
        "def f(seen: frozenset[str] | None) -> None:\n    x = [*seen]",
        "def f():\n    seen = set()\n    return seen.pop()",
        "class C:\n    def __init__(self): self.dirty: set[str] = set()\n    def f(self):\n        for x in self.dirty: pass",
        "class C:\n    def f(self):\n        for x in self.dirty: pass\n    def __init__(self): self.dirty = set()",
        "x = max(set(y), key=len)",
        "x = sorted(set(y), key=len)",
    ],
)
def test_lint_finds(source: str) -> None:
    """Each way of asking the machine is found."""
    assert len(violations(source)) == 1, violations(source)


@pytest.mark.parametrize(
    "source",
    [
        "from random import Random\nfrom uuid import UUID",
        "from datetime import datetime, UTC\nx = datetime.fromtimestamp(0, UTC)",
        "import asyncio\nasync def f():\n    await asyncio.sleep(0)",
        "async def f(env):\n    await env.sleep(1)",
        "for x in sorted({1, 2}): pass",
        "x = sorted(a for a in set(y))",
        "x = any(a > 1 for a in set(y))",
        "x = {a for a in set(y)}",
        "x = {*set(y), 1}",
        "x = 1 in {1, 2}",
        "x = 1 in (0, *set(y))",
        "x = len(set(y))",
        "x = min(set(y))",
        "x = a.keys() | b.keys()\ny = sorted(x)",
        "x = [a for a in y if a not in seen]",
        "def f():\n    x = set()\n    x = sorted(x)\n    for a in x: pass",
        "class C:\n    def __hash__(self): return hash('a')",
        "for x in {1, 2}: pass  # order-free: only counted",
        "import time  # real-time: a socket of another process",
        "x = ordered.pop()",
    ],
)
def test_lint_allows(source: str) -> None:
    """What gives the same answer in each run is let pass."""
    assert violations(source) == []


def test_waiver_needs_a_reason() -> None:
    """A waiver without a reason waives nothing, and a place is told by its line."""
    source = dedent(
        """\
        x = 1
        import time  # real-time:
        """
    )
    assert violations(source) == ["2: import of time: ask Env"]
