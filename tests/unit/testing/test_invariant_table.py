"""docs/invariants.md names every promise, and what it names exists."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from itertools import chain

import pytest

from kubemini.testing.invariants.dns import dns_invariants
from kubemini.testing.invariants.job import job_invariants
from kubemini.testing.invariants.job_exact import Excuses, exact_job_invariants
from kubemini.testing.invariants.jobset import jobset_invariants
from kubemini.testing.invariants.jobset_exact import exact_jobset_invariants
from kubemini.testing.invariants.lws import lws_invariants, timely_lws_invariants
from kubemini.testing.invariants.pod_groups import pod_group_invariants
from kubemini.testing.invariants.statefulset import statefulset_invariants
from tests.conftest import ROOT
from tests.quality.corpus import MUTANTS

PAGE = (ROOT / "docs" / "invariants.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", re.MULTILINE)
NAMED = re.compile(r"`([^`]+)`(†*)")


def rows(heading: str) -> dict[int, str]:
    """Return what holds each promise of a section, by number."""
    _, _, after = PAGE.partition(f"## {heading}\n")
    section = after.split("\n## ")[0]
    return {int(number): cell for number, cell in ROW.findall(section)}


@pytest.mark.parametrize(
    "heading, count", [("Jobs", 23), ("JobSets", 29), ("StatefulSets", 18), ("LeaderWorkerSets", 23), ("Names", 8), ("Groups that preempt", 4)]
)
def test_every_promise_has_a_row(heading: str, count: int) -> None:
    """Each number stands there once, with something that holds it."""
    found = rows(heading)
    assert list(found) == list(range(1, count + 1))
    assert [number for number, cell in found.items() if not NAMED.search(cell)] == []


def exists(name: str) -> bool:
    """Tell whether a file has a test or class of that name, after two colons."""
    path, _, inside = name.partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return inside in {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


@pytest.mark.parametrize(
    "heading, module",
    [
        ("Jobs", "job"),
        ("JobSets", "jobset"),
        ("StatefulSets", "statefulset"),
        ("LeaderWorkerSets", "lws"),
        ("Names", "dns"),
        ("Groups that preempt", "pod_groups"),
    ],
)
def test_what_is_named_exists(heading: str, module: str) -> None:
    """A class is an invariant of the module that its daggers say, a path and a name are a test or class in that file."""
    lossless = {type(each).__name__ for each in exact_job_invariants(Excuses())}
    timely = {type(each).__name__ for each in timely_lws_invariants()}
    always = {type(each).__name__ for each in exact_job_invariants(Excuses(), lossless=False)}
    for cell in rows(heading).values():
        for name, daggers in NAMED.findall(cell):
            if "::" in name:
                assert exists(name), name
                continue
            where = f"kubemini.testing.invariants.{module}{'_exact' if daggers and module.startswith('job') else ''}"
            assert hasattr(import_module(where), name), f"{name} is not in {where}"
            if module == "job" and daggers:
                assert name in (lossless - always if daggers == "††" else always), f"{name} has the wrong daggers"
            if module == "lws":
                assert bool(daggers) == (name in timely), f"{name} has the wrong daggers"


def test_every_invariant_has_a_row() -> None:
    """No invariant is forgotten, but those that go beyond the numbered promises."""
    lists = [job_invariants(), exact_job_invariants(Excuses()), jobset_invariants(), exact_jobset_invariants(Excuses())]
    lists += (statefulset_invariants(), lws_invariants(), timely_lws_invariants(), dns_invariants(), pod_group_invariants())
    headings = ("Jobs", "JobSets", "StatefulSets", "LeaderWorkerSets", "Names", "Groups that preempt")
    named = {name for heading in headings for cell in rows(heading).values() for name, _ in NAMED.findall(cell)}
    unnamed = {type(each).__name__ for each in chain(*lists)} - named
    assert unnamed == {"Pods", "Verdicts", "PerIndex", "Belonging", "Resumed"}


def test_every_reported_defect_has_a_mutant_or_a_test() -> None:
    """What the last table names is a mutant, or a test that exists."""
    _, _, section = PAGE.partition("## Reported defects\n")
    cells = re.findall(r"^\| [a-z]+#[^|]+ \| [^|]+ \| ([^|]+) \|$", section, re.MULTILINE)
    assert len(cells) > 40
    mutants = {mutant.name for mutant in MUTANTS}
    named = [name for cell in cells for name, _ in NAMED.findall(cell)]
    assert [name for name in named if name not in mutants and not ("::" in name and exists(name))] == []
    assert all(NAMED.search(cell) for cell in cells)
