"""Benchmarks: scenarios that measure kubemini against its budgets, for ``kubemini bench`` and the project's own ``bench/``."""

from kubemini.benchmarks.scenario import SCENARIOS, Figure, Scenario, scenario

__all__ = ["SCENARIOS", "Figure", "Scenario", "scenario"]
