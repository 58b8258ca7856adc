"""Options that several commands have, from text to what a cluster takes. Each raises `ConfigError` that names the option and the mend."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from kubemini.machinery.duration import seconds
from kubemini.machinery.errors import ConfigError
from kubemini.runtime.gates import DEFAULTS, FeatureGates


def duration(text: str, flag: str) -> float:
    """Return the seconds of a duration."""
    try:
        found = seconds(text)
    except ValueError:
        found = 0.0
    if found <= 0:
        raise ConfigError(f"{flag} {text}: is no duration; write 1h, or 30m")
    return found


def gates(text: str) -> FeatureGates:
    """Return feature gates; say which of them nothing here depends on."""
    try:
        found = FeatureGates.parse(text)
    except ValueError as problem:
        raise ConfigError(str(problem)) from None
    for name in found.unknown:
        like = get_close_matches(name, DEFAULTS, n=1)
        hint = f"; did you mean {like[0]}?" if like else ""
        print(f"kubemini: warning: --feature-gates: nothing here depends on {name}{hint}", file=sys.stderr)
    return found


def configuration(path: Path | None, flag: str, group: str) -> dict[str, Any]:
    """Return an operator's own configuration file, {} where none is given."""
    if path is None:
        return {}
    import yaml

    try:
        tree = yaml.safe_load(path.read_text())
    except OSError as problem:
        raise ConfigError(f"{flag} {path}: cannot be read: {problem.strerror or problem}") from None
    except (UnicodeDecodeError, yaml.YAMLError) as problem:
        raise ConfigError(f"{flag} {path}: is no YAML: {' '.join(str(problem).split())}") from None
    if not isinstance(tree, dict) or tree.get("kind") != "Configuration" or not str(tree.get("apiVersion", "")).startswith(f"{group}/"):
        raise ConfigError(f"{flag} {path}: must be one object of kind Configuration ({group})")
    return tree
