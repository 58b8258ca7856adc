"""Build the wheel, unpack it into an empty folder, and use it from there, where the work tree is out of sight.

The work tree has symlinks that a wheel has not; what works here may be missing there. So every module of the tree must be
in the wheel and import, and the command must start.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (("api", "kubemini/api"), ("bench", "kubemini/benchmarks"), ("controllers", "kubemini/controllers"), ("kubemini", "kubemini"))
PROBE = """
import importlib, pkgutil, sys
sys.path.insert(0, sys.argv[1])
import kubemini
assert kubemini.__file__.startswith(sys.argv[1]), f"imported {kubemini.__file__} in place of the wheel"
for module in pkgutil.walk_packages(kubemini.__path__, "kubemini."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
"""


def main() -> int:
    """Build, compare, import; print what is wrong and return the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = _build(Path(folder))
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(unpacked := Path(folder) / "unpacked")
            there = {name for name in archive.namelist() if name.startswith("kubemini/")}
        missing, surplus = sorted(_expected() - there), sorted(there - _expected())
        for name in missing:
            print(f"wheel: {name} is missing: see packages and package-data in pyproject.toml")
        for name in surplus:
            print(f"wheel: {name} is in no folder of the package")
        # -P: without the current folder; the dependencies come from this environment.
        probe = subprocess.run([sys.executable, "-P", "-c", PROBE, unpacked], cwd=folder, check=False)
        return 1 if missing or surplus or probe.returncode else 0


def _build(folder: Path) -> Path:
    """Build from a copy without the symlinks, as on a machine that has none."""
    copy = folder / "source"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    links = {"kubemini/api", "kubemini/benchmarks", "kubemini/controllers"}
    for name in ("api", "bench", "controllers", "kubemini"):
        shutil.copytree(
            ROOT / name, copy / name, ignore=lambda parent, names: [n for n in names if n == "__pycache__" or f"{Path(parent).name}/{n}" in links]
        )
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, copy]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return next(folder.glob("*.whl"))


def _expected() -> set[str]:
    found: set[str] = set()
    for folder, prefix in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            relative = path.relative_to(ROOT / folder)
            behind_link = folder == "kubemini" and relative.parts[0] in ("api", "benchmarks", "controllers")
            if path.is_file() and not behind_link and "__pycache__" not in relative.parts:
                found.add(f"{prefix}/{relative.as_posix()}")
    return found


if __name__ == "__main__":
    sys.exit(main())
