"""Selecting by index gives what looking at everything gives."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from kubemini.api.resources import PODS
from kubemini.machinery.labels import Requirement, Selector
from kubemini.runtime.informer import Informer
from kubemini.runtime.selecting import SelectorIndex

KEYS, VALUES = ("app", "tier", "zone"), ("a", "bb", "ccc")
LABELS = st.none() | st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)
REQUIREMENTS = st.one_of(
    st.builds(lambda key, value: Requirement(key, "=", (value,)), st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.builds(lambda key, values: Requirement(key, "in", tuple(sorted(values))), st.sampled_from(KEYS), st.sets(st.sampled_from(VALUES), min_size=1)),
    st.builds(lambda key, value: Requirement(key, "notin", (value,)), st.sampled_from(KEYS), st.sampled_from(VALUES)),
    st.builds(Requirement, st.sampled_from(KEYS), st.sampled_from(["exists", "!"])),
)
SELECTORS = st.builds(lambda requirements, nothing: Selector(tuple(requirements), nothing=nothing), st.lists(REQUIREMENTS, max_size=3), st.booleans())
PLACES = st.tuples(st.sampled_from(["x", "y"]), st.sampled_from("123"))


def pod(namespace: str, name: str, labels: dict[str, str] | None, version: int) -> dict[str, Any]:
    """Return a pod with labels."""
    meta: dict[str, Any] = {"namespace": namespace, "name": name, "resourceVersion": str(version)}
    return {"metadata": meta if labels is None else {**meta, "labels": labels}}


@given(st.lists(st.tuples(PLACES, st.just("gone") | LABELS, st.none() | SELECTORS), max_size=25), SELECTORS)
def test_select_finds_what_matches(changes: list[tuple[tuple[str, str], Any, Selector | None]], last: Selector) -> None:
    """After any history of a cache, whenever a label key was first asked for, a selector takes exactly the objects that match it."""
    informer = Informer(PODS)
    for version, ((namespace, name), labels, asked) in enumerate(changes):
        if labels == "gone":
            informer.change("DELETED", pod(namespace, name, None, version))
        else:
            informer.change("ADDED", pod(namespace, name, labels, version))
        for selector in (asked, last) if version == len(changes) - 1 else (asked,):
            if selector is not None:
                found = informer.select(selector, "x")
                assert sorted(each["metadata"]["name"] for each in found) == sorted(
                    each["metadata"]["name"]
                    for each in informer.objects.values()
                    if each["metadata"]["namespace"] == "x" and selector.matches_object(each)
                )


@given(st.lists(st.tuples(PLACES, st.none() | SELECTORS), max_size=25), LABELS)
def test_matching_finds_every_selector(changes: list[tuple[tuple[str, str], Selector | None]], labels: dict[str, str] | None) -> None:
    """After any puts and drops, the selectors that take an object are exactly those of its namespace that match its labels."""
    index, kept = SelectorIndex(), dict[str, tuple[str, Selector]]()
    for (namespace, name), selector in changes:
        key = f"{namespace}/{name}"
        if selector is None:
            index.drop(key)
            kept.pop(key, None)
        else:
            index.put(key, namespace, selector)
            kept[key] = (namespace, selector)
    found = index.matching("x", labels)
    assert sorted(found) == sorted(key for key, (namespace, selector) in kept.items() if namespace == "x" and selector.matches(labels))
