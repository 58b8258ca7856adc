"""What happens to a cluster in a life: a short explicit plan. A plan and a scenario name a run, byte for byte."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kubemini.machinery.errors import ConfigError
from kubemini.sim.faults import PERFECT, Faults


@dataclass(frozen=True, slots=True)
class Step:
    """One disturbance: what (a name in `kubemini.testing.disturbing.ACTIONS`), how many virtual seconds after the one before, and to which of those that are there."""

    after: int
    action: str
    which: int = 0


@dataclass(frozen=True, slots=True)
class Plan:
    """A life: the seed of its interleaving, ids and chance, how bad the controllers' connections are, and what else happens."""

    seed: int = 0
    faults: Faults = PERFECT
    steps: tuple[Step, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return {"seed": self.seed, "faults": asdict(self.faults), "steps": [[step.after, step.action, step.which] for step in self.steps]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """Return the plan that `to_json` wrote. Raise `ConfigError`."""
        try:
            steps = tuple(Step(int(after), str(action), int(which)) for after, action, which in data["steps"])
            return cls(int(data["seed"]), Faults(**{name: float(value) for name, value in data["faults"].items()}), steps)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            raise ConfigError(
                f"plan: is none ({type(problem).__name__}: {problem}); it has a seed, faults, and steps [after, action, which]"
            ) from None
