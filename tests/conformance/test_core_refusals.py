"""Cases of pods, services, configuration and the like that need no controller, played in process against the API server alone.

The whole set of cases runs elsewhere, over HTTP; here a wrong text or default is found in milliseconds.
"""

import asyncio
import re
from pathlib import Path
from typing import Any

import jmespath
import orjson
import pytest
import yaml

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.server.options import DeleteOptions, Outcome, Patch, WriteOptions
from kubemini.server.registry import Served
from tests.unit.core.conftest import Desk

CASES = [
    *(f"apiserver/{number}" for number in (134, 135, 136, 137, 138, 139, 140, 141, 142, 143, 145, 148, 149, 156, 204, 205, 207, 208, 209)),
    *(f"network/{number}" for number in ("001", "002", "004", "005", "016")),
    *(f"scheduler/{number}" for number in ("004", "027", "044", "051", "052", "129", "131", "134", "166", "169")),
]
PATH = re.compile(r"^/(?:api/(?P<core>v1)|apis/(?P<group>[^/]+)/(?P<version>[^/]+))(?:/namespaces/(?P<namespace>[^/]+)(?=/))?/(?P<rest>[^?]+)$")

WRITTEN_LATER = re.compile(r"nodeName|status\.conditions")
QUIET = WriteOptions(track=False)


def documents(source: Any) -> list[Tree]:
    """Return the objects of a step."""
    found = yaml.safe_load_all(source) if isinstance(source, str) else source if isinstance(source, list) else [source]
    return [orjson.loads(orjson.dumps(each, option=orjson.OPT_NON_STR_KEYS)) for each in found if each]


class Player:
    """Plays the steps of a case; counts what it compared."""

    def __init__(self) -> None:
        self.desk = Desk()
        self.desk.create("Namespace", name="kube-system")
        self.compared = 0

    def play(self, steps: list[Tree]) -> None:
        """Play steps until one needs what is not here: a controller, kubectl, time."""
        for step in steps:
            ((name, content),) = step.items()
            if name in ("kubectl", "sleep", "pods", "always"):
                continue
            getattr(self, name)(content)

    def served(self, kind: str, api_version: str = "") -> Served:
        """Return a kind."""
        return (self.desk.registry.by_kind(api_version, kind) if api_version else None) or self.desk.served(kind)

    # ------------------------------------------------------------------ steps

    def apply(self, source: Any) -> None:
        """Create objects."""
        for obj in documents(source):
            self._create(obj)

    def patch(self, step: Tree) -> None:
        """Patch an object."""
        served = self.served(step["kind"], step.get("apiVersion", ""))
        where = step.get("namespace", "default") if served.kind.namespaced else ""
        patch = Patch(step.get("type", "merge"), step["body"])
        asyncio.run(self.desk.api.patch(served, where, step["name"], patch, QUIET, subresource=step.get("subresource", "")))

    def delete(self, step: Tree) -> None:
        """Delete an object."""
        served = self.served(step["kind"])
        self.desk.delete(step["kind"], step["name"], step.get("namespace", "default") if served.kind.namespaced else "", DeleteOptions())

    def reject(self, step: Tree) -> None:
        """Write something that must be refused with a code and a text."""
        with pytest.raises(ApiStatus) as problem:
            self._write(step)
        assert problem.value.code in (step["code"] if isinstance(step["code"], list) else [step["code"]]), problem.value.message
        assert re.search(step.get("message", ""), problem.value.message, re.DOTALL), problem.value.message
        self.compared += 1

    def eventually(self, step: Tree) -> None:
        """Look once, and not at what controllers write."""
        for check in step["checks"]:
            if "get" in check and not WRITTEN_LATER.search(check["query"]):
                kind, _, name = check["get"].partition("/")
                self._compare(check, self.desk.get(kind, name))

    def http(self, step: Tree) -> None:
        """Post or put an object."""
        method, expected = step["method"], step["expect"]
        path, _, query = step["path"].partition("?")
        found = PATH.match(path)
        if method not in ("POST", "PUT") or found is None:
            return
        plural, *rest = found["rest"].split("/")
        served = self.desk.api.resolve(found["group"] or "", found["version"] or found["core"], plural)
        codes = expected["code"] if isinstance(expected["code"], list) else [expected["code"]]
        warnings: list[str] = []
        try:
            outcome = self._send(
                method, served, found["namespace"] or "", rest, step["body"], WriteOptions(track=False, dry_run="dryRun=All" in query)
            )
            code, answer, warnings = outcome.code, outcome.obj, [*outcome.warnings]
        except ApiStatus as problem:
            code, answer = problem.code, problem.to_status()
        assert code in codes, answer
        for check in expected.get("json", ()):
            self._compare(check, answer)
        for pattern in _patterns(expected.get("headers", {}).get("Warning")):
            assert any(re.search(pattern, each) for each in [*warnings, ", ".join(f'299 - "{each}"' for each in warnings)]), warnings
        self.compared += 1

    # ------------------------------------------------------------------ means

    def _send(self, method: str, served: Served, namespace: str, rest: list[str], body: Tree, options: WriteOptions) -> Outcome:
        api = self.desk.api
        if method == "PUT":
            return asyncio.run(api.update(served, namespace, rest[0], body, options, subresource="/".join(rest[1:])))
        return asyncio.run(api.act(served, namespace, rest[0], rest[1], body, options) if rest else api.create(served, namespace, body, options))

    def _write(self, step: Tree) -> None:
        if "create" in step:
            self.apply(step["create"])
        elif "update" in step:
            self._update(documents(step["update"])[0])
        else:
            self.patch(step["patch"])

    def _create(self, obj: Tree) -> None:
        served = self.served(obj["kind"], obj["apiVersion"])
        namespace = obj["metadata"].get("namespace", "default") if served.kind.namespaced else ""
        asyncio.run(self.desk.api.create(served, namespace, obj, QUIET))

    def _update(self, obj: Tree) -> None:
        served = self.served(obj["kind"], obj["apiVersion"])
        namespace = obj["metadata"].get("namespace", "default") if served.kind.namespaced else ""
        asyncio.run(self.desk.api.update(served, namespace, obj["metadata"]["name"], obj, QUIET))

    def _compare(self, check: Tree, obj: Tree) -> None:
        value = jmespath.search(check["query"], obj)
        if "equals" in check:
            assert value == check["equals"], check["query"]
        if "matches" in check:
            assert re.search(check["matches"], str(value), re.DOTALL), (check["query"], value)
        if "contains" in check:
            assert check["contains"] in value, check["query"]
        self.compared += 1


def _patterns(expected: Any) -> list[str]:
    return [] if expected is None else [expected] if isinstance(expected, str) else [str(each) for each in expected]


@pytest.mark.parametrize("name", CASES)
def test_cases_hold_on_the_api_server_alone(conformance: Path, name: str) -> None:
    """Defaults, texts, codes, causes and warnings are those of a real control plane."""
    area, _, number = name.partition("/")
    (path,) = (conformance / "cases" / area).glob(f"{number}-*.yaml")
    case: Tree = yaml.safe_load(path.read_text())
    player = Player()
    nodes = case.get("nodes", {})
    for group in nodes if isinstance(nodes, list) else [nodes]:
        for index in range(group.get("count", 4)):
            first = group.get("first", 0)
            player.desk.create("Node", name=group.get("name", "n-") + str(first + index))
    player.play(case["steps"])
    assert player.compared > 0
