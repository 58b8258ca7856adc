"""The committed schema data come from their sources, and from nothing else."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from kubemini.api.schemas import boil


def test_committed_data_are_what_boiling_makes(conformance: Path, tmp_path: Path) -> None:
    """Boiling the sources again gives the very files that are committed."""
    table = conformance.parent / "spec" / "apiserver-fields.tsv"
    if not table.is_file():
        pytest.skip("the table of Go struct fields is not at hand")
    every = list(range(boil.FIRST, boil.LAST + 1))
    try:
        definitions = {minor: boil.read_definitions(minor) for minor in every}
    except PackageNotFoundError:
        pytest.skip("kubernetes-validate is not installed")
    facts = boil.read_facts(table.read_text() + boil.MORE.read_text())
    written = {
        path.name: path.read_text() for path in boil.write(boil.collect(definitions, facts, boil.read_names(boil.NAMES.read_text())), every, tmp_path)
    }
    assert written == {path.name: path.read_text() for path in boil.DATA.glob("*.txt")}


def test_a_line_tells_its_versions_before_its_default() -> None:
    """Each unbroken run of versions is one line; a default stands last, since it may hold blanks."""
    lines = {"! Thing": [31, 32, 33, 34], "a string #1": [31, 33], 'b string #2 default="x y"': [32, 33, 34], "= v1 Thing": [31, 32, 33, 34]}
    assert boil.render("core/v1.Thing", lines, [31, 32, 33, 34]).splitlines() == [
        "Thing",
        "  = v1 Thing",
        "  a string #1 @-31",
        "  a string #1 @33",
        '  b string #2 @32- default="x y"',
    ]


@pytest.mark.parametrize(
    "name, spelled, required, flag",
    [("x", "string", True, "req"), ("x", "string", False, "ptr"), ("x", "[]string", False, ""), ("spec", "core/v1.PodSpec", False, "")],
)
def test_guesses(name: str, spelled: str, required: bool, flag: str) -> None:
    """Where nothing is known of a field, required ones count as always there, others as pointers, so that no zero is lost."""
    assert boil.guess(name, spelled, required) == flag
