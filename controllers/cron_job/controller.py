"""The CronJob loop. One reconcile cleans up finished Jobs, brings ``status.active`` in line with what runs, and starts the run that is due."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from kubemini.api.resources import CRON_JOBS, JOBS
from kubemini.api.trees import Tree
from kubemini.controllers.cron_job import jobs as view
from kubemini.controllers.cron_job.timing import MANY, Missed, Timetable, TimingError, missed, rfc1123, wait, zone_problem
from kubemini.machinery.cron import CronError
from kubemini.machinery.errors import AlreadyExists, ApiStatus, NotFound, shown
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp, to_stamp
from kubemini.runtime.keys import controller_of, controller_uid, key_of
from kubemini.runtime.telemetry import Histogram, exponential

BATCH_SECONDS = 0.2
"""The changes of Jobs within so many seconds are answered together: each pass says again which Jobs it did not expect, and a source may say only so much of one object."""
_ZONE_IN_SCHEDULE = "CRON_TZ or TZ used in schedule {} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"


@dataclass(slots=True)
class _Draft:
    """The status that is being worked out, and the CronJob that it belongs to."""

    cron_job: Tree
    active: list[Tree] = field(default_factory=list)
    last_schedule: str | None = None
    last_success: str | None = None

    @classmethod
    def of(cls, cron_job: Tree) -> _Draft:
        status = cron_job.get("status") or {}
        return cls(cron_job, list(status.get("active") or ()), status.get("lastScheduleTime"), status.get("lastSuccessfulTime"))

    def runs(self, uid: str) -> bool:
        """Tell whether a Job is listed as active."""
        return any(each["uid"] == uid for each in self.active)

    def drop(self, uid: str) -> None:
        """Take a Job from the active ones."""
        self.active = [each for each in self.active if each["uid"] != uid]

    def render(self) -> Tree:
        """Return the status."""
        status: Tree = {"active": self.active} if self.active else {}
        if self.last_schedule:
            status["lastScheduleTime"] = self.last_schedule
        if self.last_success:
            status["lastSuccessfulTime"] = self.last_success
        return status

    def seen(self) -> Tree:
        """Return the CronJob as it stands in the draft, for questions of time."""
        return {**self.cron_job, "status": self.render()}


class CronJobController(Controller):
    """Keys are CronJobs."""

    name = "cronjob"
    component = "cronjob-controller"

    def __init__(self) -> None:
        super().__init__()
        self._skews = Histogram(
            "cronjob_controller_job_creation_skew_duration_seconds",
            "Time between when a cronjob is scheduled to be run, and when the corresponding job is created",
            (),
            exponential(1, 2, 10),
        )
        self.families = (self._skews,)

    def setup(self, ctx: Context) -> None:
        """Follow CronJobs and their Jobs."""
        self._ctx = ctx
        self._cron_jobs = ctx.informer(CRON_JOBS)
        self._jobs = ctx.informer(JOBS)
        self._jobs.add_index("controller", controller_uid, reads=("ownerReferences",))
        self._cron_jobs.on_change(self._on_cron_job)
        self._jobs.on_change(self._on_job)

    def _on_cron_job(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            return
        if old is not None and any(old["spec"].get(name) != new["spec"].get(name) for name in ("schedule", "timeZone")):
            # A new schedule counts from now: what it would have missed before is not made up for at once
            try:
                self.queue.add_after(key_of(new), wait(new, Timetable.of(new["spec"]), self._ctx.env.now()))
            except CronError:
                text = f"unparseable schedule for cronjob: {new['spec']['schedule']}"
                self._ctx.recorder.event(new, "Warning", "UnParseableCronJobSchedule", text)
            return
        self.queue.add(key_of(new))

    def _on_job(self, old: Tree | None, new: Tree | None) -> None:
        for job in (old, new):
            owner = controller_of(job) if job is not None else None
            if job is not None and owner is not None and owner["kind"] == "CronJob":
                self.queue.add_after(f"{job['metadata']['namespace']}/{owner['name']}", BATCH_SECONDS)

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a CronJob; the status is written even where the pass failed half-way."""
        cron_job = self._cron_jobs.get_key(key)
        if cron_job is None:
            return None
        jobs = self._jobs.by_index("controller", cron_job["metadata"]["uid"])
        draft = _Draft.of(cron_job)
        failure: ApiStatus | None = None
        again: float | None = None
        for job in view.surplus(cron_job, jobs):
            await self._delete(draft, job)
        try:
            again = await self._sync(draft, jobs)
        except ApiStatus as refused:
            failure = refused
        await self._save(draft)
        if failure is not None:
            raise failure
        return again

    async def _save(self, draft: _Draft) -> None:
        status = draft.render()
        if status != (draft.cron_job.get("status") or {}):
            await self._ctx.client.update_status(CRON_JOBS, {**draft.cron_job, "status": status})

    async def _sync(self, draft: _Draft, jobs: Sequence[Tree]) -> float | None:
        recorder = self._ctx.recorder
        await self._take_stock(draft, jobs)
        cron_job, spec = draft.cron_job, draft.cron_job["spec"]
        if "deletionTimestamp" in cron_job["metadata"]:
            return None
        if problem := zone_problem(spec):
            recorder.event(cron_job, "Warning", "UnknownTimeZone", f"invalid timeZone: {shown(spec['timeZone'])}: {problem}")
            return None
        if spec.get("suspend"):
            return None
        if "TZ" in spec["schedule"]:
            recorder.event(cron_job, "Warning", "UnsupportedSchedule", _ZONE_IN_SCHEDULE.format(shown(spec["schedule"])))
        try:
            table = Timetable.of(spec)
        except CronError as problem:
            recorder.event(cron_job, "Warning", "UnparseableSchedule", f"unparseable schedule: {shown(spec['schedule'])} : {problem}")
            return None
        now = self._ctx.env.now()
        try:
            found = missed(draft.seen(), table, now, deadline=True)
        except TimingError as problem:
            recorder.event(cron_job, "Warning", "InvalidSchedule", f"invalid schedule: {spec['schedule']} : {problem}")
            return None
        if await self._due(draft, table, found, now):
            await self._start(draft, table, found.latest or now)
        return wait(draft.seen(), table, now)

    async def _take_stock(self, draft: _Draft, jobs: Sequence[Tree]) -> None:
        """Bring the list of active Jobs in line with the Jobs."""
        recorder = self._ctx.recorder
        for job in jobs:
            meta = job["metadata"]
            ended, listed = view.finished(job), draft.runs(meta["uid"])
            if not ended and not listed:
                await self._unexpected(draft, job)
            elif ended:
                if listed:
                    draft.drop(meta["uid"])
                    recorder.event(draft.cron_job, "Normal", "SawCompletedJob", f"Saw completed job: {meta['name']}, condition: {ended}")
                done = job["status"].get("completionTime")
                if ended == "Complete" and done and (draft.last_success is None or from_stamp(done) > from_stamp(draft.last_success)):
                    draft.last_success = done
        known = {job["metadata"]["uid"] for job in jobs}
        for each in list(draft.active):
            if each["uid"] not in known:
                try:
                    await self._ctx.client.get(JOBS, each["name"], each["namespace"])
                except NotFound:
                    recorder.event(draft.cron_job, "Normal", "MissingJob", f"Active job went missing: {each['name']}")
                    draft.drop(each["uid"])

    async def _unexpected(self, draft: _Draft, job: Tree) -> None:
        meta = draft.cron_job["metadata"]
        live = await self._ctx.client.get(CRON_JOBS, meta["name"], meta["namespace"])
        fresh = _Draft.of(live)
        if live["metadata"]["uid"] == meta["uid"] and fresh.runs(job["metadata"]["uid"]):
            # Our own cache is behind: go on from what is stored
            draft.cron_job, draft.active = live, fresh.active
            draft.last_schedule, draft.last_success = fresh.last_schedule, fresh.last_success
            return
        text = f"Saw a job that the controller did not create or forgot: {job['metadata']['name']}"
        self._ctx.recorder.event(draft.cron_job, "Warning", "UnexpectedJob", text)

    # ------------------------------------------------------------------ starting

    async def _due(self, draft: _Draft, table: Timetable, found: Missed, now: float) -> bool:
        """Tell whether the latest missed run is to be started, after making room for it."""
        cron_job, recorder = draft.cron_job, self._ctx.recorder
        spec = cron_job["spec"]
        if found.latest is None:
            return False
        if found.count > MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            recorder.event(cron_job, "Warning", "TooManyMissedTimes", text)
        limit = spec.get("startingDeadlineSeconds")
        if limit is not None and found.latest + limit < now:
            recorder.event(cron_job, "Warning", "MissSchedule", f"Missed scheduled time to start a job: {rfc1123(found.latest)}")
            return False
        name = view.job_name(cron_job, found.latest)
        if any(each["name"] == name for each in draft.active) or draft.last_schedule == to_stamp(found.latest):
            return False
        policy = spec.get("concurrencyPolicy", "Allow")
        if policy == "Forbid" and draft.active:
            text = "Not starting job because prior execution is running and concurrency policy is Forbid"
            recorder.event(cron_job, "Normal", "JobAlreadyActive", text)
            return False
        if policy == "Replace":
            for each in list(draft.active):
                try:
                    job = await self._ctx.client.get(JOBS, each["name"], each["namespace"])
                except ApiStatus as refused:
                    recorder.event(cron_job, "Warning", "FailedGet", f"Get job: {refused.message}")
                    raise
                await self._delete(draft, job, strict=True)
        return True

    async def _start(self, draft: _Draft, table: Timetable, moment: float) -> None:
        cron_job, recorder = draft.cron_job, self._ctx.recorder
        wanted = view.make_job(cron_job, table, moment)
        try:
            job = await self._ctx.client.create(JOBS, wanted)
        except AlreadyExists:
            # Made by an earlier pass that could not write the status, or by somebody else, whose affair it is then
            job = await self._ctx.client.get(JOBS, wanted["metadata"]["name"], wanted["metadata"]["namespace"])
            if controller_uid(job) != (cron_job["metadata"]["uid"],) or draft.runs(job["metadata"]["uid"]):
                return
        except ApiStatus as refused:
            if not refused.has_cause("NamespaceTerminating"):
                recorder.event(cron_job, "Warning", "FailedCreate", f"Error creating job: {refused.message}")
            raise
        else:
            self._skews.observe(from_stamp(job["metadata"]["creationTimestamp"]) - moment)
            recorder.event(cron_job, "Normal", "SuccessfulCreate", f"Created job {job['metadata']['name']}")
        draft.active.append(view.reference(job))
        draft.last_schedule = to_stamp(moment)

    async def _delete(self, draft: _Draft, job: Tree, *, strict: bool = False) -> None:
        meta, recorder = job["metadata"], self._ctx.recorder
        try:
            await self._ctx.client.delete(JOBS, meta["name"], namespace=meta["namespace"], propagation="Background", uid=meta["uid"])
        except ApiStatus as refused:
            recorder.event(draft.cron_job, "Warning", "FailedDelete", f"Deleted job: {refused.message}")
            if strict:
                raise
            return
        draft.drop(meta["uid"])
        recorder.event(draft.cron_job, "Normal", "SuccessfulDelete", f"Deleted job {meta['name']}")
