"""What jobs ask of Kueue by labels and annotations. Pure."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names


def prebuilt_name(job: Tree) -> str:
    """Return the name of the Workload that somebody else made for a job, or ""."""
    meta = job["metadata"]
    found: str = (meta.get("annotations") or {}).get(names.PREBUILT_WORKLOAD) or (meta.get("labels") or {}).get(names.PREBUILT_WORKLOAD, "")
    return found


def kept_annotations(job: Tree, *, gates: bool) -> dict[str, str]:
    """Return the annotations of a job that its Workload gets: parameters of provisioning and, with `gates`, those that gate its admission."""
    given: dict[str, str] = job["metadata"].get("annotations") or {}
    found = {key: value for key, value in given.items() if key.startswith(names.PROVISIONING_PARAMETER_PREFIX)}
    if gates and given.get(names.ADMISSION_GATED_BY):
        found[names.ADMISSION_GATED_BY] = given[names.ADMISSION_GATED_BY]
    return found


def max_execution_time(job: Tree) -> int | None:
    """Return the seconds that a job may be admitted, or None."""
    text = (job["metadata"].get("labels") or {}).get(names.MAX_EXEC_TIME_SECONDS, "")
    return int(text) if text.isdigit() and int(text) > 0 else None
