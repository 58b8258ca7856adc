"""Parts of a JobSet as refusals print them: the JSON of Go's structs, in the order of their fields."""

from __future__ import annotations

from collections.abc import Iterable

from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.machinery.schema.go_order import CLAIM_SPEC, JOB_TEMPLATE, in_order
from kubemini.machinery.schema.roundtrip import go_form


def printed_roles(roles: Iterable[Tree], version: str = DEFAULT_VERSION) -> list[Tree]:
    """Return replicated jobs as Go writes them."""
    form = go_form("batch/v1.JobTemplateSpec", version)
    found: list[Tree] = []
    for role in roles:
        shown: Tree = {"name": role.get("name", "")}
        if role.get("groupName"):
            shown["groupName"] = role["groupName"]
        shown["template"] = in_order(JOB_TEMPLATE, form(role.get("template") or {}))
        if role.get("replicas"):
            shown["replicas"] = role["replicas"]
        if role.get("dependsOn"):
            shown["dependsOn"] = [{"name": each["name"], "status": each["status"]} for each in role["dependsOn"]]
        found.append(shown)
    return found


def printed_claim_spec(template: Tree) -> Tree:
    """Return the spec of a claim template as Go writes it."""
    shown: Tree = in_order(CLAIM_SPEC, go_form("core/v1.PersistentVolumeClaim")(template).get("spec") or {})
    return shown
