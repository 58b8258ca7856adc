"""``backoffLimitPerIndex``: which indexes have failed for good."""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.controllers.job import indexes
from kubemini.controllers.job.counting import Counts
from kubemini.controllers.job.managing import last_failures
from kubemini.controllers.job.pod_failure_policy import Match
from kubemini.controllers.job.pods import FAILURE_COUNT, counter
from kubemini.controllers.job.view import JobView


def newly_failed_indexes(job: JobView, counts: Counts, matches: Mapping[str, Match], completed: list[int]) -> list[int]:
    """Return all failed indexes, ascending: those of the status, and those whose last pod failed once too often or matched FailIndex."""
    found = set(indexes.parse(job.status.get("failedIndexes"), job.completions_or_zero))
    limit = job.per_index or 0
    done = set(completed)
    for index, pod in last_failures(counts.failed_tracked).items():
        match = matches.get(pod["metadata"]["uid"])
        action = match.action if match is not None else "Count"
        if action == "FailIndex" or (action != "Ignore" and counter(pod, FAILURE_COUNT) >= limit):
            found.add(index)
    return sorted(found - done)
