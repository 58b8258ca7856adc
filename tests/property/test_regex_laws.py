"""Patterns are matched in linear time, and as `re` matches them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubemini.machinery.backtracking import suspicious
from kubemini.machinery.regexes import compiled, found

ATOMS = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", "(?:a|b)", "(a|ab)", r"\.", "^", "$"])
PATTERNS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
    ),
    max_leaves=6,
)


@given(PATTERNS, st.text(alphabet="ab.\n", max_size=8))
def test_what_is_found_is_what_re_finds(pattern: str, text: str) -> None:
    """Whichever of the two looks, they agree on whether there is something and on what."""
    theirs = re.search(pattern.replace("$", r"\Z"), text)
    ours = compiled(pattern).search(text)
    assert (ours and ours.group()) == (theirs and theirs.group())
    assert found(pattern, text) is (theirs is not None)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "(a*)*b", "^([a-z]+)*[0-9]$", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_back_tracking(pattern: str) -> None:
    """Patterns that keep a back-tracking matcher busy for longer than anybody lives are answered."""
    assert suspicious(pattern)
    assert found(pattern, "a" * 2_000 + "!") is False
    assert [match.group() for match in compiled(pattern).finditer("a" * 2_000 + "!") if match.group()] == []


@pytest.mark.parametrize("pattern", ["^[a-z0-9]+$", "^[a-z]([-a-z0-9]*[a-z0-9])?$", "^a{3}b?$", "^(abc)+$"])
def test_harmless_patterns(pattern: str) -> None:
    """What cannot be read in two ways again and again is left to `re`."""
    assert not suspicious(pattern)


def test_names() -> None:
    """A name with dots, as Kubernetes writes it, is told from one that is none."""
    pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
    assert found(pattern, "kueue.x-k8s.io")
    assert not found(pattern, "kueue..x-k8s.io")
    assert not found(pattern, "kueue.x-k8s.io\n")
