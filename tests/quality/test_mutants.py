"""Known defects, made again at test time: the promises find every one, and find nothing where nothing was made worse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.quality.corpus import MUTANTS, SCENARIOS
from tests.quality.report import MARKER, names_in
from tests.quality.searching import Mutant, Scenario, search

TABLE = Path(__file__).resolve().parents[2] / "docs" / "mutants.md"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_defect_is_found(mutant: Mutant) -> None:
    """A search with the defect in place finds something wrong."""
    assert search(mutant.scenario, mutant.swaps) is not None, f"{mutant.name}: {mutant.scenario.examples} lives, and nothing was noticed"


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=lambda scenario: scenario.name)
def test_nothing_is_found_without_one(scenario: Scenario[Any]) -> None:
    """The same search of the product as it is finds nothing."""
    assert search(scenario) is None


def test_names_are_unique() -> None:
    """A mutant is known by its name, a scenario by its own."""
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(SCENARIOS[mutant.scenario.name] is mutant.scenario for mutant in MUTANTS)


def test_the_table_lists_exactly_the_mutants() -> None:
    """docs/mutants.md has a row for each mutant, in order: else write it anew with ``python -m tests.quality.report``."""
    text = TABLE.read_text(encoding="utf-8")
    assert MARKER in text
    assert names_in(text) == [mutant.name for mutant in MUTANTS]
