"""Label selectors at scale: objects by selector, and selectors by object, without looking at every object or every selector.

Both ways hold on one label pair that every match must have (`anchor`): the objects with that pair, or the selectors anchored at one of an object's pairs, are the
only candidates. A selector without such a pair (only ``exists``, ``notin`` and so on) is compared with everything in its namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.labels import Selector

MOST_KEYS = 64
"""How many label keys a cache keeps lists for; selectors on further keys are answered by looking at every object."""

_NONE: Mapping[str, Any] = {}


def anchor(selector: Selector) -> tuple[str, str] | None:
    """Return the label pair that tells most: the longest value, as names and hashes are longer than words; None where no pair is wanted."""
    if not selector.equalities:
        return None
    return max(selector.equalities, key=lambda pair: (len(pair[1]), pair))


class LabelIndex:
    """Keys of objects by label pair, kept for those label keys only that were asked for. Part of an informer, which tells it of every change."""

    __slots__ = ("_objects", "_places")

    def __init__(self, objects: Mapping[str, Tree]) -> None:
        self._objects = objects
        self._places: dict[str, dict[tuple[str, str], dict[str, None]]] = {}
        """Label key → (namespace, value) → keys of objects."""

    def select(self, selector: Selector, namespace: str) -> list[Tree]:
        """Return the objects of a namespace that are selected. O(objects with the anchor's pair); the first time for a label key, O(population)."""
        if selector.nothing:
            return []
        pair = anchor(selector)
        objects, matches = self._objects, selector.matches
        if pair is None or (places := self._of(pair[0])) is None:
            prefix = f"{namespace}/" if namespace else ""
            return [each for key, each in objects.items() if key.startswith(prefix) and matches(each["metadata"].get("labels"))]
        keys = places.get((namespace, pair[1]), ())
        if len(selector.requirements) == 1:
            return [objects[key] for key in keys]
        return [each for key in keys if matches((each := objects[key])["metadata"].get("labels"))]

    def _of(self, label: str) -> dict[tuple[str, str], dict[str, None]] | None:
        places = self._places.get(label)
        if places is None:
            if len(self._places) >= MOST_KEYS:
                return None
            places = self._places[label] = {}
            for key, each in self._objects.items():
                meta = each["metadata"]
                value = (meta.get("labels") or _NONE).get(label)
                if value is not None:
                    places.setdefault((meta.get("namespace", ""), value), {})[key] = None
        return places

    def change(self, key: str, old: Tree | None, new: Tree | None) -> None:
        """Take a change of the cache. O(label keys asked for), O(1) where the labels are the very same."""
        if not self._places:
            return
        before = old["metadata"].get("labels") if old is not None else None
        after = new["metadata"].get("labels") if new is not None else None
        if before is after:
            return
        namespace = (new if new is not None else old or _NONE)["metadata"].get("namespace", "")
        before, after = before or _NONE, after or _NONE
        for label, places in self._places.items():
            was, now = before.get(label), after.get(label)
            if was == now:
                continue
            if was is not None:
                place = places[namespace, was]
                del place[key]
                if not place:
                    del places[namespace, was]
            if now is not None:
                places.setdefault((namespace, now), {})[key] = None


class SelectorIndex:
    """Selectors of namespaced objects (Services, budgets) by what they select."""

    __slots__ = ("_anchored", "_loose", "_places")

    def __init__(self) -> None:
        self._anchored: dict[str, dict[tuple[str, str], dict[str, Selector]]] = {}
        """Namespace → label pair → selectors by the key of whose they are."""
        self._loose: dict[str, dict[str, Selector]] = {}
        self._places: dict[str, tuple[str, tuple[str, str] | None]] = {}

    def put(self, key: str, namespace: str, selector: Selector) -> None:
        """Keep the selector of an object, instead of the one that it had. O(1)."""
        self.drop(key)
        if selector.nothing:
            return
        pair = anchor(selector)
        self._places[key] = (namespace, pair)
        if pair is None:
            self._loose.setdefault(namespace, {})[key] = selector
        else:
            self._anchored.setdefault(namespace, {}).setdefault(pair, {})[key] = selector

    def drop(self, key: str) -> None:
        """Forget the selector of an object. O(1)."""
        place = self._places.pop(key, None)
        if place is None:
            return
        namespace, pair = place
        if pair is None:
            loose = self._loose[namespace]
            del loose[key]
            if not loose:
                del self._loose[namespace]
            return
        anchored = self._anchored[namespace]
        del anchored[pair][key]
        if not anchored[pair]:
            del anchored[pair]
            if not anchored:
                del self._anchored[namespace]

    def matching(self, namespace: str, labels: Mapping[str, str] | None) -> list[str]:
        """Return the keys of those whose selector takes an object with these labels. O(labels) beside the candidates."""
        anchored, loose = self._anchored.get(namespace), self._loose.get(namespace)
        if anchored is None and loose is None:
            return []
        labels = labels or _NONE
        found: list[str] = []
        if anchored is not None:
            for pair in labels.items():
                candidates = anchored.get(pair)
                if candidates is not None:
                    found += [key for key, selector in candidates.items() if selector.matches(labels)]
        if loose is not None:
            found += [key for key, selector in loose.items() if selector.matches(labels)]
        return found
