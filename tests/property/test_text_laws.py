"""Laws of the small texts: quantities, durations, selectors and names say the same when they are written and read again."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from kubemini.machinery import duration, quantity
from kubemini.machinery.errors import BadRequest
from kubemini.machinery.fields import FieldSelector, FieldTerm, escape, parse_fields, unescape
from kubemini.machinery.labels import Requirement, Selector, parse_selector
from kubemini.machinery.names import dns1123_label, dns1123_subdomain, generated, label_value, qualified_name

SUFFIXES = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "e3", "E-2", "e-9"]
NUMBERS = st.from_regex(r"[+-]?[0-9]{1,6}(\.[0-9]{0,6})?", fullmatch=True)
QUANTITIES = st.builds(str.__add__, NUMBERS, st.sampled_from(SUFFIXES))
# Binary quantities are capped at 2⁶³-1; sums stay below.
SMALL = st.builds(str.__add__, NUMBERS, st.sampled_from([each for each in SUFFIXES if each not in {"T", "P", "E"}]))
KEYS = st.sampled_from(["app", "example.com/tier", "n", "in", "notin"])
VALUES = st.sampled_from(["", "x", "y-1", "5", "12", "in"])
LABELS = st.dictionaries(KEYS, VALUES)
REQUIREMENTS = (
    st.builds(Requirement, KEYS, st.sampled_from(["exists", "!"]))
    | st.builds(lambda key, operator, value: Requirement(key, operator, (value,)), KEYS, st.sampled_from(["=", "==", "!="]), VALUES)
    | st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(values))),
        KEYS,
        st.sampled_from(["in", "notin"]),
        st.sets(VALUES, min_size=1),
    )
    | st.builds(
        lambda key, operator, value: Requirement(key, operator, (str(value),)),
        KEYS,
        st.sampled_from(["gt", "lt"]),
        st.integers(-1, 20).filter(lambda n: n >= 0),
    )
)
_SCALE = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18, "e3": 3, "E-2": -2, "e-9": -9}


def _exact(text: str) -> Fraction:
    """Return the value of a quantity by plain arithmetic."""
    suffix = next(
        each for each in sorted(SUFFIXES, key=len, reverse=True) if text.endswith(each) and text[: len(text) - len(each)][-1:] in "0123456789."
    )
    number = Fraction(text[: len(text) - len(suffix)].rstrip(".") or "0")
    unit = Fraction(1024 ** (["Ki", "Mi", "Gi"].index(suffix) + 1)) if suffix.endswith("i") else Fraction(f"1e{_SCALE[suffix]}")
    return number * unit


@given(QUANTITIES)
def test_quantities_are_exact(text: str) -> None:
    """A quantity is worth what it says, smaller parts than nano rounded away from zero; its canonical text is worth the same and canonical."""
    exact = _exact(text) * quantity.NANO
    rounded = -(-exact.numerator // exact.denominator) if exact >= 0 else exact.numerator // exact.denominator
    assert quantity.nano(text) == rounded
    assert quantity.nano(quantity.canonical(text)) == rounded
    assert quantity.canonical(quantity.canonical(text)) == quantity.canonical(text)


@given(SMALL, SMALL)
def test_sums_of_quantities(left: str, right: str) -> None:
    """Sums and differences are exact, and comparison is that of the values."""
    assert quantity.nano(quantity.add(left, right)) == quantity.nano(left) + quantity.nano(right)
    assert quantity.equal(quantity.subtract(quantity.add(left, right), right), left)
    assert (quantity.compare(left, right) > 0) == (quantity.nano(left) > quantity.nano(right))


@given(st.integers(-(2**62), 2**62))
def test_durations_survive_being_written(nanoseconds: int) -> None:
    """What is written of a duration is read as the same duration, and written the same again."""
    text = duration.shown(nanoseconds)
    assert duration.parse(text) == nanoseconds
    assert duration.canonical(text) == text


@given(st.lists(REQUIREMENTS, max_size=4), LABELS)
def test_label_selectors_survive_being_written(requirements: list[Requirement], labels: dict[str, str]) -> None:
    """The text of a selector is parsed to the same selector, which matches iff every requirement does."""
    selector = Selector(tuple(requirements))
    assert parse_selector(str(selector)) == selector
    assert selector.matches(labels) == all(each.matches(labels) for each in requirements)
    if selector.matches(labels):
        assert all(labels[key] == value for key, value in selector.equalities)


@given(st.text(alphabet="ab=!,()<> \tin", max_size=12))
def test_any_text_is_a_selector_or_a_bad_request(text: str) -> None:
    """The parser of label selectors terminates on any text, with a selector that reads the same again or with a refusal."""
    try:
        selector = parse_selector(text)
    except BadRequest:
        return
    assert parse_selector(str(selector)) == selector


@given(st.lists(st.builds(FieldTerm, st.sampled_from(["a.b", "metadata.name"]), st.text("x\\,=!", max_size=4), st.booleans()), max_size=3))
def test_field_selectors_survive_being_written(terms: list[FieldTerm]) -> None:
    """Values are escaped so that they come back as they were."""
    selector = parse_fields(str(FieldSelector(terms)))
    assert sorted(selector.terms) == sorted(terms)
    for each in terms:
        assert unescape(escape(each.value)) == each.value


@given(st.text("ab-.0", max_size=70), st.text("bcdfghjklmnpqrstvwxz2456789", min_size=5, max_size=5))
def test_generated_names_are_as_good_as_their_prefix(prefix: str, suffix: str) -> None:
    """A prefix that is a label makes a name that is one, and a label is good for every other kind of name."""
    name = generated(prefix, suffix)
    assert len(name) <= 63
    if dns1123_label(prefix) is None:
        assert dns1123_label(name) is None
    if dns1123_label(name) is None:
        assert dns1123_subdomain(name) is None
        assert label_value(name) is None
        assert qualified_name(name) is None
