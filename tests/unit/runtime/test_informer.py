"""Informers: what handlers hear and indexes know, and what a change costs, counted in calls."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from kubemini.api.resources import PODS
from kubemini.api.trees import Tree
from kubemini.runtime.informer import PARTS, Informer

KINDS = ("Job", "StatefulSet", "Other", "")


def controlled_by(kind: str) -> list[Tree]:
    """Return owner references with one controller, or with none."""
    return [{"kind": kind, "controller": True, "name": "o", "uid": kind}] if kind else [{"kind": "Node", "name": "n", "uid": "n"}]


def changed(random: Random, old: Tree | None, name: str, revision: int) -> Tree:
    """Return a new state of a pod that shares with the old one whatever does not change."""
    meta: Tree = {"name": name, "namespace": "default", "uid": "u", "resourceVersion": str(revision)}
    before = old["metadata"] if old is not None else {}
    for part, make in (
        ("labels", lambda: {random.choice(["app", "mark"]): random.choice("ab")}),
        ("annotations", lambda: {random.choice(["note", "mark"]): random.choice("ab")}),
        ("ownerReferences", lambda: controlled_by(random.choice(KINDS))),
    ):
        if old is None or random.random() < 0.2:
            meta[part] = make()
        else:
            meta[part] = before[part]
    if "deletionTimestamp" in before or random.random() < 0.05:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    pod: Tree = {"metadata": meta}
    for part in ("spec", "status"):
        pod[part] = {"of": random.choice("ab")} if old is None or random.random() < 0.3 else old[part]
    return pod


def controllers(obj: Tree | None) -> list[str]:
    """Return the kinds of an object's controllers."""
    return [] if obj is None else [each["kind"] for each in obj["metadata"]["ownerReferences"] if each.get("controller")] or [""]


def part_of(obj: Tree, part: str) -> Any:
    """Return a part by its name."""
    return obj.get(part) if part in ("spec", "status") else obj["metadata"].get(part)


@pytest.mark.parametrize("seed", range(10))
def test_handlers_hear_of_what_they_asked_for_and_of_nothing_else(seed: int) -> None:
    """A handler that names parts hears of every addition, deletion and change of those; one that names a controller or marks of every object that is its own."""
    random = Random(seed)
    informer = Informer(PODS)
    heard: dict[str, list[tuple[Tree | None, Tree | None]]] = {}

    def listen(name: str, **wants: Any) -> None:
        calls = heard[name] = []
        informer.on_change(lambda old, new: calls.append((old, new)), **wants)

    listen("all")
    listen("none", reads=())
    for part in PARTS:
        listen(part, reads=(part,))
    for kind in KINDS[:2]:
        listen(f"controller {kind}", controller=kind)
    listen("marked", marks=("mark",))
    objects: dict[str, Tree] = {}
    for revision in range(400):
        name = f"p{random.randrange(6)}"
        old = objects.get(name)
        if old is not None and random.random() < 0.1:
            informer.change("DELETED", objects.pop(name))
        else:
            objects[name] = changed(random, old, name, revision)
            informer.change("MODIFIED", objects[name])
    every = heard.pop("all")
    assert len(every) == 400
    assert heard.pop("none") == [(old, new) for old, new in every if old is None or new is None]
    for part in PARTS:
        wanted = [(old, new) for old, new in every if old is None or new is None or part_of(old, part) is not part_of(new, part)]
        assert heard.pop(part) == wanted
    for kind in KINDS[:2]:
        calls = heard.pop(f"controller {kind}")
        concerned = [pair for pair in every if {kind, ""} & {each for obj in pair for each in controllers(obj)}]
        assert calls == concerned
    marked = [
        pair
        for pair in every
        if any(obj is not None and ("mark" in obj["metadata"]["labels"] or "mark" in obj["metadata"]["annotations"]) for obj in pair)
    ]
    assert [pair for pair in heard.pop("marked") if pair in marked] == marked


@pytest.mark.parametrize("seed", range(10))
def test_indexes_are_what_a_search_finds(seed: int) -> None:
    """However objects come, change and go, an index that names what it reads gives what a search through all objects gives."""
    random = Random(seed)
    informer = Informer(PODS)
    functions: dict[str, Callable[[Tree], tuple[str, ...]]] = {
        "spec": lambda obj: (obj["spec"]["of"],),
        "labels": lambda obj: tuple(obj["metadata"]["labels"].values()),
        "ownerReferences": lambda obj: tuple(each["uid"] for each in obj["metadata"]["ownerReferences"]),
    }
    for part, function in functions.items():
        informer.add_index(part, function, reads=(part,))
    informer.add_index("marked", lambda obj: ("yes",) if "mark" in obj["metadata"]["labels"] else (), reads=("labels",), marks=("mark",))

    def either(obj: Tree) -> tuple[str, ...]:
        return (obj["status"]["of"] + obj["spec"]["of"],)

    informer.add_index("any", either)
    for revision in range(300):
        name = f"p{random.randrange(8)}"
        old = informer.get(name, "default")
        if old is not None and random.random() < 0.15:
            informer.change("DELETED", old)
        else:
            informer.change("MODIFIED", changed(random, old, name, revision))
        objects = informer.list()
        for index, function in {**functions, "any": either}.items():
            for value in ("a", "b", "Job", "n", "ab"):
                found = {each["metadata"]["name"] for each in informer.by_index(index, value)}
                assert found == {each["metadata"]["name"] for each in objects if value in function(each)}
                assert informer.count_index(index, value) == len(found)
        assert {each["metadata"]["name"] for each in informer.by_index("marked", "yes")} == {
            each["metadata"]["name"] for each in objects if "mark" in each["metadata"]["labels"]
        }


@pytest.mark.parametrize("population", [10, 20, 40, 80])
def test_a_change_asks_only_the_functions_that_read_what_changed(population: int) -> None:
    """A status write asks no index function that reads the spec, and one that reads the status twice, however many objects there are."""
    asked: list[str] = []

    def of(part: str) -> Any:
        def function(obj: Tree) -> tuple[str, ...]:
            asked.append(part)
            return (obj[part]["of"],)

        return function

    informer = Informer(PODS)
    informer.add_index("spec", of("spec"), reads=("spec",))
    informer.add_index("status", of("status"), reads=("status",))
    random = Random(1)
    for number in range(population):
        informer.change("ADDED", changed(random, None, f"p{number}", number))
    asked.clear()
    old = informer.get("p3", "default")
    assert old is not None
    informer.change("MODIFIED", {**old, "metadata": {**old["metadata"], "resourceVersion": "999"}, "status": {"of": "c"}})
    assert asked == ["status", "status"]
