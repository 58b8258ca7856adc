"""What a scenario is: a named function that returns figures, each with its budget."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `budget` None = none; `better` is "lower" or "higher"."""

    name: str
    value: float
    unit: str
    budget: float | None = None
    better: str = "lower"

    @property
    def within(self) -> bool | None:
        """Whether the budget is kept, None without one."""
        if self.budget is None:
            return None
        return self.value <= self.budget if self.better == "lower" else self.value >= self.budget

    def to_json(self) -> dict[str, Any]:
        """Return the figure as saved."""
        return asdict(self)


Run = Callable[[float], list[Figure]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A benchmark: `run(scale)` measures it at a multiple of its usual size."""

    name: str
    about: str
    run: Run


SCENARIOS: dict[str, Scenario] = {}


def scenario(name: str, about: str) -> Callable[[Run], Run]:
    """Register a function as a scenario."""

    def register(run: Run) -> Run:
        SCENARIOS[name] = Scenario(name, about, run)
        return run

    return register
