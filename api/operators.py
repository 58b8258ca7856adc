"""All kinds that a cluster serves as its operators' own: JobSet, LeaderWorkerSet, DisaggregatedSet, Kueue and the cluster autoscaler.

Volcano's PodGroup is not among them.
"""

from __future__ import annotations

from typing import Final

from kubemini.api.disaggregatedset import KINDS as DISAGGREGATED_SET
from kubemini.api.jobset import KINDS as JOB_SET
from kubemini.api.kueue import KINDS as KUEUE
from kubemini.api.leaderworkerset import KINDS as LEADER_WORKER_SET
from kubemini.api.provisioningrequest import KINDS as PROVISIONING_REQUEST

OWNED_KINDS: Final = (*JOB_SET, *LEADER_WORKER_SET, *DISAGGREGATED_SET, *KUEUE, *PROVISIONING_REQUEST)
