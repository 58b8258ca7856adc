"""``dependsOn``: roles that must have come so far before another one starts. A gate that is passed once: what runs is never taken back."""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.controllers.jobset.children import RoleCounts
from kubemini.controllers.jobset.view import Role


def reached(role: Role, replicas: Mapping[str, int], counts: Mapping[str, RoleCounts]) -> bool:
    """Tell whether all that a role depends on has come far enough; `replicas` holds those of the roles up to this one."""
    for item in role.depends_on:
        name = item["name"]
        theirs = counts.get(name)
        if theirs is None:
            return False
        done = theirs.succeeded if item["status"] == "Complete" else theirs.started
        if replicas.get(name, 0) != done:
            return False
    return True
