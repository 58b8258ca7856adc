"""Definitions for tests: a small one, with parts replaced."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree

OBJECT: Tree = {"type": "object"}


def version(name: str = "v1", schema: Tree | None = OBJECT, **parts: Any) -> Tree:
    """Return a version that is served and stored."""
    described = {} if schema is None else {"schema": {"openAPIV3Schema": schema}}
    return {"name": name, "served": True, "storage": True, **described, **parts}


def definition(*versions: Tree, name: str = "gears.example.com", meta: Tree | None = None, status: Tree | None = None, **spec: Any) -> Tree:
    """Return a definition of gears as it is before a create, defaults filled in. Keywords replace parts of its spec."""
    versions = versions or (version(),)
    stored = [each["name"] for each in versions if each["storage"]]
    names = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name, **(meta or {})},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": list(versions), **spec},
        "status": {"acceptedNames": {"kind": "", "plural": ""}, "conditions": None, "storedVersions": stored, **(status or {})},
    }


def established(crd: Tree, *more: Tree) -> Tree:
    """Return a definition as it is once its names are accepted, with more conditions."""
    conditions = [
        {
            "type": "NamesAccepted",
            "status": "True",
            "reason": "NoConflicts",
            "message": "no conflicts found",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
        {"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"},
    ]
    return {**crd, "status": {**crd["status"], "acceptedNames": crd["spec"]["names"], "conditions": [*conditions, *more]}}


def spec_of(properties: Tree, **more: Any) -> Tree:
    """Return the schema of objects whose spec has properties."""
    return {"type": "object", "properties": {"spec": {"type": "object", "properties": properties, **more}}}
