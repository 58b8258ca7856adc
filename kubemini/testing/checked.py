"""Running a scenario under invariants: the first violation, whoever caused it, ends the run and is what it raises."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import Faults
from kubemini.testing.invariants import Checker, Invariant, InvariantViolation


def run_checked(
    scenario: Callable[[SimCluster, Checker], Awaitable[None]],
    invariants: Callable[[], Iterable[Invariant]],
    *,
    seed: int,
    faults: Faults,
    **cluster: Any,
) -> None:
    """Run a scenario on a fresh cluster under these invariants. Raise the first violation, else what the scenario raises."""
    checkers: list[Checker] = []

    async def checked(sim: SimCluster) -> None:
        checker = StoppingChecker(sim, invariants())
        checkers.append(checker)
        await scenario(sim, checker)

    with suppress(asyncio.CancelledError):
        try:
            simulate(checked, seed=seed, faults=faults, **cluster)
        except Exception:
            _raise_violation(checkers)
            raise
    _raise_violation(checkers)


def _raise_violation(checkers: list[Checker]) -> None:
    if checkers and checkers[0].violation is not None:
        raise checkers[0].violation


class StoppingChecker(Checker):
    """A checker whose first violation ends the run: it cancels the task that made it."""

    def __init__(self, cluster: SimCluster, invariants: Iterable[Invariant]) -> None:
        self._main = asyncio.current_task()
        super().__init__(cluster.store, invariants)

    def _violated(self, violation: InvariantViolation) -> None:
        if self.violation is None and self._main is not None:
            self._main.cancel()
        super()._violated(violation)
