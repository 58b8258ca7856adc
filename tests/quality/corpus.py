"""All mutants, and the scenarios in which they are searched."""

from __future__ import annotations

from typing import Any

from tests.quality import autoscaling_mutants, group_mutants, job_mutants, jobset_mutants, set_mutants
from tests.quality.searching import Mutant, Scenario

MUTANTS: list[Mutant] = [
    mutant for module in (job_mutants, jobset_mutants, set_mutants, group_mutants, autoscaling_mutants) for mutant in module.MUTANTS
]
SCENARIOS: dict[str, Scenario[Any]] = {mutant.scenario.name: mutant.scenario for mutant in MUTANTS}
