"""The story of ``kubemini demo`` is told once, and truly."""

from kubemini.cli.demo import GLYPHS, plain_line
from kubemini.demo.story import FLEET, play
from kubemini.demo.timeline import Timeline
from kubemini.sim.cluster import simulate


def told() -> Timeline:
    """Return what the demo shows."""
    return simulate(play, seed=1, fleet=FLEET)


def test_only_the_victim_fails() -> None:
    """Pods that a gang restart or the end of the run takes away are stopped; the worker that dies is the only one that failed."""
    lines = [plain_line(line) for line in told().lines]
    assert [line.split("pod/")[1].split("-0-")[0] for line in lines if line.endswith(": failed")] == ["train-worker-2"]
    assert sum(line.endswith(": stopped") for line in lines) == 8


def test_nothing_is_told_twice() -> None:
    """No moment says the same of the same object under two names."""
    said = [(line.at, line.who, line.text.partition(": ")[2]) for line in told().lines if ": " in line.text]
    assert len(said) == len(set(said))


def test_nothing_goes_wrong_at_the_end() -> None:
    """Once the JobSet is completed, nobody is said to have failed."""
    lines = [plain_line(line) for line in told().lines]
    end = next(index for index, line in enumerate(lines) if "jobset/train is Completed" in line)
    assert not [line for line in lines[end:] if "ailed" in line or "Backoff" in line]


def test_every_state_has_its_own_sign() -> None:
    """The bars can be read without colours."""
    assert len(set(GLYPHS.values())) == len(GLYPHS)
