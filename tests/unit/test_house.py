"""The house stands: no modules import each other in a circle, not even late or for types alone."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import kubemini

ROOT = Path(kubemini.__file__).parent


def modules() -> dict[str, Path]:
    """Return every module by its name; a package by the name of its folder."""
    found: dict[str, Path] = {}
    for top in (ROOT, *(each for each in ROOT.iterdir() if each.is_symlink())):  # older Pythons do not follow links to folders
        for path in top.rglob("*.py"):
            name = ".".join((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts))
            found[name.removesuffix(".__init__")] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the modules that a module imports, wherever in it."""
    out: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            out.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            whole = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            out.update(name if name in known else node.module for name in whole.values())
    return out & known.keys()


def test_no_modules_import_each_other() -> None:
    """Modules can be put in an order in which each imports only earlier ones."""
    known = modules()
    assert {"kubemini.store.store", "kubemini.controllers.job.controller", "kubemini.api.trees"} <= known.keys()
    order = TopologicalSorter({name: imported(path, known) - {name} for name, path in known.items()})
    try:
        order.prepare()
    except CycleError as found:
        circle = " -> ".join(reversed(found.args[1]))
        raise AssertionError(f"modules import each other: {circle}") from None
