"""The headless Services by which the pods of groups find each other."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names
from kubemini.runtime.keys import owner_reference


def headless(lws: str, name: str, selector: Tree, owner: Tree) -> Tree:
    """Return a headless Service of a LeaderWorkerSet that goes with its owner; it tells of pods that are not ready too."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": {names.NAME: lws},
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": {"clusterIP": "None", "selector": selector, "publishNotReadyAddresses": True},
    }
