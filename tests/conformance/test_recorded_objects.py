"""Objects that a real control plane served are clean: decoding them changes nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from kubemini.machinery.schema.builtin import builtin_schemas

OPEN = ("<any>", "<maybe>")
"""What stands for a value that two runs disagreed on."""

THINNED = ("annotations", "values")
"""What the recording takes entries out of: it may stand there empty, as no server serves it."""


def restored(tree: Any) -> Any:
    """Return a recorded object with its placeholders made good: times and hashes filled in, open values left out with what held only them."""
    if isinstance(tree, dict):
        kept = {key.replace("<hash>", "1"): restored(each) for key, each in tree.items() if not (isinstance(each, str) and each in OPEN)}
        return {key: each for key, each in kept.items() if each or not (_hollow(tree.get(key)) or key in THINNED)}
    if isinstance(tree, list):
        return [restored(each) for each in tree if not (isinstance(each, str) and each in OPEN)]
    if isinstance(tree, str):
        return "2026-01-01T00:00:00Z" if tree.startswith("<time>") else tree.replace("<hash>", "1")
    return tree


def _hollow(tree: Any) -> bool:
    """Tell whether something held nothing but open values."""
    values = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    return bool(values) and all(isinstance(each, str) and each in OPEN for each in values)


def test_recorded_objects_are_clean(conformance: Path) -> None:
    """Every recorded object of a built-in kind decodes to itself, without a warning."""
    schemas = builtin_schemas("1.36")
    seen: Counter[str] = Counter()
    for path in sorted((conformance / "golden").glob("*/*.json")):
        for recorded in json.loads(path.read_bytes())["objects"]:
            tree = restored(recorded)
            group, _, version = tree["apiVersion"].rpartition("/")
            if schemas.type_of(group, version, tree["kind"]) is None:
                continue
            if tree["kind"] == "Pod":
                # Recorded without the times of its conditions.
                tree["status"] = {key: each for key, each in tree.get("status", {}).items() if key != "conditions"}
            for owner in tree["metadata"].get("ownerReferences", ()):
                owner.setdefault("uid", "u")
            decoded = schemas.codec(group, version, tree["kind"]).decode(tree, validation="Strict")
            assert decoded.tree == tree, path
            seen[tree["kind"]] += 1
    assert {"Pod", "Job", "StatefulSet", "Service", "Deployment", "CronJob", "PersistentVolumeClaim", "ResourceClaim"} <= seen.keys()
