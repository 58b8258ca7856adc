"""Whole processes: import, start to ready, idle memory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from kubemini.benchmarks.scenario import Figure, scenario

REPEATS = 5


@contextmanager
def _installed() -> Generator[dict[str, str]]:
    """Yield the environment of children that find their modules compiled, as an installed package's are, whatever this checkout or environment does."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        yield {**environment, "PYTHONPYCACHEPREFIX": folder}


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


@scenario("import", "import kubemini in a fresh interpreter, over an interpreter that imports nothing")
def imported(scale: float) -> list[Figure]:
    """Measure the median of fresh interpreters."""
    with _installed() as environment:

        def once(code: str) -> float:
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=environment)  # noqa: S603
            return time.perf_counter() - began

        once("import kubemini")
        bare = _middle([once("pass") for _ in range(REPEATS)])
        full = _middle([once("import kubemini") for _ in range(REPEATS)])
    return [Figure("import kubemini", max(full - bare, 0.0), "s", 0.1)]


@scenario("serve", "kubemini serve: start to /readyz, and resident memory when idle")
def served(scale: float) -> list[Figure]:
    """Measure the median of fresh servers."""
    with _installed() as environment:
        _serve_once(environment)
        found = [_serve_once(environment) for _ in range(REPEATS)]
    times, memories = ([each[place] for each in found] for place in (0, 1))
    return [Figure("start to ready", _middle(times), "s", 0.6), Figure("idle memory", _middle(memories), "MiB", 60.0)]


def _serve_once(environment: dict[str, str]) -> tuple[float, float]:
    """Return seconds from start to ready and resident MiB of one server."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "kubeconfig"
        began = time.perf_counter()
        command = [sys.executable, "-m", "kubemini", "serve", "--port", "0", "--kubeconfig", str(config)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment)  # noqa: S603
        try:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError("kubemini serve ended before it served")
            spent = time.perf_counter() - began
            time.sleep(0.3)
            return spent, _resident(process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(10)


def _resident(pid: int) -> float:
    """Return the resident memory of a process in MiB (Linux), 0 where it cannot be read."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmRSS:\s+(\d+) kB", text)
    return int(found[1]) / 1024 if found else 0.0


def own_memory() -> float:
    """Return the resident memory of this process in MiB."""
    return _resident(os.getpid())
