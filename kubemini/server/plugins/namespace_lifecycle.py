"""NamespaceLifecycle: nothing new in namespaces that are absent or going; some namespaces never go."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden, NotFound
from kubemini.server.admission import Admission, AdmissionRequest

IMMORTAL = ("default", "kube-public", "kube-system")


class NamespaceLifecycle(Admission):
    """Guards creation in namespaces, and their deletion."""

    name = "NamespaceLifecycle"
    operations = ("CREATE", "DELETE")
    subresources = ("", "binding", "eviction", "token")

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Look at the namespace of a new object; this comes first of all. Raise `NotFound`, `Forbidden`."""
        if request.operation != "CREATE" or not request.kind.namespaced:
            return None
        space = request.namespace
        namespace = request.ctx.reader.get("namespaces", "", space)
        if namespace is None:
            raise NotFound.of("namespaces", "", space)
        if "deletionTimestamp" in namespace["metadata"] or (namespace.get("status") or {}).get("phase") == "Terminating":
            raise _going(request, space)
        return None

    def validate(self, request: AdmissionRequest) -> None:
        """Keep the namespaces that the cluster stands on. Raise `Forbidden`."""
        if request.operation == "DELETE" and request.kind.storage == "namespaces" and request.name in IMMORTAL:
            raise Forbidden.of("namespaces", "", request.name, "this namespace may not be deleted")


def _going(request: AdmissionRequest, space: str) -> Forbidden:
    cause = {"reason": "NamespaceTerminating", "message": f"namespace {space} is being terminated", "field": "metadata.namespace"}
    why = f"unable to create new content in namespace {space} because it is being terminated"
    return Forbidden.of(request.kind.plural, request.kind.group, request.name, why, causes=[cause])
