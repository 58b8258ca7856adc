"""Fields whose feature gate is off are dropped on the way in, as kube-apiserver's strategies drop them."""

from __future__ import annotations

from kubemini.api.trees import Tree, drop_in, get_in
from kubemini.server.admission import Admission, AdmissionRequest

_TEMPLATES = ("jobs.batch", "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "replicationcontrollers")
_OWN = ("spec",)
_PATHS: dict[str, tuple[str, ...]] = {
    "pods": _OWN,
    "cronjobs.batch": ("spec", "jobTemplate", "spec", "template", "spec"),
    **dict.fromkeys(_TEMPLATES, ("spec", "template", "spec")),
}


class DropDisabledFields(Admission):
    """Drops fields of pod specs, wherever they stand; one that a stored object has already is kept, as upstream keeps it."""

    name = "DropDisabledFields"
    resources = tuple(_PATHS)

    def __init__(self, *fields: str) -> None:
        self._fields = fields

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the object without the fields."""
        path = _PATHS[request.kind.storage]
        obj = request.obj or {}
        spec = obj.get("spec") if path == _OWN else get_in(obj, *path)
        if not isinstance(spec, dict) or spec.keys().isdisjoint(self._fields):
            return None
        old = get_in(request.old or {}, *path, default={}) or {}
        for name in self._fields:
            if name in spec and name not in old:
                obj = drop_in(obj, (*path, name))
        return obj
