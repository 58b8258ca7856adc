"""The compact form of topology assignments says what the plain one says, in upstream's words."""

from __future__ import annotations

import pytest

from kubemini.api.kueue import assignments
from kubemini.api.kueue.assignments import Domain, decode, encode
from kubemini.api.trees import Tree

HOST = "kubernetes.io/hostname"


def hosts(*names: str, count: int = 1) -> list[Domain]:
    """Return domains of single hosts."""
    return [Domain((name,), count) for name in names]


def individual(*roots: str, prefix: str = "", suffix: str = "") -> Tree:
    """Return the values of a level that differ."""
    found: Tree = {"prefix": prefix} if prefix else {}
    return {"individual": {**found, **({"suffix": suffix} if suffix else {}), "roots": list(roots)}}


@pytest.mark.parametrize(
    "names,level",
    [
        (["a"], {"universal": "a"}),
        (["a", "a"], {"universal": "a"}),
        (["n-0", "n-1"], individual("0", "1", prefix="n-")),
        (["x-0-z", "x-1-z"], individual("0", "1", prefix="x-", suffix="-z")),
        (["ababa", "aba"], individual("ab", "", suffix="aba")),
        (["a", "b"], individual("a", "b")),
        (["", "b"], individual("", "b")),
    ],
)
def test_values(names: list[str], level: Tree) -> None:
    """Values are one when equal, else prefix + root + suffix; where these overlap, the suffix has it."""
    assert encode(["rack"], hosts(*names))["slices"][0]["valuesPerLevel"] == [level]


def test_counts() -> None:
    """Equal counts are one number, others are listed."""
    assert encode(["rack"], hosts("a", "b", count=3))["slices"][0]["podCounts"] == {"universal": 3}
    assert encode(["rack"], [Domain(("a",), 1), Domain(("b",), 2)])["slices"][0]["podCounts"] == {"individual": [1, 2]}


def test_levels() -> None:
    """Each level is written for itself."""
    domains = [Domain(("b0", "r0"), 1), Domain(("b0", "r1"), 1)]
    assert encode(["block", "rack"], domains) == {
        "levels": ["block", "rack"],
        "slices": [{"domainCount": 2, "valuesPerLevel": [{"universal": "b0"}, individual("0", "1", prefix="r")], "podCounts": {"universal": 1}}],
    }


def names_of(tree: Tree) -> list[int]:
    """Return the number of domains in each slice."""
    return [each["domainCount"] for each in tree["slices"]]


LONG = [f"gke-a-{'x' * 40}-{index}" for index in range(30)] + [f"gke-b-{'y' * 40}-{index}" for index in range(30)]


def test_runs_of_host_names() -> None:
    """Hosts of two pools are two slices where that is shorter, with the gate off one."""
    split = encode([HOST], hosts(*LONG))
    assert names_of(split) == [30, 30]
    assert split["slices"][1]["valuesPerLevel"][0]["individual"]["prefix"] == f"gke-b-{'y' * 40}-"
    assert names_of(encode([HOST], hosts(*LONG), by_hostname_prefix=False)) == [60]


def test_one_slice_where_shorter() -> None:
    """A split that costs more than it saves is not made."""
    assert names_of(encode([HOST], hosts("a-0", "a-1", "b-0", "b-1"))) == [4]


def test_no_runs_above_hosts() -> None:
    """Only host names are looked at for prefixes."""
    assert names_of(encode(["rack"], hosts(*LONG))) == [60]


def test_empty() -> None:
    """No domains are no slices."""
    assert encode([HOST], []) == {"levels": [HOST], "slices": []}
    assert list(decode({"levels": [HOST], "slices": []})) == []


def test_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many slices make the prefixes shorter; a run longer than a slice is cut."""
    monkeypatch.setattr(assignments, "MAX_SLICES", 2)
    assert names_of(encode([HOST], hosts(*LONG))) == [30, 30]
    monkeypatch.setattr(assignments, "MAX_SLICES", 1)
    assert names_of(encode([HOST], hosts(*LONG))) == [60]
    monkeypatch.setattr(assignments, "MAX_DOMAINS", 25)
    monkeypatch.setattr(assignments, "MAX_SLICES", 1000)
    assert names_of(encode([HOST], hosts(*LONG))) == [25, 5, 25, 5]
