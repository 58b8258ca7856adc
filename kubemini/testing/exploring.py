"""Searching for a life in which something is wrong, and making it short: hypothesis draws and shrinks, as many processes as there are play.

Lives are drawn in batches, and the first batch that finds something counts: what is found depends on the seed alone, not on how many processes
there are or how fast they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings

from kubemini.machinery.errors import ConfigError
from kubemini.store import Change
from kubemini.testing.counterexamples import Counterexample
from kubemini.testing.plans import Plan
from kubemini.testing.playing import Finding, Scenario, play
from kubemini.testing.sources import Source
from kubemini.testing.strategies import plans

BATCH = 25
"""Lives between two reports."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a search is: lives that were played (without those of shrinking), their commits and virtual seconds."""

    lives: int = 0
    commits: int = 0
    seconds: float = 0.0

    def __add__(self, other: Progress) -> Progress:
        return Progress(self.lives + other.lives, self.commits + other.commits, self.seconds + other.seconds)


def explore(
    source: Source, *, lives: int = 200, seed: int = 0, executor: Executor | None = None, report: Callable[[Progress], object] | None = None
) -> Counterexample | None:
    """Play so many lives of a scenario; return the shortest form of the first that is wrong, None where all is well.

    `executor` plays batches elsewhere (a process pool, or what ``dask.distributed.Client.get_executor`` returns); without one this process does. `report` is
    called after each batch. Raise `ConfigError` for a scenario that cannot be had, or whose manifests the API refuses.
    """
    undisturbed = play(source.scenario(), Plan(seed))
    if undisturbed.refusal is not None:
        raise ConfigError(f"the API refuses the scenario: {undisturbed.refusal}")
    sizes = [min(BATCH, lives - first) for first in range(0, lives, BATCH)]
    done = Progress()
    for progress, found in _batches(source, seed, sizes, executor):
        done += progress
        if report is not None:
            report(done)
        if found is not None:
            return found
    return None


Result = tuple[Progress, Counterexample | None]


def _batches(source: Source, first: int, sizes: list[int], executor: Executor | None) -> Iterator[Result]:
    """Yield the results of the batches in their order."""
    if executor is None:
        for number, size in enumerate(sizes):
            yield batch(source, first, number, size)
        return
    waiting: list[Future[Result]] = [executor.submit(batch, source, first, number, size) for number, size in enumerate(sizes)]
    try:
        for each in waiting:
            yield each.result()
    finally:
        for each in waiting:
            each.cancel()


def batch(source: Source, first: int, number: int, size: int) -> Result:
    """Play one batch of lives, and shrink what is found. The draws follow from the seed and the batch's number."""
    search = _Search(source.scenario())
    budget = settings(
        max_examples=size,
        phases=[Phase.generate, Phase.shrink],
        database=None,
        deadline=None,
        derandomize=False,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example],
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    with suppress(_Found):
        seed(f"{first}/{number}")(budget(given(plan=plans())(search.one)))()
    if search.found is None:
        return search.progress, None
    plan, finding = search.found
    seen = play(search.scenario, plan, _Nobody())
    return search.progress, Counterexample(source, plan, seen.finding or finding, seen.digest)


class _Search:
    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.progress = Progress()
        self.found: tuple[Plan, Finding] | None = None
        """The last life in which something was wrong; hypothesis plays the shortest one last."""
        self._kinds: dict[str, type[_Found]] = {}

    def one(self, plan: Plan) -> None:
        """Play a life. Raise `_Found`."""
        outcome = play(self.scenario, plan)
        if self.found is None:
            self.progress += Progress(1, outcome.commits, outcome.seconds)
        if outcome.finding is not None:
            self.found = plan, outcome.finding
            raise self._kind(outcome.finding.invariant)(outcome.finding.text)

    def _kind(self, invariant: str) -> type[_Found]:
        """Return the exception that stands for an invariant: shrinking keeps to one kind of exception, so to one promise."""
        return self._kinds.setdefault(invariant, type(f"Found {invariant}", (_Found,), {}))


class _Found(Exception):
    """Something is wrong in a life."""


class _Nobody:
    """Looks away; the life is traced all the same."""

    def step(self, now: float, text: str) -> None:
        """A step begins."""

    def commit(self, now: float, table: str, change: Change) -> None:
        """Something was written."""
