"""What claims, volumes and ingresses get on creation: a default class, and a finalizer while they are used."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.server.admission import Admission, AdmissionRequest

CLASSES = "storageclasses.storage.k8s.io"
INGRESS_CLASSES = "ingressclasses.networking.k8s.io"
DEFAULT_CLASS_MARKS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
DEFAULT_INGRESS_MARK = "ingressclass.kubernetes.io/is-default-class"
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_FINALIZERS = {"persistentvolumeclaims": "kubernetes.io/pvc-protection", "persistentvolumes": "kubernetes.io/pv-protection"}


def default_storage_class(classes: Sequence[Tree]) -> Tree | None:
    """Return the default class: of several the newest, then the first by name."""
    found = [each for each in classes if any((each["metadata"].get("annotations") or {}).get(mark) == "true" for mark in DEFAULT_CLASS_MARKS)]
    if not found:
        return None
    newest = max(each["metadata"].get("creationTimestamp", "") for each in found)
    return min((each for each in found if each["metadata"].get("creationTimestamp", "") == newest), key=lambda each: each["metadata"]["name"])


class DefaultStorageClass(Admission):
    """Gives claims that name no class the default one."""

    name = "DefaultStorageClass"
    operations = ("CREATE",)
    resources = ("persistentvolumeclaims",)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the claim with a class, where there is a default."""
        claim = request.obj or {}
        spec = claim.get("spec") or {}
        if spec.get("storageClassName") is not None or _BETA_CLASS in (claim["metadata"].get("annotations") or {}):
            return None
        found = default_storage_class(request.ctx.reader.list(CLASSES))
        return None if found is None else {**claim, "spec": {**spec, "storageClassName": found["metadata"]["name"]}}


class StorageObjectInUseProtection(Admission):
    """Adds the finalizers that keep claims and volumes while they are used."""

    name = "StorageObjectInUseProtection"
    operations = ("CREATE",)
    resources = ("persistentvolumeclaims", "persistentvolumes")

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the object with its finalizer."""
        obj = request.obj or {}
        wanted, finalizers = _FINALIZERS[request.kind.storage], obj["metadata"].get("finalizers") or []
        if wanted in finalizers:
            return None
        return {**obj, "metadata": {**obj["metadata"], "finalizers": [*finalizers, wanted]}}


class DefaultIngressClass(Admission):
    """Gives ingresses that name no class the default one."""

    name = "DefaultIngressClass"
    operations = ("CREATE",)
    resources = ("ingresses.networking.k8s.io",)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the ingress with a class, where there is a default. Raise `Forbidden` where there are several."""
        ingress = request.obj or {}
        spec = ingress.get("spec") or {}
        if spec.get("ingressClassName") is not None or "kubernetes.io/ingress.class" in (ingress["metadata"].get("annotations") or {}):
            return None
        classes = request.ctx.reader.list(INGRESS_CLASSES)
        found = [each for each in classes if (each["metadata"].get("annotations") or {}).get(DEFAULT_INGRESS_MARK) == "true"]
        if not found:
            return None
        newest = max(found, key=lambda each: (each["metadata"].get("creationTimestamp", ""), each["metadata"]["name"]))
        if len(found) > 1 and len({each["metadata"].get("creationTimestamp") for each in found}) == 1:
            raise Forbidden.of("ingresses", "networking.k8s.io", request.name, f"{len(found)} default IngressClasses were found, only 1 allowed")
        return {**ingress, "spec": {**spec, "ingressClassName": newest["metadata"]["name"]}}
