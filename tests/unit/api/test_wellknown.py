"""Well-known names are documented, and complete over what a real control plane writes."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

MODULES = [import_module(f"kubemini.api.wellknown.{name}") for name in ("job", "jobset", "kubernetes", "kueue", "lws")]
GOLDEN = Path(__file__).resolve().parents[4] / "shared" / "conformance" / "golden"
OURS = re.compile(
    r'"((?:[a-z]+\.)*(?:jobset\.sigs|leaderworkerset\.sigs|kueue\.x-k8s|batch\.kubernetes|apps\.kubernetes|statefulset\.kubernetes)[a-z0-9.-]*/[A-Za-z-]+)"'
)


def values() -> set[str]:
    """Return the values of all constants."""
    return {value for module in MODULES for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_documented(module: object) -> None:
    """Every constant has one line on its meaning."""
    body = ast.parse(Path(str(getattr(module, "__file__"))).read_text(encoding="utf-8")).body  # noqa: B009 - a module is an object here
    for statement, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(statement, ast.AnnAssign):
            assert isinstance(after, ast.Expr), ast.unparse(statement)
            assert "\n" not in ast.literal_eval(after.value), ast.unparse(statement)


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="recorded end states are not here")
def test_complete() -> None:
    """Every key of ours that a real control plane wrote is a constant."""
    written = {key for path in sorted(GOLDEN.rglob("*.json")) for key in OURS.findall(path.read_text(encoding="utf-8"))}
    assert written
    assert sorted(written - values()) == []
