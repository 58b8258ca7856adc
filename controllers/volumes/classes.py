"""Which storage class is the default."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.runtime.informer import Informer

BETA_DEFAULT = "storageclass.beta.kubernetes.io/is-default-class"


def default_class(classes: Informer) -> Tree | None:
    """Return the default class: of several the newest, then the first by name."""
    marked = [
        each
        for each in classes.list()
        if any((each["metadata"].get("annotations") or {}).get(mark) == "true" for mark in (names.DEFAULT_STORAGE_CLASS, BETA_DEFAULT))
    ]
    newest = max((each["metadata"]["creationTimestamp"] for each in marked), default="")
    return min((each for each in marked if each["metadata"]["creationTimestamp"] == newest), key=lambda each: each["metadata"]["name"], default=None)
