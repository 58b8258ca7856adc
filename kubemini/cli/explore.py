"""``kubemini explore``: searches for a life in which something is wrong, and writes the shortest one down."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubemini.machinery.errors import ConfigError
from kubemini.testing.counterexamples import Counterexample
from kubemini.testing.plans import Plan
from kubemini.testing.playing import END
from kubemini.testing.sources import Source


def run(names: Sequence[str], *, lives: int, seed: int, jobs: int, dask: str, output: Path, cluster: dict[str, Any]) -> int:
    """Search; return the exit status: 0 where all is well, 1 where something was found. Raise `ConfigError`."""
    try:
        from kubemini.testing.exploring import Progress, explore
    except ModuleNotFoundError as missing:
        raise ConfigError(f"explore: needs {missing.name}; pip install 'kubemini[testing]'") from None
    source = Source.of(names, **cluster)
    began = time.monotonic()
    last = Progress()

    def report(progress: Progress) -> None:
        nonlocal last
        last = progress
        tell(f"{progress.lives} lives, {progress.commits:,} commits, {time.monotonic() - began:.0f} s")

    with _telling() as tell, _executor(jobs, dask) as executor:
        found = explore(source, lives=lives, seed=seed, executor=executor, report=report)
    took = time.monotonic() - began
    what = f"{last.lives} lives, {last.commits:,} commits, {_hours(last.seconds)} of cluster time in {took:.0f} s"
    if found is None:
        print(f"nothing wrong in {what}")
        return 0
    found.save(output)
    print(f"something is wrong, found in {what}:")
    for row in rows(found):
        print(f"  {row}")
    print(f"written to {output}; play it again with: kubemini replay {output}")
    return 1


def arguments(
    *,
    fleet: str | None,
    controllers: str | None,
    pods: str | None,
    kubernetes_version: str | None,
    feature_gates: Sequence[str] | None,
    kueue_config: Path | None,
) -> dict[str, Any]:
    """Return what was given on the command line as plain arguments of a cluster: a file is read, so that a counterexample stands alone. Raise `ConfigError`."""
    from kubemini.cli.options import configuration, gates
    from kubemini.fleets import load_fleet

    given: dict[str, Any] = {"controllers": controllers, "pods": pods, "kubernetes_version": kubernetes_version}
    if fleet is not None:
        nodes = load_fleet(fleet)
        given["fleet"] = nodes if Path(fleet).is_file() else fleet
    if feature_gates:
        given["feature_gates"] = dict(gates(",".join(feature_gates)).given)
    if kueue_config is not None:
        given["kueue"] = configuration(kueue_config, "--kueue-config", "config.kueue.x-k8s.io")
    return {name: value for name, value in given.items() if value is not None}


def rows(found: Counterexample) -> Iterator[str]:
    """Yield what a counterexample is, line by line."""
    finding = found.finding
    where = f" at revision {finding.revision}" if finding.revision else "" if finding.invariant == END else " at rest"
    yield f"{finding.invariant}{where}: {finding.text}"
    yield from plan_rows(found.plan)


def plan_rows(plan: Plan) -> Iterator[str]:
    """Yield what happens in a life."""
    faults = [f"{name} {value:g}" for name, value in plan.to_json()["faults"].items() if value]
    yield f"seed {plan.seed}, {', '.join(faults).replace('_', ' ') or 'no faults of connections'}"
    for step in plan.steps:
        yield f"after {step.after} s: {step.action} ({step.which})"
    if not plan.steps:
        yield "nothing is disturbed"


def _hours(seconds: float) -> str:
    return f"{seconds / 3600:,.1f} h" if seconds >= 3600 else f"{seconds:,.0f} s"


@contextmanager
def _executor(jobs: int, dask: str) -> Generator[Executor | None]:
    """Give what plays batches: this process, a pool of others, or a Dask cluster."""
    if dask:
        try:
            from distributed import Client
        except ModuleNotFoundError:
            raise ConfigError("--dask: needs dask.distributed; pip install distributed") from None
        try:
            client = Client(dask, timeout="10s")
        except OSError as problem:
            raise ConfigError(f"--dask {dask}: no scheduler answers there: {problem}") from None
        with client:
            yield client.get_executor()
    elif jobs == 1:
        yield None
    else:
        # Forked children would share what this process has open
        with ProcessPoolExecutor(jobs or None, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                yield pool
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for process in multiprocessing.active_children():
                    process.terminate()


@contextmanager
def _telling() -> Generator[Callable[[str], None]]:
    """Show how far the search is, on a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda text: None
        return
    with console.status("playing the undisturbed life") as status:
        yield status.update
