"""Whole processes: import, start to ready, idle memory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kubemini.benchmarks.scenario import Figure, scenario

REPEATS = 5


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


@scenario("import", "import kubemini in a fresh interpreter, over an interpreter that imports nothing")
def imported(scale: float) -> list[Figure]:
    """Measure the median of fresh interpreters."""

    def once(code: str) -> float:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
        return time.perf_counter() - began

    bare = _middle([once("pass") for _ in range(REPEATS)])
    full = _middle([once("import kubemini") for _ in range(REPEATS)])
    return [Figure("import kubemini", max(full - bare, 0.0), "s", 0.1)]


@scenario("serve", "kubemini serve: start to /readyz, and resident memory when idle")
def served(scale: float) -> list[Figure]:
    """Measure the median of fresh servers."""
    times, memories = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "kubeconfig"
            began = time.perf_counter()
            command = [sys.executable, "-m", "kubemini", "serve", "--port", "0", "--kubeconfig", str(config)]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603
            try:
                if process.stdout is None or not process.stdout.readline():
                    raise RuntimeError("kubemini serve ended before it served")
                times.append(time.perf_counter() - began)
                time.sleep(0.3)
                memories.append(_resident(process.pid))
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(10)
    return [Figure("start to ready", _middle(times), "s", 0.6), Figure("idle memory", _middle(memories), "MiB", 60.0)]


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
