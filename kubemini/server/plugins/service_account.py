"""ServiceAccount: every pod has an account, and a token of it.

The volume of the token has a name that follows from the account, not from the pod: so all pods of a template share the very same
lists of containers and volumes, and work on those (defaults, validation, field sets) is done once. Mirrors
``plugin/pkg/admission/serviceaccount`` (1.36), whose names are random.
"""

from __future__ import annotations

from hashlib import blake2s
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.runtime.env import SUFFIX_ALPHABET
from kubemini.server.admission import Admission, AdmissionRequest

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
ROOT_CA = "kube-root-ca.crt"
MIRROR = "kubernetes.io/config.mirror"
TOKEN_SECONDS = 3607
"""One hour, and a little so that the kubelet can tell defaulted tokens from others."""
_LIMIT = 4096


class ServiceAccount(Admission):
    """Fills the account of pods, its pull secrets, and the volume with its token."""

    name = "ServiceAccount"
    operations = ("CREATE",)
    resources = ("pods",)

    def __init__(self) -> None:
        self._containers: dict[tuple[int, str], tuple[list[Tree], list[Tree]]] = {}
        self._volumes: dict[tuple[int, str], tuple[Any, list[Tree]]] = {}
        self._names: dict[str, str] = {}

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the pod with account and token. Raise `Forbidden` for an account that does not exist."""
        pod = request.obj or {}
        annotations = pod["metadata"].get("annotations")
        if annotations and MIRROR in annotations:
            return None
        spec = pod["spec"]
        name = spec.get("serviceAccountName") or "default"
        account = request.ctx.reader.get("serviceaccounts", request.namespace, name)
        if account is None:
            why = f'error looking up service account {request.namespace}/{name}: serviceaccount "{name}" not found'
            raise Forbidden.of("pods", "", request.name, why)
        changes: Tree = {}
        if "serviceAccountName" not in spec:
            changes["serviceAccountName"] = changes["serviceAccount"] = name
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            changes["imagePullSecrets"] = account["imagePullSecrets"]
        automount = spec.get("automountServiceAccountToken")
        if automount is None:
            automount = account.get("automountServiceAccountToken", True)
        if automount:
            self._mount(spec, self._volume_name(account), changes)
        return {**pod, "spec": {**spec, **changes}} if changes else None

    def _volume_name(self, account: Tree) -> str:
        """Return the name of the volume for an account's token."""
        uid = account["metadata"].get("uid", "")
        found = self._names.get(uid)
        if found is None:
            if len(self._names) > _LIMIT:
                self._names.clear()
            digest = blake2s(uid.encode(), digest_size=5).digest()
            suffix = "".join(SUFFIX_ALPHABET[each % len(SUFFIX_ALPHABET)] for each in digest)
            found = self._names[uid] = f"kube-api-access-{suffix}"
        return found

    def _mount(self, spec: Tree, name: str, changes: Tree) -> None:
        """Mount the token into every container that has nothing at its path, and add the volume if any does."""
        mounted = False
        for key in ("containers", "initContainers"):
            old = spec.get(key)
            if old:
                new = self._mounted(old, name)
                if new is not old:
                    changes[key] = new
                    mounted = True
        if mounted:
            changes["volumes"] = self._with_volume(spec.get("volumes"), name)

    def _mounted(self, containers: list[Tree], name: str) -> list[Tree]:
        key = (id(containers), name)
        found = self._containers.get(key)
        if found is None:
            new = [_with_mount(each, name) for each in containers]
            if all(one is other for one, other in zip(containers, new, strict=True)):
                new = containers
            if len(self._containers) > _LIMIT:
                self._containers.clear()
            found = self._containers[key] = (containers, new)
        return found[1]

    def _with_volume(self, volumes: list[Tree] | None, name: str) -> list[Tree]:
        key = (id(volumes), name)
        found = self._volumes.get(key)
        if found is None:
            if len(self._volumes) > _LIMIT:
                self._volumes.clear()
            found = self._volumes[key] = (volumes, [*(volumes or ()), token_volume(name)])
        return found[1]


def _with_mount(container: Tree, name: str) -> Tree:
    mounts = container.get("volumeMounts") or []
    if any(each.get("mountPath") == MOUNT_PATH for each in mounts):
        return container
    return {**container, "volumeMounts": [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]}


def token_volume(name: str) -> Tree:
    """Return the projected volume with token, certificate and namespace."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": ROOT_CA, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 420}}
