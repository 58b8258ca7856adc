"""Searching: what is wrong is found, made short, and is the same however many play; the file plays again byte for byte."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kubemini.machinery.errors import ConfigError
from kubemini.testing.counterexamples import Counterexample
from kubemini.testing.exploring import Progress, explore
from kubemini.testing.plans import Plan, Step
from kubemini.testing.playing import Finding
from kubemini.testing.sources import Source

MODULE = """
from kubemini.testing.playing import Scenario

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "work", "namespace": "default"},
    "spec": {"backoffLimit": 9, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}},
}


async def fails_once_at_most(cluster):
    jobs = await cluster.list("job")
    assert all(job["status"].get("failed", 0) < 2 for job in jobs), "it failed twice"


FRAGILE = Scenario([JOB], check=fails_once_at_most, cluster={"controllers": "*,-kueue"})
SOUND = Scenario([JOB], cluster={"controllers": "*,-kueue"})
"""
SHORTEST = [("fail pod", 0), ("fail pod", 0)]


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str], Source]:
    """Return sources of the scenarios above by name."""
    path = tmp_path / "works.py"
    path.write_text(MODULE)
    return lambda name: Source.of([f"{path}:{name}"])


def test_what_is_found_is_short(scenario: Callable[[str], Source]) -> None:
    """Two crashes are needed: two are left of what was drawn, with the simplest of all else."""
    reports: list[Progress] = []
    found = explore(scenario("FRAGILE"), lives=100, report=reports.append)
    assert found is not None
    assert [(step.action, step.which) for step in found.plan.steps] == SHORTEST
    assert found.plan.seed == 0
    assert not any(found.plan.to_json()["faults"].values())
    assert found.finding.text == "AssertionError: it failed twice"
    assert reports[-1].commits > reports[-1].lives > 0


def test_the_same_is_found_by_many(scenario: Callable[[str], Source]) -> None:
    """What is found follows from the seed, not from who plays."""
    alone = explore(scenario("FRAGILE"), lives=75, seed=3)
    with ThreadPoolExecutor(1) as pool:
        assert explore(scenario("FRAGILE"), lives=75, seed=3, executor=pool) == alone


def test_nothing_is_found_where_all_is_well(scenario: Callable[[str], Source]) -> None:
    """All lives are played, in batches."""
    reports: list[Progress] = []
    assert explore(scenario("SOUND"), lives=30, report=reports.append) is None
    assert [each.lives for each in reports] == [25, 30]


def test_a_manifest_that_is_refused() -> None:
    """A manifest that the API does not take is the user's error, not a finding."""
    with pytest.raises(ConfigError, match=r"the API refuses the scenario: .*spec\.containers: Required value"):
        explore(Source(({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},)))


def kubemini(*arguments: str, where: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a folder."""
    return subprocess.run([sys.executable, "-m", "kubemini", *arguments], cwd=where, capture_output=True, text=True, check=False)


def test_on_the_command_line(scenario: Callable[[str], Source], tmp_path: Path) -> None:
    """Processes search, the counterexample is told and written, and plays again byte for byte."""
    del scenario  # it has written the file
    done = kubemini("explore", "works.py:FRAGILE", "--lives", "100", "--jobs", "2", where=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("something is wrong, found in ")
    assert lines[1:3] == ["  end of the life: AssertionError: it failed twice", "  seed 0, no faults of connections"]
    assert lines[-1] == "written to counterexample.json; play it again with: kubemini replay counterexample.json"
    again = kubemini("replay", "counterexample.json", "--only", "jobs|pods", where=tmp_path)
    assert (again.returncode, again.stderr) == (1, "")
    assert again.stdout.count(" crashes") == 2
    assert re.search(r"update pods default/work-\w+  status.phase: \w+ → Failed", again.stdout)
    assert again.stdout.splitlines()[-1].endswith(" commits, byte for byte.")
    end = kubemini("replay", "counterexample.json", "--last", "1", where=tmp_path).stdout.splitlines()
    assert end[0].endswith(" lines before")
    assert end[1].endswith("the cluster is at rest")


def test_all_is_well_on_the_command_line(scenario: Callable[[str], Source], tmp_path: Path) -> None:
    """Nothing is written then, and the status is 0."""
    del scenario
    done = kubemini("explore", "works.py:SOUND", "--lives", "3", "--jobs", "1", where=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("nothing wrong in 3 lives, ")
    assert not (tmp_path / "counterexample.json").exists()


EXAMPLE = Counterexample(Source((), "works.py:SOUND"), Plan(1, steps=(Step(0, "fail pod", 0),)), Finding("some promise", 1200, "was broken"), "00")


def test_a_counterexample_that_is_none_any_more(scenario: Callable[[str], Source], tmp_path: Path) -> None:
    """What was mended since ends with 0, and says so."""
    del scenario
    EXAMPLE.save(tmp_path / "old.json")
    done = kubemini("replay", "old.json", where=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("It is all well now")


def test_files_keep_everything(tmp_path: Path) -> None:
    """A counterexample is read as it was written, manifests and all."""
    example = replace(
        EXAMPLE, source=Source(({"kind": "Job", "metadata": {"name": "é"}},), "", {"fleet": "cpu:2", "feature_gates": {"RestartJob": True}})
    )
    example.save(tmp_path / "x.json")
    assert Counterexample.load(tmp_path / "x.json") == example


@pytest.mark.parametrize(
    "change, text",
    [
        ({"plan": {"seed": 1, "steps": []}}, "plan: is none (KeyError: 'faults')"),
        ({"scenario": {}}, "scenario: is none (KeyError: 'manifests')"),
        ({"finding": None}, "was not written by `kubemini explore`"),
    ],
)
def test_files_of_others_are_refused(tmp_path: Path, change: dict[str, Any], text: str) -> None:
    """What is no counterexample is refused in one line that names the file."""
    path = tmp_path / "x.json"
    EXAMPLE.save(path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ConfigError) as problem:
        Counterexample.load(path)
    assert str(problem.value).startswith(f"{path}: ")
    assert text in str(problem.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    """Nor can a missing file be read, or one be written nowhere."""
    with pytest.raises(ConfigError, match=r"no\.json: cannot be read: No such file"):
        Counterexample.load(tmp_path / "no.json")
    with pytest.raises(ConfigError, match="cannot be written"):
        EXAMPLE.save(tmp_path / "no" / "where.json")
