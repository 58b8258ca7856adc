"""Fleets: the nodes of a simulated cluster as data, by the name of a preset or from a file."""

from kubemini.fleets.loading import Source, load_fleet
from kubemini.fleets.machines import MACHINES, Machine
from kubemini.fleets.presets import PRESETS, Preset

__all__ = ["MACHINES", "PRESETS", "Machine", "Preset", "Source", "load_fleet"]
