"""The objects that every cluster starts with."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.resources import NAMESPACES, PRIORITY_CLASSES, SERVICES, STORAGE_CLASSES, Resource
from kubemini.api.trees import Tree

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
STORAGE_CLASS_NAMES = ("kwok-volume", "standard")
"""Both provision at once. The first is the default, named as simulated clusters name it; the other is what manifests for clusters in a cloud ask for."""


def objects(operators: Sequence[str] = ()) -> list[tuple[Resource, Tree]]:
    """Return the bootstrap objects in the order in which they are created; `operators` are the namespaces of installed operators."""
    made: list[tuple[Resource, Tree]] = [
        (NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}) for name in (*SYSTEM_NAMESPACES, *operators)
    ]
    made += [
        (
            PRIORITY_CLASSES,
            {
                "apiVersion": "scheduling.k8s.io/v1",
                "kind": "PriorityClass",
                "metadata": {"name": name},
                "value": value,
                "preemptionPolicy": "PreemptLowerPriority",
                "description": description,
            },
        )
        for name, value, description in (
            (
                "system-cluster-critical",
                2000000000,
                "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
            ),
            ("system-node-critical", 2000001000, "Used for system critical pods that must not be moved from their current node."),
        )
    ]
    made += [
        (
            STORAGE_CLASSES,
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"} if number == 0 else {}},
                "provisioner": "kubemini.dev/simulated",
                "reclaimPolicy": "Delete",
                "volumeBindingMode": "Immediate",
            },
        )
        for number, name in enumerate(STORAGE_CLASS_NAMES)
    ]
    made.append(
        (
            SERVICES,
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "kubernetes", "namespace": "default", "labels": {"component": "apiserver", "provider": "kubernetes"}},
                "spec": {
                    "type": "ClusterIP",
                    "clusterIP": "10.96.0.1",
                    "clusterIPs": ["10.96.0.1"],
                    "ipFamilies": ["IPv4"],
                    "ipFamilyPolicy": "SingleStack",
                    "internalTrafficPolicy": "Cluster",
                    "sessionAffinity": "None",
                    "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
                },
            },
        )
    )
    return made
