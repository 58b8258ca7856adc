"""The layout has traps that are silent when they snap: a package that no wheel holds, a tool that reads a third of the code."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

import kubemini

ROOT = Path(__file__).resolve().parents[2]
MAPPED = {"kubemini.api": "api", "kubemini.benchmarks": "bench", "kubemini.controllers": "controllers"}
"""Packages whose code stands at the top of the repository, and is linked to inside `kubemini/`."""


@cache
def pyproject() -> dict[str, Any]:
    """Return pyproject.toml as a tree."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


@cache
def package_folders() -> dict[str, Path]:
    """Return every folder with Python files by the name under which it imports."""
    found: dict[str, Path] = {}
    for name, top in {"kubemini": "kubemini", **MAPPED}.items():
        for path in (ROOT / top).rglob("*.py"):
            if not any(parent.is_symlink() for parent in path.parents):
                inner = path.parent.relative_to(ROOT / top).parts
                found[".".join((name, *inner))] = path.parent
    return dict(sorted(found.items()))


def modules() -> list[Path]:
    """Return every Python file of the package."""
    return [path for folder in package_folders().values() for path in sorted(folder.glob("*.py"))]


def test_every_package_is_listed() -> None:
    """`packages` in pyproject.toml names each folder with Python files, in order, and nothing else."""
    listed = pyproject()["tool"]["setuptools"]["packages"]
    missing = [f'    "{name}",' for name in package_folders() if name not in listed]
    gone = [name for name in listed if name not in package_folders()]
    assert not missing, "add to packages in pyproject.toml:\n" + "\n".join(missing)
    assert not gone, f"take off packages in pyproject.toml: {gone}"
    assert listed == sorted(listed)


def test_every_package_folder_has_an_init() -> None:
    """A folder with modules is a regular package: namespace packages confuse type checkers and wheels."""
    bare = [str(folder.relative_to(ROOT)) for folder in package_folders().values() if not (folder / "__init__.py").exists()]
    assert bare == []


def test_data_files_are_packaged() -> None:
    """Each file beside the code is matched by `package-data`, and each pattern there matches a file."""
    setuptools = pyproject()["tool"]["setuptools"]
    patterns = {(package, pattern) for package, globs in setuptools["package-data"].items() for pattern in globs}
    used: set[tuple[str, str]] = set()
    lost: list[str] = []
    for name, top in {"kubemini": "kubemini", **MAPPED}.items():
        for path in sorted((ROOT / top).rglob("*")):
            inner = path.relative_to(ROOT / top)
            behind_link = any(parent.is_symlink() for parent in (path, *path.parents))
            if not path.is_file() or path.suffix in (".py", ".pyc") or behind_link or "__pycache__" in inner.parts:
                continue
            matching = {
                (package, pattern)
                for package, pattern in patterns
                if f"{name}.{'.'.join(inner.parts)}".startswith(f"{package}.")
                and PurePosixPath(*(*name.split("."), *inner.parts)[package.count(".") + 1 :]).match(pattern)
            }
            used |= matching
            if not matching:
                lost.append(str(path.relative_to(ROOT)))
    assert lost == [], "no pattern in package-data of pyproject.toml covers these files"
    assert patterns - used == set(), "these patterns in package-data match no file"


@pytest.mark.parametrize("name,folder", MAPPED.items())
def test_mapped_packages_are_linked(name: str, folder: str) -> None:
    """`kubemini/api`, `kubemini/benchmarks` and `kubemini/controllers` are relative links to the folders that the wheel maps there."""
    link = ROOT / name.replace(".", "/")
    assert link.is_symlink()
    assert link.readlink() == Path("..") / folder
    assert pyproject()["tool"]["setuptools"]["package-dir"][name] == folder


@pytest.mark.parametrize("name,folder", MAPPED.items())
def test_bare_import_is_refused(name: str, folder: str) -> None:
    """`import api` from the repository root is an error that names `kubemini.api`: a second copy of each class would not compare equal."""
    done = subprocess.run([sys.executable, "-c", f"import {folder}"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"ImportError: import this package as {name}" in done.stderr


def test_development_install_is_a_plain_path() -> None:
    """An editable install works by a path entry: type checkers see nothing of import hooks and are green over a third of the code."""
    hooks = [finder for finder in sys.meta_path if "__editable__" in str(getattr(finder, "__module__", ""))]
    assert hooks == [], "install with: pip install -e '.[dev]' --config-settings editable_mode=compat"
    assert kubemini.__file__ == str(ROOT / "kubemini" / "__init__.py"), "the tests run against another copy of kubemini"


def third_party_imports(path: Path) -> set[str]:
    """Return the top-level names that a file imports from outside the standard library and this package, at any depth."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found - sys.stdlib_module_names - {"kubemini"}


def normal(distribution: str) -> str:
    """Return a distribution's name in its normal form, without version, extras and markers.

    >>> normal("Kubernetes_Validate[x]>=1.36; python_version > '3'")
    'kubernetes-validate'
    """
    name = re.split(r"[\s\[<>=!~;]", distribution, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def test_every_import_is_declared() -> None:
    """Whatever the package imports, at the top or late, comes from a distribution that pyproject.toml names (the extra `dev` does not count)."""
    project = pyproject()["project"]
    declared = {normal(line) for line in project["dependencies"]}
    declared |= {normal(line) for extra, lines in project["optional-dependencies"].items() if extra not in ("dev", "clients") for line in lines}
    owners = metadata.packages_distributions()
    undeclared = sorted(
        f"{path.relative_to(ROOT)}: {name} (of {owners.get(name)})"
        for path in modules()
        for name in third_party_imports(path)
        if not {normal(owner) for owner in owners.get(name, [])} & declared
    )
    assert undeclared == []


def test_every_required_distribution_is_imported() -> None:
    """A required dependency that nothing imports is taken out again."""
    owners = metadata.packages_distributions()
    used = {normal(owner) for path in modules() for name in third_party_imports(path) for owner in owners.get(name, [])}
    unused = sorted({normal(line) for line in pyproject()["project"]["dependencies"]} - used)
    assert unused == []


def loaded_by(statement: str, *blocked: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has loaded after `statement`, with some distributions out of reach."""
    code = (
        f"import json, sys\nsys.modules.update(dict.fromkeys({blocked!r}))\n{statement}\nprint(json.dumps([n for n, m in sys.modules.items() if m]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_import_is_light() -> None:
    """`import kubemini` loads none of the heavy dependencies: they come in with what uses them."""
    heavy = {"aiohttp", "cryptography", "hypothesis", "jsonpatch", "pydantic", "pytest", "rich", "trustme", "typer"}
    assert loaded_by("import kubemini") & heavy == set()


@pytest.mark.parametrize("module", ["kubemini.cluster", "kubemini.cli"])
def test_extras_are_optional(module: str) -> None:
    """The cluster and the commands import without any of the extras."""
    loaded_by(f"import {module}", "dnslib", "hypothesis", "kubernetes_validate", "prometheus_client", "pytest", "uvloop")
