"""Searching a mutant: one behaviour of the product is replaced while drawn lives of a whole cluster are played, until something is found wrong.

A `Scenario` says which lives are drawn and how one is played; a `Mutant` what is replaced meanwhile. The draws are the same in every run and the first finding ends the
search: it is the first violated invariant, wherever in the run, or what the end of the life has to say.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from unittest.mock import patch

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy

from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import Faults
from kubemini.testing.checked import run_checked
from kubemini.testing.invariants import Checker, Invariant, InvariantViolation
from kubemini.testing.invariants.calm import Calm

EXAMPLES = 30
"""Lives that are played by the product itself for each scenario."""
PATIENCE = 6
"""How many times as many lives are played for one mutant at most: the first finding ends the search, so only what is hard to find takes long."""
SEED = 20
"""Of the draws."""
END = "end of the life"
"""Stands for the invariant where the end assertions of a scenario found something."""

L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Swap:
    """One attribute of a module or class and what stands there meanwhile."""

    where: Any
    name: str
    instead: Any


@dataclass(frozen=True, slots=True)
class Scenario(Generic[L]):
    """Lives and how one is played: `play` raises what is wrong with it."""

    name: str
    lives: SearchStrategy[L]
    play: Callable[[L], None]
    examples: int = EXAMPLES


@dataclass(frozen=True, slots=True)
class Mutant:
    """A defect: `name` is a slug, `source` where it was seen, `defect` what goes wrong, `replaced` what of the product is made worse, `swaps` how."""

    name: str
    source: str
    defect: str
    replaced: str
    scenario: Scenario[Any]
    swaps: tuple[Swap, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a search found: by which invariant, in words, in which example (from 1), and after how many seconds of CPU time."""

    invariant: str
    text: str
    examples: int
    seconds: float


@dataclass
class _Search:
    scenario: Scenario[Any]
    played: int = 0
    found: Finding | None = None
    began: float = field(default_factory=time.process_time)

    def one(self, life: Any) -> None:
        """Play a life unless something was found before."""
        if self.found is not None:
            return
        self.played += 1
        try:
            self.scenario.play(life)
        except InvariantViolation as violation:
            self._note(violation.invariant, str(violation))
        except Exception as problem:  # noqa: BLE001  whatever it is: the product made it happen
            self._note(END, f"{type(problem).__name__}: {problem}")

    def _note(self, invariant: str, text: str) -> None:
        self.found = Finding(invariant, text, self.played, time.process_time() - self.began)


def search(scenario: Scenario[Any], swaps: Sequence[Swap] = ()) -> Finding | None:
    """Play lives with these replacements; return the first finding, None where all is well."""
    lives = scenario.examples * (PATIENCE if swaps else 1)
    state = _Search(scenario)
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]
    budget = settings(max_examples=lives, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=quiet)
    patches = [patch.object(swap.where, swap.name, swap.instead) for swap in swaps]
    logging.disable(logging.ERROR)
    try:
        for each in patches:
            each.start()
        seed(SEED)(budget(given(scenario.lives)(state.one)))()
    finally:
        for each in reversed(patches):
            each.stop()
        logging.disable(logging.NOTSET)
    return state.found


# ----------------------------------------------------------------------------------------------- playing


def play(
    scenario: Callable[[SimCluster, Checker], Awaitable[None]],
    invariants: Iterable[Invariant],
    *,
    seed: int,
    faults: Faults,
    **cluster: Any,
) -> None:
    """Run a scenario on a fresh cluster under these invariants and `Calm`. Raise the first violation, else what the scenario raises."""
    run_checked(scenario, lambda: [*invariants, Calm()], seed=seed, faults=faults, **cluster)


def program(exits: dict[int, int], seconds: float) -> Callable[[Tree], dict[str, Any]]:
    """Return what pods do: the n-th pod that runs (from 0) exits with ``exits[n]``, else with 0, after so many seconds, some a little later than others."""
    numbers: dict[str, int] = {}

    def of(pod: Tree) -> dict[str, Any]:
        number = numbers.setdefault(pod["metadata"]["uid"], len(numbers))
        return {"run_for": seconds + number % 3 * 0.7, "exit_code": exits.get(number, 0)}

    return of
