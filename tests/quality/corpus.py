"""All mutants, and the scenarios in which they are searched."""

from __future__ import annotations

from typing import Any

from tests.quality import job_mutants, jobset_mutants
from tests.quality.searching import Mutant, Scenario

MUTANTS: list[Mutant] = [*job_mutants.MUTANTS, *jobset_mutants.MUTANTS]
SCENARIOS: dict[str, Scenario[Any]] = {mutant.scenario.name: mutant.scenario for mutant in MUTANTS}
