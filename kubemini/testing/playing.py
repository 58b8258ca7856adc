"""Playing a life: a scenario on a fresh cluster under virtual time, disturbed by a plan, with promises checked at every commit and at the end."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, ConfigError, NotFound
from kubemini.manifests import Manifest, load
from kubemini.sim.cluster import SimCluster
from kubemini.sim.trace import line
from kubemini.store import Change
from kubemini.testing.checked import run_checked
from kubemini.testing.disturbing import Disturber, reference
from kubemini.testing.invariants import Checker, Invariant, InvariantViolation
from kubemini.testing.invariants.calm import Calm
from kubemini.testing.invariants.catalogue import all_invariants
from kubemini.testing.plans import Plan

HORIZON = 4 * 3600.0
"""Virtual seconds that a cluster gets to come to rest after the last disturbance."""
QUIET = 900.0
"""A cluster in which nothing will happen for so long is at rest too: what comes later is a date in somebody's spec."""
END = "end of the life"
"""Stands for the invariant where something else went wrong: a check of the scenario, or a controller that broke."""


@dataclass(frozen=True)
class Scenario:
    """What runs on the cluster, and what is promised of it.

    `manifests` are applied, then `setup` is awaited; `check` is awaited once the cluster is at rest after all disturbances, and raises what is wrong; `invariants`
    returns fresh promises beside the general ones. `cluster` are arguments of `SimCluster`.
    """

    manifests: Sequence[Manifest] = ()
    setup: Callable[[SimCluster], Awaitable[object]] | None = None
    check: Callable[[SimCluster], Awaitable[object]] | None = None
    invariants: Callable[[], Iterable[Invariant]] | None = None
    cluster: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found wrong: by which invariant, at which revision (0 = at rest, or at no commit), in words."""

    invariant: str
    revision: int
    text: str


@dataclass(slots=True)
class Outcome:
    """How a life went: how many commits it had, how many virtual seconds it took, a digest of its trace where it was watched, and what was found."""

    commits: int = 0
    seconds: float = 0.0
    digest: str = ""
    finding: Finding | None = None
    refusal: ApiStatus | None = None
    """What the API said where it refused a manifest."""


class Watcher(Protocol):
    """Somebody who looks on."""

    def step(self, now: float, text: str) -> None:
        """A step of the life begins; `now` are virtual seconds since its start."""

    def commit(self, now: float, table: str, change: Change) -> None:
        """Something was written."""


def play(scenario: Scenario, plan: Plan, watcher: Watcher | None = None) -> Outcome:
    """Play a life to its end, or to the first thing that is wrong. Raise `ConfigError` for a scenario or plan that cannot be had."""
    outcome = Outcome()

    async def life(cluster: SimCluster, checker: Checker) -> None:
        told = _Telling(cluster, outcome, watcher)
        try:
            await _live(cluster, scenario, plan, checker, told)
        finally:
            told.close()

    with _quiet():
        try:
            run_checked(life, lambda: _invariants(scenario, plan), seed=plan.seed, faults=plan.faults, **scenario.cluster)
        except ConfigError:
            raise
        except _Refused as refused:
            outcome.refusal = refused.status
        except InvariantViolation as violation:
            outcome.finding = Finding(violation.invariant, violation.revision, "; ".join(violation.texts))
        except Exception as problem:  # noqa: BLE001  whatever it is: the product or the scenario's check made it happen
            outcome.finding = Finding(END, 0, f"{type(problem).__name__}: {problem}")
    return outcome


def _invariants(scenario: Scenario, plan: Plan) -> list[Invariant]:
    lossless = not (plan.faults.lost_before or plan.faults.lost_after or any(step.action == "restart" for step in plan.steps))
    more = scenario.invariants() if scenario.invariants is not None else ()
    return [*all_invariants(lossless=lossless), Calm(), *more]


async def _live(cluster: SimCluster, scenario: Scenario, plan: Plan, checker: Checker, told: _Telling) -> None:
    await cluster.settle(60)
    told.step("the scenario begins")
    work = await _applied(cluster, scenario)
    disturber = Disturber(cluster, work, told.step)
    for step in plan.steps:
        await cluster.settle(step.after)
        await disturber.do(step)
    told.step("nothing is disturbed any more")
    await disturber.mend()
    if await _rests(cluster):
        told.step("the cluster is at rest")
        checker.at_rest()
        if scenario.check is not None:
            await scenario.check(cluster)
    if work:
        told.step("all that was applied is deleted")
        await _delete(cluster, work)
        if await _rests(cluster):
            checker.at_rest()


async def _applied(cluster: SimCluster, scenario: Scenario) -> list[tuple[Tree, Tree]]:
    """Begin the scenario; return each object as it was written and as it was stored."""
    documents = [document for manifest in scenario.manifests for document in load(manifest)]
    work: list[tuple[Tree, Tree]] = []
    try:
        for document in documents:
            (made,) = await cluster.apply(document)
            work.append((document, made))
            await cluster.settle(0)
    except ApiStatus as refused:
        raise _Refused(refused) from None
    if scenario.setup is not None:
        await scenario.setup(cluster)
    return work


async def _delete(cluster: SimCluster, work: Sequence[tuple[Tree, Tree]]) -> None:
    for _, made in reversed(work):
        with suppress(NotFound):
            await cluster.delete(reference(made), namespace=made["metadata"].get("namespace", ""), propagation="Foreground")
            await cluster.settle(60)


async def _rests(cluster: SimCluster) -> bool:
    return await cluster.settle(HORIZON) or cluster.loop.next_timer() - cluster.loop.time() > QUIET


class _Refused(Exception):
    def __init__(self, status: ApiStatus) -> None:
        self.status = status


class _Telling:
    """Counts commits, and shows them and the steps to who looks on."""

    def __init__(self, cluster: SimCluster, outcome: Outcome, watcher: Watcher | None) -> None:
        self._cluster = cluster
        self._outcome = outcome
        self._watcher = watcher
        self._began = cluster.loop.time()
        self._first = cluster.store.revision
        self._digest = blake2b(digest_size=16)
        if watcher is not None:
            self._before = cluster.store.observer
            cluster.store.observer = self._commit

    def step(self, text: str) -> None:
        if self._watcher is not None:
            self._watcher.step(self._now(), text)

    def _now(self) -> float:
        return self._cluster.loop.time() - self._began

    def _commit(self, table: str, change: Change) -> None:
        self._digest.update(line(self._cluster.env.now(), table, change))
        if self._watcher is not None:
            self._watcher.commit(self._now(), table, change)
        # Those before may refuse the commit: who looks on has seen it by then
        if self._before is not None:
            self._before(table, change)

    def close(self) -> None:
        self._outcome.commits = self._cluster.store.revision - self._first
        self._outcome.seconds = self._now()
        if self._watcher is not None:
            self._outcome.digest = self._digest.hexdigest()


@contextmanager
def _quiet() -> Generator[None]:
    """Let controllers not log what a violation does to them."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
