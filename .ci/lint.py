"""Run every static check, all of them even when one fails: ruff, formatting, mypy, pyright, layer contracts, the wheel.

A type checker that overlooks files is green over code that it never read (symlinked folders and import hooks have done
that to this layout), so the number of files that each one reports is compared with the number on disk.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
PRODUCT = ("api", "bench", "controllers", "kubemini")
"""The folders of the package; `kubemini/api`, `kubemini/benchmarks` and `kubemini/controllers` are symlinks to the first three."""


def main() -> int:
    """Run the checks in order, print what failed, return the exit status."""
    checks: dict[str, Callable[[], bool]] = {
        "ruff": lambda: _run("ruff", "check", "--quiet"),
        "format": lambda: _run("ruff", "format", "--check", "--quiet"),
        "layers": layers,
        "mypy": mypy,
        "pyright": pyright,
        "wheel": lambda: _run("python", ".ci/wheel.py"),
    }
    failed: list[str] = []
    for name, check in checks.items():
        start = time.monotonic()
        passed = check()
        print(f"{name}: {'ok' if passed else 'FAILED'} ({time.monotonic() - start:.0f} s)", flush=True)
        if not passed:
            failed.append(name)
    print(f"lint: {len(checks) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def layers() -> bool:
    """Check the contracts of import-linter over the import graph that it builds (by grimp)."""
    done = _capture("lint-imports", "--no-cache")
    if done.returncode:
        print(done.stdout[done.stdout.find("Contracts\n") :], done.stderr)
    graph = grimp.build_graph("kubemini", cache_dir=None)
    return _saw_all("import-linter", len(graph.modules), PRODUCT) and done.returncode == 0


def mypy() -> bool:
    """Check types with mypy; its verbose log names the files that it reads."""
    done = _capture("mypy", "--verbose")
    print(done.stdout, end="")
    if done.returncode > 1:
        print(done.stderr)
    seen = set(re.findall(r"^LOG:\s+Found source:\s+BuildSource\(path='([^']+\.py)'", done.stderr, re.MULTILINE))
    return _saw_all("mypy", len(seen), (*PRODUCT, "tests")) and done.returncode == 0


def pyright() -> bool:
    """Check types with pyright."""
    done = _capture("pyright", "--outputjson")
    try:
        report = json.loads(done.stdout)
    except ValueError:
        print(done.stdout, done.stderr)
        return False
    for entry in report["generalDiagnostics"]:
        start = entry.get("range", {}).get("start", {"line": -1})
        print(f"{entry.get('file', '')}:{start['line'] + 1}: {entry['severity']}: {entry['message']} ({entry.get('rule', '')})")
    return _saw_all("pyright", report["summary"]["filesAnalyzed"], (*PRODUCT, "tests")) and report["summary"]["errorCount"] == 0


def _saw_all(tool: str, seen: int, folders: tuple[str, ...]) -> bool:
    there = sum(len(_files(ROOT / folder)) for folder in folders)
    if seen != there:
        print(f"{tool} has read {seen} files and {there} are on disk in {', '.join(folders)}: it must see them all (pyproject.toml says how)")
    return seen == there


def _files(folder: Path) -> list[Path]:
    """Return the Python files of a folder, without those behind symlinks in it."""
    return [path for path in folder.rglob("*.py") if not any(parent.is_symlink() for parent in path.parents)]


def _run(name: str, *args: str) -> bool:
    return subprocess.run([BIN / name, *args], cwd=ROOT, check=False).returncode == 0


def _capture(name: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BIN / name, *args], cwd=ROOT, check=False, capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main())
