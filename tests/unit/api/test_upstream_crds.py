"""The kinds we own say the same as upstream's CustomResourceDefinitions, field by field and rule by rule."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubemini.api.embedded import EmbeddedTypes, expanded
from kubemini.api.openapi import structural_schema
from kubemini.api.operators import OWNED_KINDS
from kubemini.api.owned import OwnedKind, crd_of
from kubemini.api.trees import Tree
from kubemini.api.volcano import PodGroup

CRDS = Path(__file__).resolve().parents[4] / "shared" / "crds"
KINDS = {f"{kind.plural}.{kind.group}": kind for kind in OWNED_KINDS}
VERSIONS = [(name, version.name) for name, kind in KINDS.items() for version in kind.versions]
EMBEDDED = EmbeddedTypes()

pytestmark = pytest.mark.skipif(not CRDS.is_dir(), reason="upstream's CRDs are not here")


@cache
def upstream(name: str) -> Tree:
    """Return an upstream CRD by its name; the same tree each time. Skip where it is not here."""
    plural, _, group = name.partition(".")
    path = CRDS / f"{group}_{plural}.yaml"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    return load(path)


def load(path: Path) -> Tree:
    """Return a YAML file; the C parser is ten times as fast on a megabyte."""
    loaded: Tree = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return loaded


def upstream_version(name: str, version: str) -> Tree:
    """Return one version of an upstream CRD."""
    found: Tree = next(each for each in upstream(name)["spec"]["versions"] if each["name"] == version)
    return found


def differences(ours: Tree, theirs: Tree, path: str = "") -> Iterator[str]:
    """Yield what differs between two schemas, descriptions aside."""
    for key in sorted((ours.keys() | theirs.keys()) - {"description"}):
        mine, upstreams = ours.get(key), theirs.get(key)
        if key == "properties":
            mine, upstreams = mine or {}, upstreams or {}
            for name in sorted(mine.keys() | upstreams.keys()):
                if name in mine and name in upstreams:
                    yield from differences(mine[name], upstreams[name], f"{path}.{name}")
                else:
                    yield f"{path}.{name}: only {'ours' if name in mine else 'upstream'}"
        elif isinstance(mine, dict) and isinstance(upstreams, dict) and key in {"items", "additionalProperties"}:
            yield from differences(mine, upstreams, f"{path}[]" if key == "items" else f"{path}{{}}")
        elif key == "required":
            if sorted(mine or ()) != sorted(upstreams or ()):
                yield f"{path}: required is {mine}, upstream {upstreams}"
        elif mine != upstreams or type(mine) is not type(upstreams):
            yield f"{path}: {key} is {mine!r}, upstream {upstreams!r}"


def model_schema(kind: OwnedKind, version: str) -> Tree:
    """Return the schema of the model of a kind, built-in types spelled out."""
    module, _, name = next(each.model for each in kind.versions if each.name == version).partition(":")
    return expanded(structural_schema(getattr(import_module(module), name)), EMBEDDED)


def test_same_kinds() -> None:
    """Every kind that upstream brings is ours, and no other; Volcano's PodGroup is not served."""
    files = {path.name for path in CRDS.glob("*.yaml")}
    assert files - {f"{kind.group}_{kind.plural}.yaml" for kind in KINDS.values()} == {"podgroups.scheduling.volcano.sh.yaml"}


@pytest.mark.parametrize("name,version", VERSIONS)
def test_same_schema(name: str, version: str) -> None:
    """Types, defaults, enums, bounds, patterns, formats, list types, required fields and CEL rules are upstream's, down into pod templates."""
    theirs = upstream_version(name, version)["schema"]["openAPIV3Schema"]
    assert list(differences(model_schema(KINDS[name], version), theirs)) == []


@pytest.mark.parametrize("name,version", VERSIONS)
def test_same_version(name: str, version: str) -> None:
    """Printer columns, subresources, selectable fields, storage and deprecation of a version are upstream's."""

    def facts(tree: Tree) -> Tree:
        columns = [{key: value for key, value in each.items() if key != "description"} for each in tree.get("additionalPrinterColumns", ())]
        # An empty object is how upstream writes that nothing is served.
        return {
            **{key: value for key, value in tree.items() if key != "schema"},
            "additionalPrinterColumns": columns,
            "subresources": tree.get("subresources") or None,
        }

    ours = next(each for each in crd_of(KINDS[name])["spec"]["versions"] if each["name"] == version)
    assert facts(ours) == facts(upstream_version(name, version))


@pytest.mark.parametrize("name", KINDS)
def test_same_names(name: str) -> None:
    """Group, names, short names, categories, scope and the order of versions are upstream's."""

    def facts(tree: Tree) -> Tree:
        versions = [version["name"] for version in tree["spec"]["versions"]]
        return {**tree, "metadata": {"name": tree["metadata"]["name"]}, "spec": {**tree["spec"], "versions": versions}}

    assert facts(crd_of(KINDS[name])) == facts(upstream(name))


@pytest.mark.parametrize("name,version", VERSIONS)
def test_own_words(name: str, version: str) -> None:
    """No description of ours is upstream's."""

    def texts(schema: Any, path: str = "") -> Iterator[tuple[str, str]]:
        if isinstance(schema, dict):
            if isinstance(schema.get("description"), str):
                yield path, " ".join(schema["description"].lower().rstrip(".").split())
            for key, value in schema.items():
                yield from texts(value, f"{path}.{key}")

    theirs = dict(texts(upstream_version(name, version)))
    ours = next(each for each in crd_of(KINDS[name])["spec"]["versions"] if each["name"] == version)
    assert [path for path, text in texts(ours) if theirs.get(path) == text] == []


def test_volcano_holds_what_the_gang_scheduling_of_lws_uses() -> None:
    """Every field of the PodGroup that LeaderWorkerSet tests with is in ours, with the same type."""
    theirs = load(CRDS / "podgroups.scheduling.volcano.sh.yaml")["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found = [each for each in differences(structural_schema(PodGroup), theirs) if not each.endswith(": only ours")]
    assert found == []
