"""Expectations: what a controller waits to see in its cache."""

from kubemini.runtime.env import Env
from kubemini.runtime.expectations import Expectations, ExpectedUids


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def fresh() -> tuple[Expectations[str], Clock]:
    """Return empty expectations and the clock they run on."""
    clock = Clock()
    return Expectations(Env(clock=clock)), clock


def test_nothing_expected_is_satisfied() -> None:
    """A key of which nothing was ever expected is satisfied."""
    expectations, _ = fresh()
    assert expectations.satisfied("a")
    assert expectations.lapses_in("a") is None


def test_creations_are_counted_down() -> None:
    """A key is unsatisfied until as many creations were observed as were expected."""
    expectations, _ = fresh()
    expectations.expect("a", creations=2)
    expectations.creation_observed("a")
    assert not expectations.satisfied("a")
    expectations.creation_observed("a")
    assert expectations.satisfied("a")


def test_surplus_observations_do_not_pay_for_later_ones() -> None:
    """Creations that nobody expected leave no credit behind."""
    expectations, _ = fresh()
    for _ in range(3):
        expectations.creation_observed("a")
    expectations.expect("a", creations=1)
    expectations.expect_more("a", creations=1)
    expectations.creation_observed("a")
    assert not expectations.satisfied("a")


def test_a_deletion_counts_once_and_only_if_expected() -> None:
    """The deletionTimestamp and the removal of one pod are one deletion; another pod's is none."""
    expectations, _ = fresh()
    expectations.expect("a", deletions=["u1", "u2"])
    for uid in ("u1", "u1", "u3"):
        expectations.deletion_observed("a", uid)
    assert expectations.outstanding("a") == (0, ("u2",))
    assert not expectations.satisfied("a")
    expectations.deletion_observed("a", "u2")
    assert expectations.satisfied("a")


def test_creations_and_deletions_are_both_waited_for() -> None:
    """A key with both kinds outstanding is satisfied when both are met, in whichever order."""
    expectations, _ = fresh()
    expectations.expect("a", creations=1, deletions=["u1"])
    expectations.deletion_observed("a", "u1")
    assert not expectations.satisfied("a")
    expectations.creation_observed("a")
    assert expectations.satisfied("a")


def test_expect_replaces_and_expect_more_adds() -> None:
    """`expect` forgets what was outstanding, `expect_more` keeps it."""
    expectations, _ = fresh()
    expectations.expect("a", creations=5, deletions=["u1"])
    expectations.expect("a", creations=1)
    assert expectations.outstanding("a") == (1, ())
    expectations.expect_more("a", creations=2, deletions=["u2"])
    assert expectations.outstanding("a") == (3, ("u2",))


def test_expectations_lapse_after_five_minutes() -> None:
    """An event that never comes holds a controller up for five minutes, from the first of what is outstanding."""
    expectations, clock = fresh()
    expectations.expect("a", creations=1)
    clock.now += 299.0
    expectations.expect_more("a", creations=1)
    assert expectations.lapses_in("a") == 1.0
    clock.now += 1.0
    assert not expectations.satisfied("a")
    clock.now += 0.5
    assert expectations.satisfied("a")


def test_a_new_expectation_is_young_again() -> None:
    """`expect` and `expect_more` after a lapse start a new five minutes, without what has lapsed."""
    expectations, clock = fresh()
    for again in (expectations.expect, expectations.expect_more):
        expectations.expect("a", creations=1)
        clock.now += 1_000.0
        again("a", creations=1)
        assert not expectations.satisfied("a")
        expectations.creation_observed("a")
        assert expectations.satisfied("a")


def test_met_and_forgotten_expectations_are_not_kept() -> None:
    """Nothing is remembered of keys that are satisfied, forgotten or expect nothing."""
    expectations, _ = fresh()
    expectations.expect("met", creations=1, deletions=["u"])
    expectations.creation_observed("met")
    expectations.deletion_observed("met", "u")
    expectations.expect("gone", creations=1)
    expectations.forget("gone")
    expectations.expect("none")
    assert len(expectations) == 0
    assert expectations.satisfied("gone")


def test_keys_are_independent() -> None:
    """An observation for one key says nothing of another."""
    expectations, _ = fresh()
    expectations.expect("a", creations=1)
    expectations.creation_observed("b")
    assert not expectations.satisfied("a")


def test_expected_uids_are_ticked_off() -> None:
    """Uids are outstanding from `expect` until `observed`, each once, and nothing is kept after the last."""
    uids: ExpectedUids[str] = ExpectedUids()
    uids.expect("a", ["u1", "u2"])
    uids.expect("a", ["u2", "u3"])
    uids.observed("a", "u2")
    uids.observed("a", "u9")
    assert list(uids.outstanding("a")) == ["u1", "u3"]
    uids.observed("a", "u1")
    uids.observed("a", "u3")
    assert len(uids) == 0
    uids.expect("b", ["u1"])
    uids.forget("b")
    assert "u1" not in uids.outstanding("b")
