"""All invariants that hold in any cluster, whatever runs on it."""

from __future__ import annotations

from kubemini.testing.invariants.base import Invariant
from kubemini.testing.invariants.dns import dns_invariants
from kubemini.testing.invariants.gangs import gang_invariants
from kubemini.testing.invariants.job import job_invariants
from kubemini.testing.invariants.jobset import jobset_invariants
from kubemini.testing.invariants.kueue import kueue_invariants
from kubemini.testing.invariants.lws import lws_invariants
from kubemini.testing.invariants.scheduler import scheduler_invariants
from kubemini.testing.invariants.statefulset import statefulset_invariants


def all_invariants(*, lossless: bool = True) -> list[Invariant]:
    """Return them all, fresh: they keep state. `lossless` says that no answer of the API is lost, and no controller killed: then more holds."""
    return [
        *gang_invariants(),
        *job_invariants(),
        *jobset_invariants(),
        *statefulset_invariants(alone=False),
        *lws_invariants(alone=False),
        *kueue_invariants(),
        *scheduler_invariants(lossless=lossless),
        *dns_invariants(lossless=lossless),
    ]
