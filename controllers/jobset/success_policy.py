"""When enough Jobs have succeeded for the JobSet to be complete."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.controllers.jobset.children import Child
from kubemini.controllers.jobset.view import JobSetView


def met(js: JobSetView, successful: Sequence[Child]) -> bool:
    """Tell whether the successful Jobs suffice. To be asked only once there is one: All over roles without replicas is met by any success at all."""
    policy = js.spec.get("successPolicy") or {}
    targets = policy.get("targetReplicatedJobs") or ()
    done = sum(1 for job in successful if not targets or job.role in targets)
    if policy.get("operator") == "Any":
        return done >= 1
    return done >= sum(role.replicas for role in js.roles if not targets or role.name in targets)
