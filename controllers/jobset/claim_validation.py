"""The rules of ``volumeClaimPolicies`` on create: names, mounts, and claims that exist already."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.jobset import volumes
from kubemini.controllers.jobset.printing import printed_claim_spec, printed_roles
from kubemini.controllers.jobset.view import Role
from kubemini.machinery.errors import FieldError, invalid
from kubemini.machinery.names import dns1123_subdomain, errors
from kubemini.machinery.schema.roundtrip import go_form
from kubemini.runtime.webhooks import Reader

MAX_CLAIM_NAME = 63

Errors = Iterator[FieldError]


def problems_of(js: Tree, jobset: str, reader: Reader) -> Errors:
    """Yield what is wrong with the claim templates of a new JobSet that will be called `jobset`."""
    spec = js.get("spec") or {}
    roles = [Role(tree) for tree in spec.get("replicatedJobs") or ()]
    namespace = js["metadata"].get("namespace", "")
    seen: dict[str, None] = {}
    for position, policy in enumerate(spec.get("volumeClaimPolicies") or ()):
        for index, template in enumerate(policy.get("templates") or ()):
            # "template" is upstream's spelling
            field = f"spec.volumeClaimPolicies[{position}].template[{index}]"
            name: str = (template.get("metadata") or {}).get("name", "")
            claim = volumes.claim_name(name, jobset)
            if name in seen:
                yield invalid(f"{field}.name", name, "names must be unique for VolumeClaimPolicies template")
            yield from errors(f"{field}.name", name, dns1123_subdomain(name))
            if len(claim.encode()) > MAX_CLAIM_NAME:
                yield invalid(f"{field}.name", name, "VolumeClaimPolicies template name is too long")
            yield from _mounted(spec.get("replicatedJobs") or [], roles, name)
            existing = reader.get("persistentvolumeclaims", namespace, claim)
            if existing is not None:
                yield from _existing(existing, template, policy, field, f"spec.volumeClaimPolicies[{position}]")
            seen[name] = None


def _mounted(trees: list[Tree], roles: list[Role], name: str) -> Errors:
    for position, role in enumerate(roles):
        for index, volume in enumerate(role.pod_spec.get("volumes") or ()):
            if volume.get("name") == name:
                field = f"spec.replicatedJobs[{position}].template.spec.template.spec.volumes[{index}].name"
                yield invalid(field, name, f"volume name conflicts with VolumeClaimPolicy template name: {name}")
    if not any(volumes.mounts(role.pod_spec, name) for role in roles):
        yield invalid(
            "spec.replicatedJobs",
            printed_roles(trees),
            f"replicatedJob containers don't have a matching volumeMount: {name} from VolumeClaimPolicies",
        )


def _existing(existing: Tree, template: Tree, policy: Tree, field: str, policy_field: str) -> Errors:
    """Yield what keeps a claim that exists from being used again: what the template sets must be so, and it must be one that stays.

    Fields that the server fills in on a stored claim (volumeName, volumeMode, the storage class) are no difference.
    """
    form = go_form("core/v1.PersistentVolumeClaim")
    if not _covered(form(template).get("spec"), form(existing).get("spec")):
        claim = existing["metadata"]
        yield invalid(
            f"{field}.spec", printed_claim_spec(template), f"spec does not match existing PVC {claim['name']} in namespace {claim['namespace']}"
        )
    if (kept := volumes.retention(policy)) and kept != "Retain":
        yield invalid(f"{policy_field}.retentionPolicy.whenDeleted", kept, "retentionPolicy must be retain when PVC exists")


def _covered(wanted: Any, found: Any) -> bool:
    """Tell whether everything that is set in `wanted` is so in `found`."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return all(key in found and _covered(value, found[key]) for key, value in wanted.items())
    return bool(wanted == found)
