"""The generated schemas are those of the models, and reading them costs no models."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kubemini.api import resources
from kubemini.api.embedded import EmbeddedTypes, referenced
from kubemini.api.openapi import generated_files
from kubemini.api.operators import OWNED_KINDS
from kubemini.api.owned import GENERATED, OwnedKind, schema_of

FILES = dict(generated_files())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_up_to_date(path: Path) -> None:
    """A committed file is what the models give; run ``python -m kubemini.api.openapi`` after a change of a model."""
    assert path.read_bytes() == FILES[path]


def test_no_other_files() -> None:
    """No file is left of a version that is gone."""
    assert set(GENERATED.iterdir()) == set(FILES)


def test_reading_imports_no_pydantic() -> None:
    """A server reads every schema and description of the owned kinds without importing pydantic or a model."""
    code = (
        "import sys\n"
        "from kubemini.api.embedded import EmbeddedTypes\n"
        "from kubemini.api.owned import crd_of; from kubemini.api.operators import OWNED_KINDS\n"
        "[crd_of(each) for each in OWNED_KINDS]\n"
        "EmbeddedTypes()['io.k8s.api.core.v1.PodSpec']\n"
        "print('pydantic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("kind", OWNED_KINDS, ids=lambda kind: kind.kind)
def test_references_resolve(kind: OwnedKind) -> None:
    """Every ``$ref`` names a built-in type, and so on all the way down; kinds with pod templates refer to pods."""
    for version in kind.versions:
        found = referenced(schema_of(kind.group, version.name, kind.kind), EmbeddedTypes())
        holds_pods = kind.kind in {"JobSet", "LeaderWorkerSet", "DisaggregatedSet", "Workload"}
        assert ("io.k8s.api.core.v1.Container" in found) is holds_pods
        assert not any("$ref" in each for each in found.values())


def test_every_field_is_described() -> None:
    """``kubectl explain`` has a sentence for every field of ours."""

    def bare(schema: Any, path: str) -> Iterator[str]:
        for name, each in schema.get("properties", {}).items():
            if not each.get("description", "").endswith("."):
                yield f"{path}.{name}"
            yield from bare(each, f"{path}.{name}")
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                yield from bare(schema[key], path)

    for kind in OWNED_KINDS:
        for version in kind.versions:
            assert list(bare(schema_of(kind.group, version.name, kind.kind), kind.kind)) == []


def test_unknown_kinds() -> None:
    """Asking for a kind or version that is not ours is a KeyError."""
    for group, version, kind in (("jobset.x-k8s.io", "v1alpha2", "Pod"), ("jobset.x-k8s.io", "v9", "JobSet"), ("nobody", "v1", "JobSet")):
        with pytest.raises(KeyError):
            schema_of(group, version, kind)


def test_handles() -> None:
    """Every kind of ours has a handle in its stored version."""
    handles = {value for value in vars(resources).values() if isinstance(value, resources.Resource)}
    for kind in OWNED_KINDS:
        assert resources.Resource(kind.group, kind.versions[0].name, kind.plural, kind.kind, kind.namespaced) in handles
