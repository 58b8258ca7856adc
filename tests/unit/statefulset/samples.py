"""Sets and pods for the tests of this folder."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.stateful_set.view import SetView

NOW = 1000.0
READY_AT = "1970-01-01T00:10:00Z"
"""600 s: long before NOW."""
JUST_READY = "1970-01-01T00:16:39Z"
"""999 s: a second before NOW."""


def stateful_set(replicas: int = 3, *, status: Tree | None = None, **spec: Any) -> SetView:
    """Return a set called web."""
    template = {"metadata": {"labels": {"app": "web"}, "annotations": {"v": "1"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    tree = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "set", "generation": 1},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "svc", "template": template, **spec},
    }
    return SetView({**tree, "status": status} if status is not None else tree)


def pod(ordinal: int, revision: str = "new", *, phase: str = "Running", ready: bool = True, going: bool = False, since: str = READY_AT) -> Tree:
    """Return a pod of web."""
    name = f"web-{ordinal}"
    labels = {
        "app": "web",
        "controller-revision-hash": revision,
        "statefulset.kubernetes.io/pod-name": name,
        "apps.kubernetes.io/pod-index": str(ordinal),
    }
    meta: Tree = {"name": name, "namespace": "default", "uid": f"pod-{ordinal}", "labels": labels}
    if going:
        meta["deletionTimestamp"] = "1970-01-01T00:16:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": since}]
    return {"metadata": meta, "spec": {"containers": []}, "status": {"phase": phase, "conditions": conditions}}
