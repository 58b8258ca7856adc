"""RuntimeClass: what a runtime costs and where it runs is written into the pods that use it."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.server.admission import Admission, AdmissionRequest

CLASSES = "runtimeclasses.node.k8s.io"


class RuntimeClass(Admission):
    """Fills overhead, node selector and tolerations of pods from their runtime class."""

    name = "RuntimeClass"
    operations = ("CREATE",)
    resources = ("pods",)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the pod with what its runtime class asks for. Raise `Forbidden` for an unknown class or a contradiction."""
        pod = request.obj or {}
        spec = pod["spec"]
        if not spec.get("runtimeClassName"):
            return None
        found = self._found(request, spec["runtimeClassName"])
        changes: Tree = {}
        overhead = (found.get("overhead") or {}).get("podFixed")
        if overhead:
            if spec.get("overhead") and spec["overhead"] != overhead:
                raise _rejected(request, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")
            changes["overhead"] = overhead
        scheduling = found.get("scheduling") or {}
        if scheduling.get("nodeSelector"):
            changes["nodeSelector"] = _merged(request, spec.get("nodeSelector") or {}, scheduling["nodeSelector"])
        tolerations = spec.get("tolerations") or []
        added = [each for each in scheduling.get("tolerations") or () if each not in tolerations]
        if added:
            changes["tolerations"] = [*tolerations, *added]
        return {**pod, "spec": {**spec, **changes}} if changes else None

    def validate(self, request: AdmissionRequest) -> None:
        """Refuse an overhead that no runtime class explains. Raise `Forbidden`."""
        spec = (request.obj or {})["spec"]
        if not spec.get("overhead"):
            return
        if not spec.get("runtimeClassName"):
            raise _rejected(request, "Pod Overhead set without corresponding RuntimeClass defined Overhead")
        expected = (self._found(request, spec["runtimeClassName"]).get("overhead") or {}).get("podFixed")
        if spec["overhead"] != expected:
            raise _rejected(request, "Pod's Overhead doesn't match RuntimeClass's defined Overhead")

    def _found(self, request: AdmissionRequest, name: str) -> Tree:
        found = request.ctx.reader.get(CLASSES, "", name)
        if found is None:
            raise _rejected(request, f'RuntimeClass "{name}" not found')
        return found


def _merged(request: AdmissionRequest, own: Tree, added: Tree) -> Tree:
    for key, value in added.items():
        if key in own and own[key] != value:
            text = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] = {own[key]}"
            raise Forbidden.of("pods", "", request.name, text)
    return {**own, **added}


def _rejected(request: AdmissionRequest, why: str) -> Forbidden:
    return Forbidden.of("pods", "", request.name, f"pod rejected: {why}")
