"""``ttlSecondsAfterFinished``: finished Jobs go, with their pods. Mirrors the ttl-after-finished controller."""

from __future__ import annotations

from kubemini.api.resources import JOBS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import key_of
from kubemini.runtime.telemetry import Histogram, exponential


class TtlAfterFinished(Controller):
    """Keys are Jobs."""

    name = "ttl-after-finished"
    measured_as = "ttl_jobs_to_delete"
    component = "ttl-after-finished-controller"

    def __init__(self) -> None:
        super().__init__()
        self._delays = Histogram(
            "ttl_after_finished_controller_job_deletion_duration_seconds",
            "The time it took to delete the job since it became eligible for deletion",
            (),
            exponential(0.1, 2, 14),
        )
        self.families = (self._delays,)

    def setup(self, ctx: Context) -> None:
        """Follow Jobs."""
        self._ctx = ctx
        self._jobs = ctx.informer(JOBS)
        self._jobs.on_change(lambda old, new: self.queue.add(key_of(new)) if new is not None and _expiry(new) is not None else None)

    async def reconcile(self, key: str) -> float | None:
        """Delete a Job whose time is over, in the foreground and only that very Job."""
        job = self._jobs.get_key(key)
        expiry = _expiry(job) if job is not None else None
        if job is None or expiry is None:
            return None
        left = expiry - self._ctx.env.now()
        if left > 0:
            return left + 0.001
        meta = job["metadata"]
        try:
            live = await self._ctx.client.get(JOBS, meta["name"], meta["namespace"])
            fresh = _expiry(live)
            if live["metadata"]["uid"] != meta["uid"] or fresh is None:
                return None
            if fresh > self._ctx.env.now():
                return fresh - self._ctx.env.now()
            await self._ctx.client.delete(JOBS, meta["name"], namespace=meta["namespace"], propagation="Foreground", uid=meta["uid"])
            self._delays.observe(self._ctx.env.now() - fresh)
        except ApiStatus as refused:
            if refused.code not in (404, 409):
                raise
        return None


def _expiry(job: Tree) -> float | None:
    """Return when a finished Job's time is over, in Unix seconds; None for one without a limit, unfinished, or already going."""
    seconds = job["spec"].get("ttlSecondsAfterFinished")
    if seconds is None or "deletionTimestamp" in job["metadata"]:
        return None
    for condition in (job.get("status") or {}).get("conditions") or ():
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True":
            return from_stamp(condition["lastTransitionTime"]) + float(seconds)
    return None
