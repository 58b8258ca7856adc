"""Reading and path-copying immutable JSON trees.

An object is a tree of plain dict, list, str, int, float, bool and None that nobody mutates once it was handed to anyone
else. A change is a new tree that shares everything outside the changed path: cost is the width of the dicts on that path,
not the size of the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Tree = dict[str, Any]
"""A JSON object that must not be mutated."""


def get_in(tree: Mapping[str, Any], *path: str, default: Any = None) -> Any:
    """Return the value at a path of keys, or `default` where any step is absent or no mapping.

    >>> get_in({"spec": {"a": 1}}, "spec", "a")
    1
    >>> get_in({"spec": None}, "spec", "a", default=0)
    0
    """
    here: Any = tree
    for key in path:
        if not isinstance(here, dict) or key not in here:
            return default
        here = here[key]
    return here


def set_in(tree: Tree, path: tuple[str, ...], value: Any) -> Tree:
    """Return a copy of `tree` with `value` at `path`; missing or null steps become objects.

    >>> set_in({"spec": {"a": 1}, "x": 0}, ("spec", "b"), 2)
    {'spec': {'a': 1, 'b': 2}, 'x': 0}
    """
    head, *rest = path
    if rest:
        value = set_in(tree.get(head) or {}, tuple(rest), value)
    return {**tree, head: value}


def drop_in(tree: Tree, path: tuple[str, ...]) -> Tree:
    """Return a copy of `tree` without the key at `path`; the same tree where it is absent.

    >>> drop_in({"spec": {"a": 1}}, ("spec", "a"))
    {'spec': {}}
    """
    head, *rest = path
    if head not in tree:
        return tree
    if not rest:
        return {key: each for key, each in tree.items() if key != head}
    child = tree[head]
    if not isinstance(child, dict):
        return tree
    smaller = drop_in(child, tuple(rest))
    return tree if smaller is child else {**tree, head: smaller}
