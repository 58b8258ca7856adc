"""What a LeaderWorkerSet says, read once for a pass."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.api.wellknown import lws as names


def scaled(value: int | str, total: int, *, up: bool) -> int:
    """Return a count or percentage of `total` as a count.

    >>> scaled("10%", 4, up=False), scaled("10%", 4, up=True), scaled(7, 4, up=False)
    (0, 1, 7)
    """
    if isinstance(value, int):
        return value
    product = int(value.removesuffix("%")) * total
    return -(-product // 100) if up else product // 100


class LwsView:
    """A LeaderWorkerSet in the words of this package."""

    __slots__ = (
        "annotations",
        "key",
        "labels",
        "meta",
        "name",
        "namespace",
        "partition",
        "replicas",
        "size",
        "spec",
        "status",
        "surge",
        "template",
        "tree",
        "uid",
        "unavailable",
    )

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.meta: Tree = tree["metadata"]
        self.spec: Tree = tree["spec"]
        self.status: Tree = tree.get("status") or {}
        self.name: str = self.meta["name"]
        self.namespace: str = self.meta["namespace"]
        self.key = f"{self.namespace}/{self.name}"
        self.uid: str = self.meta["uid"]
        self.labels: Tree = self.meta.get("labels") or {}
        self.annotations: Tree = self.meta.get("annotations") or {}
        self.replicas: int = self.spec.get("replicas", 1)
        """R: groups wanted."""
        self.template: Tree = self.spec["leaderWorkerTemplate"]
        self.size: int = self.template.get("size", 1)
        """Pods in a group, by the live spec."""
        rolling = (self.spec.get("rolloutStrategy") or {}).get("rollingUpdateConfiguration") or {}
        self.partition: int = rolling.get("partition") or 0
        """Groups of a lower index keep their revision."""
        self.unavailable = scaled(rolling.get("maxUnavailable", 1), self.replicas, up=False)
        """U: groups that an update may take down."""
        self.surge = min(scaled(rolling.get("maxSurge", 0), self.replicas, up=True), self.replicas)
        """M: groups that an update may add."""

    @property
    def leader_template(self) -> Tree:
        """The leaders' pod template: the workers' where they have none of their own."""
        found: Tree = self.template.get("leaderTemplate") or self.template["workerTemplate"]
        return found

    @property
    def leader_ready_first(self) -> bool:
        """Whether workers wait until their leader is ready."""
        return bool(self.spec.get("startupPolicy") == "LeaderReady")

    @property
    def restart_policy(self) -> str:
        """What a restarted or deleted pod means for its group."""
        found: str = self.template.get("restartPolicy", "")
        return found

    @property
    def after_start(self) -> bool:
        """Whether a group is recreated only once all its pods have started."""
        return self.restart_policy == "RecreateGroupAfterStart" or names.RECREATE_AFTER_START in self.annotations

    @property
    def exclusive_topology(self) -> str | None:
        """The node label whose domains hold one group each."""
        return self.annotations.get(names.EXCLUSIVE_TOPOLOGY)


def is_shared(network: Tree | None) -> bool:
    """Tell whether all groups share one Service."""
    return bool((network or {}).get("subdomainPolicy", "Shared") == "Shared")


def merged(theirs: Tree, ours: Tree) -> Tree:
    """Return a user's labels or annotations with a controller's over them."""
    return {**theirs, **ours}


def sub_group_annotations(template: Tree, annotations: Tree) -> Tree:
    """Return what pods are told of subgroups: by the `template` of their revision and the live `annotations` of the LeaderWorkerSet."""
    policy = template.get("subGroupPolicy")
    if policy is None:
        return {}
    found: Tree = {}
    if policy.get("subGroupPolicyType"):
        found[names.SUB_GROUP_POLICY_TYPE] = policy["subGroupPolicyType"]
    found[names.SUB_GROUP_SIZE] = str(policy.get("subGroupSize", 0))
    if annotations.get(names.SUB_GROUP_EXCLUSIVE_TOPOLOGY):
        found[names.SUB_GROUP_EXCLUSIVE_TOPOLOGY] = annotations[names.SUB_GROUP_EXCLUSIVE_TOPOLOGY]
    return found


def with_metadata(template: Tree, labels: Tree, annotations: Tree) -> Tree:
    """Return a pod template with labels and annotations over its own."""
    about: Tree = template.get("metadata") or {}
    meta = {**about, "labels": merged(about.get("labels") or {}, labels), "annotations": merged(about.get("annotations") or {}, annotations)}
    return {**template, "metadata": meta}


def claim_templates(templates: Sequence[Tree], namespace: str) -> list[Tree]:
    """Return the claim templates of a StatefulSet: name, access modes, class, volume mode and resources are handed on, nothing else."""
    found: list[Tree] = []
    for each in templates:
        about = each.get("spec") or {}
        spec: Tree = {}
        for key in ("accessModes", "storageClassName", "volumeMode"):
            if about.get(key) is not None:
                spec[key] = about[key]
        resources = {key: value for key, value in (about.get("resources") or {}).items() if key in ("requests", "limits") and value is not None}
        if resources:
            spec["resources"] = resources
        name = (each.get("metadata") or {}).get("name", "")
        found.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
    return found


def claims_of(template: Tree, namespace: str) -> Tree:
    """Return the two claim fields of a StatefulSet's spec, where a template has them."""
    spec: Tree = {}
    if template.get("volumeClaimTemplates"):
        spec["volumeClaimTemplates"] = claim_templates(template["volumeClaimTemplates"], namespace)
    if template.get("persistentVolumeClaimRetentionPolicy") is not None:
        spec["persistentVolumeClaimRetentionPolicy"] = template["persistentVolumeClaimRetentionPolicy"]
    return spec
