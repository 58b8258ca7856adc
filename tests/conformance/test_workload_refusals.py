"""Refusals of workload objects, as recorded on a real control plane: every `reject` step that needs no controller.

The whole cases run elsewhere; here only the API server stands, so a refused text is found in milliseconds.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.runtime.env import EPOCH, Env
from kubemini.server.admission import Chain
from kubemini.server.kinds.workloads import workload_kinds
from kubemini.server.managing import Managing
from kubemini.server.options import Patch
from kubemini.server.registry import Registry, Served
from kubemini.server.requests import ApiServer
from kubemini.server.subresources import Subresources
from kubemini.store import Store

AREAS = ("job", "cronjob", "statefulset", "apps", "scheduler")
WITHOUT_CONTROLLERS = {
    "cronjob-002-reject-zone-policy-limits",
    "job-026-mutable-template-while-suspended",
    "job-044-managed-by-rules",
    "job-045-immutable-policies",
    "job-082-status-guard-counters",
    "job-105-generated-labels-stay",
    "job-109-tandem-needs-equality",
    "statefulset-033-immutable-fields",
    "statefulset-086-scale-object",
}
"""Cases whose patches mean the same when no controller has acted."""
KINDS = {"Job", "CronJob", "StatefulSet", "Deployment", "ReplicaSet", "DaemonSet", "PodDisruptionBudget"}
SCHEMAS = BuiltinSchemas()


def documents(source: Any) -> list[Tree]:
    """Return the objects of a step."""
    found = yaml.safe_load_all(source) if isinstance(source, str) else [source]
    return [orjson.loads(orjson.dumps(each, option=orjson.OPT_NON_STR_KEYS)) for each in found]


def cases(root: Path) -> Iterator[Tree]:
    """Yield the cases that refuse something of our kinds."""
    for area in AREAS:
        for path in sorted((root / "cases" / area).glob("*.yaml")):
            case: Tree = yaml.safe_load(path.read_text())
            if any("reject" in step for step in case["steps"]):
                yield case


class Player:
    """Plays steps on a fresh server."""

    def __init__(self) -> None:
        env = Env(seed=1, clock=lambda: EPOCH)
        self.registry = Registry(workload_kinds(SCHEMAS.codec))
        self.api = ApiServer(store=Store(), registry=self.registry, env=env, chain=Chain(), subresources=Subresources(), managing=Managing(SCHEMAS))

    def served(self, kind: str, api_version: str = "") -> Served:
        """Return a kind."""
        found = self.registry.by_kind(api_version, kind) if api_version else None
        return found or self.registry.preferred(next(each for each in self.registry if each.kind == kind))

    def create(self, obj: Tree) -> None:
        """Create an object."""
        namespace = obj["metadata"].get("namespace", "default")
        asyncio.run(self.api.create(self.served(obj["kind"], obj["apiVersion"]), namespace, obj))

    def patch(self, step: Tree) -> None:
        """Patch an object."""
        served, patch = self.served(step["kind"]), Patch(step.get("type", "merge"), step["body"])
        asyncio.run(self.api.patch(served, "default", step["name"], patch, subresource=step.get("subresource", "")))

    def refused(self, step: Tree) -> int:
        """Play a `reject` step of our kinds; return 1 when there was one."""
        created = documents(step["create"])[0] if "create" in step else {}
        if created.get("kind") not in KINDS and step.get("patch", {}).get("kind") not in KINDS:
            return 0
        with pytest.raises(ApiStatus, match=step.get("message")) as problem:
            self.create(created) if created else self.patch(step["patch"])
        assert problem.value.code in (step["code"] if isinstance(step["code"], list) else [step["code"]])
        return 1


def test_objects_are_refused_with_the_recorded_texts(conformance: Path) -> None:
    """Each object that the real API server refused on create is refused with the same code and text."""
    played = 0
    for case in cases(conformance):
        if case["id"] not in WITHOUT_CONTROLLERS:
            player = Player()
            played += sum(player.refused(step["reject"]) for step in case["steps"] if "create" in step.get("reject", ()))
    assert played > 70


def test_changes_are_refused_with_the_recorded_texts(conformance: Path) -> None:
    """Each change that the real API server refused is refused here, and the accepted ones in between are accepted."""
    seen = {case["id"] for case in cases(conformance) if case["id"] in WITHOUT_CONTROLLERS and play(case)}
    assert seen == WITHOUT_CONTROLLERS


def play(case: Tree) -> int:
    """Play the writes of a case; return how many were refused."""
    player = Player()
    count = 0
    for step in case["steps"]:
        if "apply" in step:
            for obj in documents(step["apply"]):
                player.create(obj)
        elif "patch" in step:
            player.patch(step["patch"])
        elif "reject" in step:
            count += player.refused(step["reject"])
    return count


def untouched(case: Tree) -> list[Tree]:
    """Return the objects of our kinds that a case creates once and never writes again."""
    applied = [obj for step in case["steps"] if "apply" in step for obj in documents(step["apply"]) if obj["kind"] in KINDS]
    names = [(obj["kind"], obj["metadata"].get("name")) for obj in applied]
    steps = [step[verb] for step in case["steps"] for verb in ("patch", "scale") if verb in step and step[verb].get("subresource") != "status"]
    written = [(step["kind"], step["name"]) for step in steps]
    return [obj for obj, name in zip(applied, names, strict=True) if names.count(name) == 1 and name not in written]


def with_uid_hidden(tree: Any, uid: str, shown: str) -> Any:
    """Return a tree with a uid replaced, as recorded states have it."""
    return orjson.loads(orjson.dumps(tree).replace(uid.encode(), shown.encode()))


def test_new_objects_read_back_as_recorded(conformance: Path) -> None:
    """What nobody writes again has exactly the spec and labels of the recorded end state: defaults, generated selector and labels."""
    compared = 0
    for area in ("job", "cronjob", "statefulset", "apps"):
        for path in sorted((conformance / "cases" / area).glob("*.yaml")):
            case: Tree = yaml.safe_load(path.read_text())
            golden = conformance / "golden" / area / f"{case['id']}.json"
            if not golden.is_file():
                continue
            ends = {(each["kind"], each["metadata"]["name"]): each for each in orjson.loads(golden.read_bytes())["objects"]}
            player = Player()
            for obj in untouched(case):
                kind, name = obj["kind"], obj["metadata"].get("name")
                if (kind, name) not in ends:
                    continue
                player.create(obj)
                mine = player.api.get(player.served(kind, obj["apiVersion"]), obj["metadata"].get("namespace", "default"), name).obj
                mine = with_uid_hidden(mine, mine["metadata"]["uid"], f"uid:{kind}/{name}")
                end = ends[kind, name]
                assert (mine["spec"], mine["metadata"].get("labels")) == (end["spec"], end["metadata"].get("labels")), f"{case['id']} {kind}/{name}"
                compared += 1
    assert compared > 60
