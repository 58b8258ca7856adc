"""What `Cluster.wait` waits for: conditions, JSONPaths, presence and absence, in kubectl's own words."""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ConfigError
from kubemini.machinery.jsonpath import JsonPath, JsonPathError

Test = Callable[[Tree | None], bool]


def parse(wish: str) -> Test:
    """Return a test of an object (None = it does not exist).

    ``condition=NAME[=STATUS]``, ``jsonpath={.path}[=VALUE]``, ``create``, ``delete``, as ``kubectl wait --for``. Raise `ConfigError`.
    """
    if wish == "delete":
        return lambda obj: obj is None
    if wish == "create":
        return lambda obj: obj is not None
    kind, equals, rest = wish.partition("=")
    if kind == "condition" and equals and rest:
        name, _, status = rest.partition("=")
        return _condition(name.lower(), (status or "true").lower())
    if kind == "jsonpath" and equals and rest.startswith("{"):
        path, closed, value = rest.partition("}")
        if closed:
            return _path(path.removeprefix("{"), value[1:] if value.startswith("=") else None)
    raise ConfigError(f"wait: {wish!r} is not understood; use condition=NAME, condition=NAME=STATUS, jsonpath={{.path}}=VALUE, create or delete")


def _condition(name: str, status: str) -> Test:
    def test(obj: Tree | None) -> bool:
        for condition in ((obj or {}).get("status") or {}).get("conditions") or ():
            if condition["type"].lower() == name:
                # kubectl does not trust a condition of an older generation
                observed = condition.get("observedGeneration")
                generation = (obj or {"metadata": {}})["metadata"].get("generation", 0)
                return bool(condition["status"].lower() == status and (observed is None or observed >= generation))
        return False

    return test


def _path(text: str, value: str | None) -> Test:
    try:
        path = JsonPath(text)
    except JsonPathError as problem:
        raise ConfigError(f"wait: {text}: {problem}") from None

    def test(obj: Tree | None) -> bool:
        if obj is None or not path.find(obj):
            return False
        return value is None or path.text_of(obj) == value

    return test
