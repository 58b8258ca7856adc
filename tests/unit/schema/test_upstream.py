"""The CustomResourceDefinitions of JobSet, LeaderWorkerSet and Kueue compile as they are, and their examples pass."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from kubemini.api.trees import Tree
from kubemini.machinery.schema.structural import StructuralCodec
from kubemini.server.kinds.crd.validation import validate_crd
from tests.conftest import ROOT

SHARED = ROOT.parent / "shared"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEFAULTED_BY_WEBHOOK = "failurePolicy.rules"
"""JobSet's webhook names these rules before the schema is looked at."""


def documents(folder: str) -> Iterator[Tree]:
    """Yield the YAML documents of a folder beside the repository."""
    for path in sorted((SHARED / folder).rglob("*.yaml")):
        for document in yaml.load_all(path.read_text(), LOADER):
            if document:
                yield document


@cache
def definitions() -> list[Tree]:
    """Return the CRDs; skip where they are not at hand."""
    found = list(documents("crds")) if (SHARED / "crds").is_dir() else []
    if not found:
        pytest.skip(f"the upstream CRDs are not at hand ({SHARED / 'crds'})")
    return found


@cache
def codecs() -> dict[tuple[str, str], StructuralCodec]:
    """Return a codec for every version of every CRD."""
    found: dict[tuple[str, str], StructuralCodec] = {}
    for crd in definitions():
        group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
        for version in crd["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            found[f"{group}/{version['name']}", kind] = StructuralCodec(schema, group=group, version=version["name"], kind=kind)
    return found


def test_every_definition_is_accepted() -> None:
    """No upstream CRD breaks a rule: structure, defaults, list types, CEL types and CEL costs."""
    for crd in definitions():
        stored = [version["name"] for version in crd["spec"]["versions"] if version["storage"]]
        names = {"singular": crd["spec"]["names"]["kind"].lower(), "listKind": crd["spec"]["names"]["kind"] + "List", **crd["spec"]["names"]}
        whole = {**crd, "spec": {**crd["spec"], "names": names}, "status": {"storedVersions": stored}}
        assert [str(error) for error in validate_crd(whole)] == [], crd["metadata"]["name"]


def test_every_example_is_accepted() -> None:
    """Every example manifest of these kinds decodes strictly and is valid."""
    seen = 0
    for document in documents("manifests"):
        codec = codecs().get((document.get("apiVersion", ""), document.get("kind", "")))
        if codec is None:
            continue
        seen += 1
        clean = codec.decode(document, validation="Strict").tree
        again = codec.decode(clean)
        assert again.tree is clean
        errors: list[Any] = [error for error in codec.validate(clean) if DEFAULTED_BY_WEBHOOK not in error.field and error.field != "<nil>"]
        assert errors == [], document["metadata"]
    assert seen > 50
