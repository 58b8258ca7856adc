"""batch/v1 CronJob: the strategy. Mirrors ``pkg/registry/batch/cronjob`` and ``pkg/apis/batch/validation`` (1.36)."""

from __future__ import annotations

import re
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery import cron, names
from kubemini.machinery.errors import FieldError, invalid, not_supported, required
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.formats import Errors, at_least_zero
from kubemini.server.kinds.workloads.job import job_spec_warnings
from kubemini.server.kinds.workloads.job_spec import validate_job_spec
from kubemini.server.kinds.workloads.template_strategy import TemplateStrategy
from kubemini.server.strategy import WriteContext

MAX_NAME: Final = 52
"""Eleven characters (``-`` and a time in minutes) are left for the names of Jobs, which must be labels of 63."""
CONCURRENCY_POLICIES: Final = ("Allow", "Forbid", "Replace")

_zone_part_ok = re.compile(r"[A-Za-z._0-9+-]{1,14}").fullmatch


class CronJobStrategy(TemplateStrategy):
    """The rules of CronJobs. Everything in the spec may change."""

    table = tables.CRON_JOB
    template_path = ("spec", "jobTemplate", "spec", "template")

    def initial_status(self, obj: Tree) -> Tree:
        """Return the empty status."""
        return {}

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new CronJob."""
        found = list(_cron_job_spec(obj["spec"], None))
        name = obj["metadata"]["name"]
        if len(name) > MAX_NAME:
            found.append(invalid("metadata.name", name, names.too_long_text(MAX_NAME)))
        return found

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a changed CronJob; a long name or a zone in the schedule that was there before may stay."""
        return list(_cron_job_spec(new["spec"], old["spec"]))

    def spec_warnings(self, obj: Tree) -> list[str]:
        """Advise on the Job template."""
        return job_spec_warnings((obj["spec"].get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")


def _cron_job_spec(spec: Tree, old: Tree | None) -> Errors:
    schedule = spec.get("schedule") or ""
    if not schedule:
        yield required("spec.schedule")
    else:
        yield from _schedule(schedule, spec.get("timeZone"), had_zone=old is not None and "TZ" in (old.get("schedule") or ""))
    yield from at_least_zero(spec.get("startingDeadlineSeconds"), "spec.startingDeadlineSeconds")
    zone = spec.get("timeZone")
    if zone is not None and (old is None or old.get("timeZone") != zone):
        yield from _time_zone(zone)
    policy = spec.get("concurrencyPolicy") or ""
    if not policy:
        yield required("spec.concurrencyPolicy")
    elif policy not in CONCURRENCY_POLICIES:
        yield not_supported("spec.concurrencyPolicy", policy, CONCURRENCY_POLICIES)
    yield from _job_template((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from at_least_zero(spec.get(field), f"spec.{field}")


def _schedule(schedule: str, zone: str | None, *, had_zone: bool) -> Errors:
    try:
        cron.parse(schedule)
    except cron.CronError as error:
        yield invalid("spec.schedule", schedule, str(error))
    if "TZ" in schedule:
        if not had_zone:
            yield invalid("spec.schedule", schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
        elif zone is not None:
            yield invalid("spec.schedule", schedule, "cannot use both timeZone field and TZ or CRON_TZ in schedule")


def _time_zone(zone: str) -> Errors:
    if not zone:
        yield invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")
        return
    for part in zone.split("/"):
        if part in {".", ".."} or part.startswith("-") or not _zone_part_ok(part):
            yield invalid("spec.timeZone", zone, f"unknown time zone {zone}")
            return
    if zone.lower() == "local":
        yield invalid("spec.timeZone", zone, "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones")
    if zone != "Local" and cron.load_zone(zone) is None:
        yield invalid("spec.timeZone", zone, f"unknown time zone {zone}")


def _job_template(job: Tree, path: str) -> Errors:
    yield from validate_job_spec(job, path)
    if job.get("selector") is not None:
        yield invalid(f"{path}.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield not_supported(f"{path}.manualSelector", True, ("nil", "false"))
