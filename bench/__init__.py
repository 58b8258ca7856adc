"""Benchmarks: scenarios that measure kubemini against its budgets, for ``kubemini bench``."""

if __name__ == "bench":
    raise ImportError(
        "import this package as kubemini.benchmarks: the folder bench/ is mapped there, and a second copy of its scenarios would be registered"
    )

from kubemini.benchmarks.scenario import SCENARIOS, Figure, Scenario, scenario

__all__ = ["SCENARIOS", "Figure", "Scenario", "scenario"]
