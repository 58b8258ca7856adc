"""``volumeClaimPolicies``: claims that a JobSet makes, and the volumes by which its pods mount them."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.runtime.keys import owner_reference


def claim_name(template: str, jobset: str) -> str:
    """Return the name of a claim.

    >>> claim_name("data", "train")
    'data-train'
    """
    return f"{template}-{jobset}"


def templates(spec: Tree) -> Iterator[tuple[Tree, Tree]]:
    """Yield every claim template of a JobSet's spec with its policy."""
    for policy in spec.get("volumeClaimPolicies") or ():
        for template in policy.get("templates") or ():
            yield policy, template


def retention(policy: Tree) -> str:
    """Return what becomes of a policy's claims: ``Delete`` or ``Retain``, "" where it does not say."""
    return str((policy.get("retentionPolicy") or {}).get("whenDeleted", ""))


def claims(js: Tree, policy: Tree) -> Iterator[Tree]:
    """Yield the claims of one policy of a JobSet. Those that go with it are owned by it, those that stay by nobody."""
    meta = js["metadata"]
    for template in policy.get("templates") or ():
        about = template.get("metadata") or {}
        made: Tree = {
            "name": claim_name(about.get("name", ""), meta["name"]),
            "namespace": meta["namespace"],
            "labels": {**(about.get("labels") or {}), names.NAME: meta["name"]},
        }
        if about.get("annotations"):
            made["annotations"] = about["annotations"]
        if retention(policy) == "Delete":
            made["ownerReferences"] = [owner_reference(js)]
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": template.get("spec") or {}}


def mounts(pod_spec: Tree, name: str) -> bool:
    """Tell whether some container of a pod mounts a volume of that name."""
    return any(
        mount.get("name") == name
        for group in ("containers", "initContainers")
        for container in pod_spec.get(group) or ()
        for mount in container.get("volumeMounts") or ()
    )


def with_volumes(pod_spec: Tree, spec: Tree, jobset: str) -> Tree:
    """Return a pod spec with a volume for every claim of the JobSet that it mounts; the same one where it mounts none."""
    added = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim_name(name, jobset)}}
        for _, template in templates(spec)
        if mounts(pod_spec, name := (template.get("metadata") or {}).get("name", ""))
    ]
    return {**pod_spec, "volumes": [*(pod_spec.get("volumes") or ()), *added]} if added else pod_spec
