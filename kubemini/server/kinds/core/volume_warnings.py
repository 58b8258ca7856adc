"""Texts of ``Warning`` headers about volumes: what goes out of use, or does not work any more."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.server.kinds.core.pod_warnings import GONE_VOLUMES, OLD_NODE_LABELS

_ANNOTATIONS = {
    "volume.beta.kubernetes.io/storage-class": 'deprecated since v1.8; use "storageClassName" attribute instead',
    "volume.beta.kubernetes.io/mount-options": 'deprecated since v1.31; use "mountOptions" attribute instead',
}
_GONE = ("cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd")
_SPELT = {"storageos": "storageOS"}


def volume_warnings(volume: Tree) -> Iterator[str]:
    """Yield the warnings about a PersistentVolume."""
    annotations: Tree = volume["metadata"].get("annotations") or {}
    for key, text in _ANNOTATIONS.items():
        if key in annotations:
            yield f"metadata.annotations[{key}]: {text}"
    spec: Tree = volume.get("spec") or {}
    if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        yield (
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. "
            "Instead, the recommended approach is to use dynamic provisioning."
        )
    for index, term in enumerate(((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()):
        yield from label_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{index}]")
    for key in _GONE:
        if spec.get(key) is not None:
            yield f"spec.{_SPELT.get(key, key)}: {GONE_VOLUMES[key]}"


def label_warnings(selector: Tree | None, path: str) -> Iterator[str]:
    """Name the old labels of nodes that a selector, or a term of one, asks for."""
    for index, each in enumerate((selector or {}).get("matchExpressions") or ()):
        if (advice := OLD_NODE_LABELS.get(each.get("key", ""))) is not None:
            yield f"{path}.matchExpressions[{index}].key: {each['key']} is {advice}"
    for key in (selector or {}).get("matchLabels") or ():
        if (advice := OLD_NODE_LABELS.get(key)) is not None:
            yield f"{path}.matchLabels.{key}: {advice}"
