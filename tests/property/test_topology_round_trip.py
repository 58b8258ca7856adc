"""For any domains, decoding what was encoded gives them back."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kubemini.api.kueue.assignments import Domain, decode, encode
from kubemini.api.kueue.v1beta2.workload import TopologyAssignment

NAMES = st.text(alphabet="ab01-", max_size=8)
LEVELS = st.lists(st.sampled_from(["block", "rack", "kubernetes.io/hostname"]), min_size=1, max_size=3, unique=True)


@st.composite
def assignments(draw: st.DrawFn) -> tuple[list[str], list[Domain]]:
    """Draw levels and domains of that depth."""
    levels = draw(LEVELS)
    values = st.tuples(*(NAMES for _ in levels))
    return levels, draw(st.lists(st.builds(Domain, values, st.integers(1, 5)), max_size=12))


@given(assignments(), st.booleans())
def test_round_trip(drawn: tuple[list[str], list[Domain]], by_hostname_prefix: bool) -> None:
    """Decoding gives the domains in their order, and the form is one that the schema takes."""
    levels, domains = drawn
    encoded = encode(levels, domains, by_hostname_prefix=by_hostname_prefix)
    assert list(decode(encoded)) == domains
    assert TopologyAssignment.model_validate(encoded).levels == levels
