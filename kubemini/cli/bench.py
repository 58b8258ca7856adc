"""``kubemini bench``: runs scenarios, prints figures beside their budgets, compares with results saved before."""

from __future__ import annotations

import gc
import json
import platform
import re
import sys
from pathlib import Path

from kubemini.benchmarks import SCENARIOS, Figure
from kubemini.machinery.errors import ConfigError


def run(*, only: str, save: Path | None, compare: Path | None, scale: float) -> None:
    """Run the scenarios whose name matches. Figures are of this machine at this moment: compare runs, not numbers of other machines."""
    from kubemini.benchmarks import beside, clusters, http, processes, queues, store

    del beside, clusters, http, processes, queues, store
    try:
        chosen = [each for each in SCENARIOS.values() if re.search(only, each.name)]
    except re.error as problem:
        raise ConfigError(f"--only {only}: is no regular expression: {problem}") from None
    if not chosen:
        raise ConfigError(f"--only {only}: matches no scenario; there are {', '.join(SCENARIOS)}")
    before = _saved(compare) if compare is not None else {}
    results: dict[str, list[Figure]] = {}
    for each in chosen:
        print(f"{each.name}: {each.about}", flush=True)
        gc.collect()  # what the scenario before has left is not this one's
        results[each.name] = each.run(scale)
        for figure in results[each.name]:
            print(_row(figure, before.get(f"{each.name}/{figure.name}")), flush=True)
    if save is not None:
        body = {
            "python": sys.version.split()[0],
            "machine": platform.machine(),
            "scale": scale,
            "figures": {f"{name}/{figure.name}": figure.to_json() for name, figures in results.items() for figure in figures},
        }
        try:
            save.write_text(json.dumps(body, indent=1) + "\n")
        except OSError as problem:
            raise ConfigError(f"--save {save}: cannot be written: {problem.strerror or problem}") from None


def _saved(path: Path) -> dict[str, float]:
    try:
        body = json.loads(path.read_text())
        return {name: float(figure["value"]) for name, figure in body["figures"].items()}
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ConfigError(f"--compare {path}: is no saved result of `kubemini bench --save`: {problem}") from None


def _row(figure: Figure, before: float | None) -> str:
    shown = f"{figure.value:,.2f}" if figure.value < 1000 else f"{figure.value:,.0f}"
    row = f"  {figure.name:<24}{shown:>12} {figure.unit:<8}"
    if figure.budget is not None:
        verdict = "within" if figure.within else "over" if figure.better == "lower" else "under"
        row += f"{verdict} the budget of {figure.budget:,g}".ljust(34)
    if before:
        row += f"{figure.value / before:.2f}x of before"
    return row.rstrip()
