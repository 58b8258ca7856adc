"""Manifests as users have them: YAML or JSON text, a file or folder, a mapping, a model of `kubemini.api`, or several of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, ConfigError
from kubemini.machinery.schema.text import parse_manifest

Manifest = str | Path | Mapping[str, Any] | Iterable[Any]
"""Text, path, object, model, or an iterable of them."""

SUFFIXES = (".yaml", ".yml", ".json")


def load(manifest: Manifest) -> list[Tree]:
    """Return the objects of a manifest in order; lists are taken apart. Raise `ConfigError` naming what cannot be read and why."""
    return [flat for each in _documents(manifest, "the manifest") for flat in _flattened(each)]


def _documents(manifest: Any, where: str) -> list[Tree]:
    if isinstance(manifest, Path):
        return _of_path(manifest)
    if isinstance(manifest, str):
        if "\n" not in manifest and manifest.endswith(SUFFIXES):
            return _of_path(Path(manifest))
        return _of_text(manifest, where)
    if isinstance(manifest, Mapping):
        return [_checked(dict(manifest), where)]
    to_tree = getattr(manifest, "to_tree", None)
    if to_tree is not None:
        return [_checked(to_tree(), where)]
    if isinstance(manifest, Iterable):
        return [document for each in manifest for document in _documents(each, where)]
    raise ConfigError(f"{where}: expected YAML text, a path, a mapping or a model, not {type(manifest).__name__}")


def _of_path(path: Path) -> list[Tree]:
    if path.is_dir():
        return [document for each in sorted(path.iterdir()) if each.suffix in SUFFIXES for document in _of_path(each)]
    try:
        text = path.read_text()
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read: {problem.strerror or problem}") from None
    return _of_text(text, str(path))


def _of_text(text: str, where: str) -> list[Tree]:
    try:
        documents = parse_manifest(text)
    except ApiStatus as problem:
        raise ConfigError(f"{where}: {problem.message}") from None
    return [_checked(document, f"{where}, document {number}") for number, document in enumerate(documents, 1)]


def _checked(document: Any, where: str) -> Tree:
    if not isinstance(document, dict):
        raise ConfigError(f"{where}: expected an object with apiVersion, kind and metadata, found {type(document).__name__}")
    for field in ("apiVersion", "kind"):
        if not isinstance(document.get(field), str) or not document[field]:
            raise ConfigError(f"{where}: {field} is missing; every object names its apiVersion and kind")
    return document


def _flattened(document: Tree) -> list[Tree]:
    if document["kind"].endswith("List") and isinstance(document.get("items"), list):
        return [flat for item in document["items"] for flat in _flattened(item)]
    return [document]
