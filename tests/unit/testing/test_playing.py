"""Playing a life: what is wrong is found where it happens, and only that."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kubemini.api.resources import PODS
from kubemini.machinery.errors import ConfigError
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import Faults
from kubemini.store import Change
from kubemini.testing.invariants import View
from kubemini.testing.plans import Plan, Step
from kubemini.testing.playing import END, Scenario, play
from kubemini.testing.sources import Source

TRAIN = Path(__file__).parents[3] / "docs" / "examples" / "train.yaml"
GPUS = {"fleet": "h100-2racks"}


class NobodyFails:
    """No pod ever fails: a promise that nobody can keep."""

    name = "nobody fails"

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Look at pods."""
        if table == PODS.storage and change.new is not None and change.new.obj["status"].get("phase") == "Failed":
            yield f"{change.key} failed"

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more."""
        return ()


class Notes:
    """Writes down what it sees: steps, how many commits each table had, the last revision."""

    def __init__(self) -> None:
        self.steps: list[tuple[float, str]] = []
        self.tables: dict[str, int] = {}
        self.last = 0

    def step(self, now: float, text: str) -> None:
        """Note a step."""
        self.steps.append((now, text))

    def commit(self, now: float, table: str, change: Change) -> None:
        """Count a commit."""
        self.tables[table] = self.tables.get(table, 0) + 1
        self.last = change.revision


def test_a_good_life() -> None:
    """Nothing is found in a life of a set that restarts; it is deleted at the end, and who looks on sees every step and commit."""
    notes = Notes()
    outcome = play(Scenario([TRAIN], cluster=GPUS), Plan(3, steps=(Step(30, "fail pod", 2),)), notes)
    assert outcome.finding is None
    assert [text for _, text in notes.steps if "train" not in text] == [
        "the scenario begins",
        "nothing is disturbed any more",
        "the cluster is at rest",
        "all that was applied is deleted",
    ]
    assert sum(notes.tables.values()) == outcome.commits > 100
    assert notes.tables["jobs.batch"] > 10


def test_the_same_life_twice() -> None:
    """A plan and a scenario name a run: the digests of two are equal, and another seed's differs."""
    rough = Faults(watch_delay=0.3, request_delay=0.03, lost_before=0.02, lost_after=0.02, conflict=0.03)
    digests = [play(Scenario([TRAIN], cluster=GPUS), Plan(seed, rough, (Step(5, "restart", 1),)), Notes()).digest for seed in (4, 4, 5)]
    assert digests[0] == digests[1] != digests[2]


def test_a_broken_promise_ends_the_life() -> None:
    """A violation is found at its commit, and nothing happens after it."""
    notes = Notes()
    outcome = play(Scenario([TRAIN], invariants=lambda: [NobodyFails()], cluster=GPUS), Plan(3, steps=(Step(30, "fail pod", 2),)), notes)
    assert outcome.finding is not None
    assert outcome.finding.invariant == "nobody fails"
    assert outcome.finding.text.endswith("failed")
    assert outcome.finding.revision == notes.last
    assert notes.steps[-1][1].endswith(" crashes")


@pytest.mark.parametrize("name", ["setup", "check"])
def test_what_a_scenario_asserts(name: str) -> None:
    """What a scenario's own functions raise is a finding, in their words."""

    async def wrong(cluster: SimCluster) -> None:
        raise AssertionError("that is not so")

    functions: dict[str, Any] = {name: wrong}
    outcome = play(Scenario(**functions), Plan())
    assert outcome.finding is not None
    assert (outcome.finding.invariant, outcome.finding.text) == (END, "AssertionError: that is not so")


def test_a_refused_manifest() -> None:
    """What the API refuses is no finding."""
    outcome = play(Scenario([{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}]), Plan())
    assert outcome.finding is None
    assert outcome.refusal is not None
    assert "spec.containers: Required value" in str(outcome.refusal)


def test_a_plan_survives_being_written() -> None:
    """Plans are plain data and back."""
    plan = Plan(7, Faults(watch_delay=0.5, conflict=0.1), (Step(5, "fail pod", 2), Step(0, "restart", 1)))
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize("data", [{}, {"seed": 1, "faults": {"rain": 1.0}, "steps": []}, {"seed": 1, "faults": {}, "steps": [["soon"]]}])
def test_what_is_no_plan(data: dict[str, Any]) -> None:
    """Anything else is refused in one line."""
    with pytest.raises(ConfigError, match=r"^plan: is none "):
        Plan.from_json(data)


MODULE = """
from kubemini.testing.playing import Scenario
GANG = Scenario(cluster={"fleet": "h100-2racks", "seed_of_mine": 1})
NUMBER = 1
async def begin(cluster): ...
"""


def test_scenarios_of_python_files(tmp_path: Path) -> None:
    """A scenario object keeps its own cluster but for what is said; an async function is one by itself, on the default fleet."""
    path = tmp_path / "gangs.py"
    path.write_text(MODULE)
    found = Source.of([f"{path}:GANG"], controllers="*,-kueue").scenario()
    assert found.cluster == {"fleet": "h100-2racks", "seed_of_mine": 1, "controllers": "*,-kueue"}
    begin = Source.of([f"{path}:begin"]).scenario()
    assert begin.setup is not None
    assert begin.cluster == {"fleet": "cpu"}


@pytest.mark.parametrize(
    "names, text",
    [
        (["{}:NOBODY"], "has no 'NOBODY'; there are GANG"),
        (["{}:NUMBER"], "is a int; expected a Scenario, or an async function that takes the cluster"),
        (["{}:GANG", "x.yaml"], "stands alone; give manifests, or one FILE.py:NAME"),
        (["nowhere.py:GANG"], "nowhere.py cannot be imported: there is no such file"),
        (["no.such.module:GANG"], "no.such.module cannot be imported: No module named 'no'"),
        (["nowhere.yaml"], "nowhere.yaml: cannot be read"),
    ],
)
def test_scenarios_that_are_not_there(tmp_path: Path, names: list[str], text: str) -> None:
    """What is wrong with a scenario's name is said in one line."""
    path = tmp_path / "gangs.py"
    path.write_text(MODULE)
    with pytest.raises(ConfigError) as problem:
        Source.of([name.format(path) for name in names])
    assert text in str(problem.value)
