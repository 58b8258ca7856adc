"""Counterexamples as files: a scenario, a plan, and what is wrong. Whoever has the file sees the same, byte for byte."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

import kubemini
from kubemini.machinery.errors import ConfigError
from kubemini.testing.plans import Plan
from kubemini.testing.playing import Finding, Outcome, Watcher, play
from kubemini.testing.sources import Source


@dataclass(frozen=True)
class Counterexample:
    """A life in which something is wrong; `digest` is that of its trace, `version` the kubemini that found it."""

    source: Source
    plan: Plan
    finding: Finding
    digest: str = ""
    version: str = kubemini.__version__

    def replay(self, watcher: Watcher) -> Outcome:
        """Play it again while somebody looks on."""
        return play(self.source.scenario(), self.plan, watcher)

    def save(self, path: Path) -> None:
        """Write the file. Raise `ConfigError`."""
        body = {
            "kubemini": self.version,
            "scenario": self.source.to_json(),
            "plan": self.plan.to_json(),
            "finding": asdict(self.finding),
            "digest": self.digest,
        }
        try:
            path.write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
        except OSError as problem:
            raise ConfigError(f"{path}: cannot be written: {problem.strerror or problem}") from None

    @classmethod
    def load(cls, path: Path) -> Counterexample:
        """Read the file. Raise `ConfigError`."""
        try:
            body: Any = orjson.loads(path.read_bytes())
        except OSError as problem:
            raise ConfigError(f"{path}: cannot be read: {problem.strerror or problem}") from None
        except orjson.JSONDecodeError as problem:
            raise ConfigError(f"{path}: is no JSON: {problem}") from None
        try:
            found = body["finding"]
            finding = Finding(str(found["invariant"]), int(found["revision"]), str(found["text"]))
            return cls(Source.from_json(body["scenario"]), Plan.from_json(body["plan"]), finding, str(body["digest"]), str(body["kubemini"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise ConfigError(f"{path}: was not written by `kubemini explore` ({type(problem).__name__}: {problem})") from None
        except ConfigError as problem:
            raise ConfigError(f"{path}: {problem}") from None
