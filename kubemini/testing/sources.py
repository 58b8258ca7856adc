"""Where a scenario comes from: manifests, or a name in a Python file. Plain data, so that other processes and a file can have it."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ConfigError
from kubemini.manifests import load
from kubemini.testing.playing import Scenario

FLEET = "cpu"
"""Where a scenario runs when nothing else is said."""


@dataclass(frozen=True)
class Source:
    """A scenario as data: its manifests, or ``FILE.py:NAME`` (or ``module:NAME``), and arguments of the cluster over the scenario's own."""

    manifests: tuple[Tree, ...] = ()
    reference: str = ""
    cluster: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, names: Sequence[str], **cluster: Any) -> Source:
        """Return the source that a user means by paths of manifests, or by one ``FILE.py:NAME``. Raise `ConfigError`."""
        references = [name for name in names if ":" in name and not Path(name).exists()]
        if references and len(names) > 1:
            raise ConfigError(f"scenario {references[0]}: stands alone; give manifests, or one FILE.py:NAME")
        if references:
            source = cls((), references[0], cluster)
            source.scenario()
            return source
        return cls(tuple(document for name in names for document in load(Path(name))), "", cluster)

    def scenario(self) -> Scenario:
        """Return the scenario. Raise `ConfigError` for a file or name that is not there."""
        on_nodes = {"fleet": FLEET, **self.cluster}
        if not self.reference:
            return Scenario(self.manifests, cluster=on_nodes)
        found = _named(self.reference)
        if isinstance(found, Scenario):
            return replace(found, cluster={**on_nodes, **found.cluster, **self.cluster})
        if inspect.iscoroutinefunction(found):
            return Scenario(setup=found, cluster=on_nodes)
        raise ConfigError(f"scenario {self.reference}: is a {type(found).__name__}; expected a Scenario, or an async function that takes the cluster")

    def to_json(self) -> dict[str, Any]:
        """Return the source as plain data."""
        return {"manifests": list(self.manifests), "reference": self.reference, "cluster": dict(self.cluster)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Source:
        """Return the source that `to_json` wrote. Raise `ConfigError`."""
        try:
            return cls(tuple(data["manifests"]), str(data["reference"]), dict(data["cluster"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise ConfigError(
                f"scenario: is none ({type(problem).__name__}: {problem}); it has manifests, a reference, and arguments of the cluster"
            ) from None


def _named(reference: str) -> Any:
    place, _, name = reference.rpartition(":")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except (ImportError, SyntaxError) as problem:
        raise ConfigError(f"scenario {reference}: {place} cannot be imported: {problem}") from None
    try:
        return getattr(module, name)
    except AttributeError:
        known = [key for key, value in vars(module).items() if isinstance(value, Scenario)]
        hint = f"; there are {', '.join(known)}" if known else ""
        raise ConfigError(f"scenario {reference}: {place} has no {name!r}{hint}") from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ImportError("there is no such file")
    name = f"kubemini_scenario_{path.stem}"
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("it is no Python file")
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
