"""The deterministic loop under arbitrary programs: same seed, same trace; timers in order; rest and deadlock told apart."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubemini.sim.describing import describe_handle
from kubemini.sim.loop import Quiescent, SimLoop, run

Program = list[Any]
"""A list of steps that one task takes: see `Interpreter.step`."""

SECONDS = st.sampled_from([0, 0, 0.25, 1, 1, 3])
STEPS = st.recursive(
    st.one_of(
        st.tuples(st.just("sleep"), SECONDS),
        st.tuples(st.just("put"), st.integers(0, 1)),
        st.tuples(st.just("get"), st.integers(0, 1), SECONDS),
        st.tuples(st.just("lock"), SECONDS),
        st.tuples(st.just("fail")),
    ),
    lambda inner: st.tuples(st.just("spawn"), st.lists(st.lists(inner, max_size=3), max_size=3)),
    max_leaves=12,
)
PROGRAMS = st.lists(STEPS, max_size=6)
SEEDS = st.none() | st.integers(0, 2**64)


class Interpreter:
    """Runs a program, and traces each step with its time."""

    def __init__(self) -> None:
        self.trace: list[str] = []
        self.queues = [asyncio.Queue[int](), asyncio.Queue[int](maxsize=1)]
        self.lock = asyncio.Lock()
        self.holders = 0

    def note(self, what: str) -> None:
        """Trace something that happened."""
        task = asyncio.current_task()
        self.trace.append(f"{asyncio.get_running_loop().time()} {task.get_name() if task else ''} {what}")

    async def run(self, program: Program) -> None:
        """Take the steps of one task."""
        try:
            for kind, *arguments in program:
                await self.step(kind, *arguments)
                self.note(kind)
        except asyncio.CancelledError:
            self.note("cancelled")
            raise

    async def step(self, kind: str, *arguments: Any) -> None:
        """Take one step."""
        match kind:
            case "sleep":
                await asyncio.sleep(arguments[0])
            case "put":
                try:
                    await asyncio.wait_for(self.queues[arguments[0]].put(1), 2)
                except TimeoutError:
                    self.note("full")
            case "get":
                try:
                    async with asyncio.timeout(arguments[1]):
                        await self.queues[arguments[0]].get()
                except TimeoutError:
                    self.note("empty")
            case "lock":
                async with self.lock:
                    self.holders += 1
                    assert self.holders == 1
                    try:
                        await asyncio.sleep(arguments[0])
                    finally:
                        self.holders -= 1
            case "fail":
                raise ValueError
            case _:
                await self.spawn(arguments[0])

    async def spawn(self, programs: list[Program]) -> None:
        """Run programs side by side; one that fails ends the others."""
        try:
            async with asyncio.TaskGroup() as group:
                for program in programs:
                    group.create_task(self.run(program))
        except* ValueError:
            self.note("failed")


def traced(program: Program, seed: int | None) -> list[str]:
    """Return everything that happens when a program runs: its own notes, and every callback of the loop."""
    steps: list[str] = []
    notes: list[str] = []

    async def main() -> None:
        interpreter = Interpreter()
        interpreter.trace = notes
        await interpreter.spawn([program])

    run(main(), seed=seed, on_step=lambda handle: steps.append(describe_handle(handle)))
    return [*notes, *steps]


@given(program=PROGRAMS, seed=SEEDS)
def test_the_same_seed_gives_the_same_trace(program: Program, seed: int | None) -> None:
    """Any program of sleeps, queues, locks, time-outs, failures and cancellations repeats itself callback by callback."""
    assert traced(program, seed) == traced(program, seed)


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    """Traces do not depend on the process: not on hash randomisation, not on addresses, not on what ran before."""
    script = Path(__file__)
    outputs = [
        subprocess.run(
            [sys.executable, str(script), str(warm_up)],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
            capture_output=True,
        ).stdout
        for hash_seed, warm_up in (("0", 0), ("4711", 7))
    ]
    traces = json.loads(outputs[0])
    assert len({json.dumps(trace) for trace in traces}) > 50
    assert outputs[0] == outputs[1]


BUSY: Program = [
    ["spawn", [[["sleep", 1], ["put", 0], ["lock", 0.25]], [["get", 0, 3], ["lock", 1]], [["lock", 0], ["put", 1], ["put", 1], ["sleep", 0]]]],
    ["spawn", [[["spawn", [[["get", 1, 1]], [["sleep", 3]]]]], *([["get", 0, 3]] for _ in range(20)), [["sleep", 1], ["fail"]]]],
    ["lock", 0.25],
]
"""Many tasks in one group that fails: sets of tasks, cancellations, time-outs."""


@given(program=PROGRAMS)
def test_without_timers_the_order_is_asyncios_own(program: Program) -> None:
    """In first-in-first-out order a program that does not wait for time does exactly what it does on asyncio's own loop.

    Without failures: the order in which a group cancels its tasks is not defined there.
    """

    def timeless(steps: Program) -> Program:
        kept = [step for step in steps if step[0] not in ("put", "get", "fail")]
        return [("spawn", [timeless(each) for each in step[1]]) if step[0] == "spawn" else (step[0], *(0 for _ in step[1:])) for step in kept]

    def notes(runner: Any) -> list[str]:
        interpreter = Interpreter()
        runner(interpreter.spawn([timeless(program)]))
        # names of tasks count per process on asyncio's own loop, and its time is the machine's
        return [note.split()[-1] for note in interpreter.trace]

    assert notes(run) == notes(asyncio.run)


TIMERS = st.lists(st.tuples(st.floats(-10, 1e6), st.booleans(), st.lists(st.floats(0, 100), max_size=3)), max_size=40)


@given(timers=TIMERS, seed=SEEDS)
def test_timers_fire_when_due_and_in_order(timers: list[tuple[float, bool, list[float]]], seed: int | None) -> None:
    """Timers, also those set by timers, fire exactly at their deadline, never early, never again; those cancelled never."""
    loop = SimLoop(seed)
    fired: list[tuple[float, float]] = []
    expected: list[float] = []

    def fire(when: float, then: list[float]) -> None:
        fired.append((when, loop.time()))
        for seconds in then:
            expected.append(loop.call_later(seconds, fire, loop.time() + seconds, []).when())

    handles = [(loop.call_at(when, fire, max(0.0, when), then), cancelled) for when, cancelled, then in timers]
    for handle, cancelled in handles:
        if cancelled:
            handle.cancel()
        else:
            expected.append(handle.when())
    assert loop.run_until_quiescent()
    loop.close()
    times = [time for _, time in fired]
    assert times == sorted(times) == sorted(expected)
    assert all(0 <= time - when < 1e-6 for when, time in fired)


def _note(seen: list[tuple[int, float]], number: int, loop: SimLoop) -> None:
    seen.append((number, loop.time()))


@given(delays=st.lists(st.integers(0, 3), max_size=30), horizon=st.integers(0, 4))
def test_running_in_pieces_is_running_at_once(delays: list[int], horizon: int) -> None:
    """Stopping at a time and going on changes nothing."""
    orders: list[list[tuple[int, float]]] = []
    for pieces in (False, True):
        loop = SimLoop(seed=1)
        seen: list[tuple[int, float]] = []
        for number, delay in enumerate(delays):
            loop.call_later(delay, _note, seen, number, loop)
        if pieces:
            loop.run_until(horizon)
            assert all(time <= horizon for _, time in seen)
            assert len(seen) == sum(delay <= horizon for delay in delays)
        loop.run_until_quiescent()
        loop.close()
        orders.append(seen)
    assert orders[0] == orders[1]


@given(waits=st.lists(st.lists(st.integers(0, 5), max_size=2), min_size=1, max_size=6), seed=SEEDS)
def test_a_deadlock_is_found_exactly_when_there_is_one(waits: list[list[int]], seed: int | None) -> None:
    """Tasks that wait for each other end, or are named by `Quiescent`, as reachability in their graph says."""
    waits = [[other for other in each if other < len(waits)] for each in waits]
    done: list[int] = []
    while ready := [number for number, others in enumerate(waits) if number not in done and set(others) <= set(done)]:
        done.extend(ready)
    stuck = sorted(set(range(len(waits))) - set(done))

    async def main() -> None:
        ends = [asyncio.Event() for _ in waits]

        async def task(number: int) -> None:
            for other in waits[number]:
                await ends[other].wait()
                await asyncio.sleep(number)
            ends[number].set()

        async with asyncio.TaskGroup() as group:
            for number in range(len(waits)):
                group.create_task(task(number), name=f"task {number}")

    if not stuck:
        run(main(), seed=seed)
        return
    with pytest.raises(Quiescent) as raised:
        run(main(), seed=seed)
    named = [line.partition(":")[0] for line in raised.value.waiting]
    assert named == ["Task-1", *(f"task {number}" for number in stuck)]


@given(program=PROGRAMS, seed=st.integers(0, 2**64), choices=st.lists(st.integers(0, 10), max_size=60))
def test_any_choice_of_interleaving_lets_a_program_end(program: Program, seed: int, choices: list[int]) -> None:
    """Locks exclude and programs end under any order that a chooser can think of, and the choices name the run."""

    def notes() -> list[str]:
        left = list(choices)
        interpreter = Interpreter()
        run(interpreter.spawn([program]), seed=seed, choose=lambda count: left.pop(0) % count if left else 0)
        return interpreter.trace

    assert notes() == notes()


if __name__ == "__main__":
    for warm_up in range(int(sys.argv[1])):
        traced(BUSY, warm_up)
    json.dump([traced(BUSY, seed) for seed in range(100)], sys.stdout)
