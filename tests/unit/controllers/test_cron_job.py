"""CronJobs: which missed run is made up for, when to look again, and whole runs under virtual time."""

from typing import Any

import pytest

from kubemini.api.resources import CRON_JOBS, EVENTS, JOBS, NODES
from kubemini.controllers.cron_job.jobs import make_job, surplus
from kubemini.controllers.cron_job.timing import LATE, Timetable, missed, rfc1123, wait
from kubemini.runtime.env import from_stamp, to_stamp
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.sim.faults import Faults


def cron_job(schedule: str, last: str | None = None, **spec: Any) -> dict[str, Any]:
    """Return a CronJob that was created at 2026-01-01T00:00:30Z."""
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]}}}}
    meta = {"name": "c", "namespace": "default", "uid": "u", "creationTimestamp": "2026-01-01T00:00:30Z"}
    status = {"lastScheduleTime": last} if last else {}
    return {"metadata": meta, "spec": {"schedule": schedule, "jobTemplate": template, **spec}, "status": status}


def latest(tree: dict[str, Any], now: str, *, deadline: bool = True) -> tuple[str | None, int]:
    """Return the latest missed run and the count of missed ones."""
    found = missed(tree, Timetable.of(tree["spec"]), from_stamp(now), deadline=deadline)
    return (to_stamp(found.latest) if found.latest is not None else None), found.count


@pytest.mark.parametrize(
    "schedule, last, now, expected",
    [
        ("*/10 * * * *", None, "2026-01-01T00:09:59Z", (None, 0)),
        ("*/10 * * * *", None, "2026-01-01T00:10:00Z", ("2026-01-01T00:10:00Z", 1)),
        ("*/10 * * * *", "2026-01-01T00:10:00Z", "2026-01-01T00:19:00Z", (None, 0)),
        ("*/10 * * * *", None, "2026-01-01T01:05:00Z", ("2026-01-01T01:00:00Z", 6)),
        ("@every 7s", "2026-01-01T00:10:00Z", "2026-01-01T00:10:30Z", ("2026-01-01T00:10:28Z", 4)),
        ("30 6-16/4 * * 1-5", "2026-01-01T06:30:00Z", "2026-01-02T10:31:00Z", ("2026-01-02T10:30:00Z", 7)),
        ("@every 1h", "2026-01-01T00:01:00Z", "2026-01-08T00:00:00Z", ("2026-01-07T23:01:00Z", 167)),
        ("0 6,18 * * 1-5", "2026-01-01T18:00:00Z", "2026-01-04T12:00:00Z", (None, 5)),
        ("30 10,11,12 * * 1-5", "2026-01-01T10:30:00Z", "2026-01-02T16:30:00Z", (None, 30)),
        ("0 0 1 1 *", "2020-06-01T00:00:00Z", "2026-03-01T00:00:00Z", ("2026-01-01T00:00:00Z", 6)),
        ("* * * * *", "2020-06-01T00:00:00Z", "2026-01-01T00:00:30Z", ("2026-01-01T00:00:00Z", 2_937_600)),
    ],
)
def test_the_latest_missed_run(schedule: str, last: str | None, now: str, expected: tuple[str | None, int]) -> None:
    """Of all runs missed since the last one (or the creation) only the latest counts; where runs are unevenly apart it may be none, by the gap of the first two."""
    assert latest(cron_job(schedule, last), now) == expected


def test_a_deadline_hides_older_runs() -> None:
    """What was missed by more than startingDeadlineSeconds cannot be started, but counts for when to look again."""
    tree = cron_job("0 * * * *", startingDeadlineSeconds=60)
    assert latest(tree, "2026-01-01T05:02:00Z") == (None, 0)
    assert latest(tree, "2026-01-01T05:00:59Z") == ("2026-01-01T05:00:00Z", 1)
    assert latest(tree, "2026-01-01T05:02:00Z", deadline=False) == ("2026-01-01T05:00:00Z", 5)


def test_the_next_look_is_just_after_the_next_run() -> None:
    """The wait ends a tenth of a second after the next scheduled time."""
    tree = cron_job("*/10 * * * *")
    assert wait(tree, Timetable.of(tree["spec"]), from_stamp("2026-01-01T00:09:00Z")) == pytest.approx(60 + LATE)
    assert wait(tree, Timetable.of(tree["spec"]), from_stamp("2026-01-01T00:10:01Z")) == pytest.approx(599 + LATE)


def test_after_missed_runs_that_are_not_made_up_for_the_next_look_counts_from_now() -> None:
    """Missed runs of which none is started do not bring the CronJob back before its next run."""
    tree = cron_job("30 10,11,12 * * 1-5", "2026-01-01T10:30:00Z")
    assert wait(tree, Timetable.of(tree["spec"]), from_stamp("2026-01-02T16:30:00Z")) == pytest.approx(66 * 3600 + LATE)


def test_a_changed_schedule_that_is_never_due_is_looked_at_at_once() -> None:
    """A schedule without any run keeps nobody waiting: the pass over it says that it is invalid."""

    async def scenario(cluster: SimCluster) -> list[tuple[str, str]]:
        tree = cron_job("0 * * * *")
        tree["metadata"] = {"name": "c", "namespace": "default"}
        await cluster.client.create(CRON_JOBS, {"apiVersion": "batch/v1", "kind": "CronJob", **tree})
        await cluster.settle(10)
        await cluster.client.patch(CRON_JOBS, "c", {"spec": {"schedule": "59 23 31 2 *"}}, namespace="default")
        await cluster.settle(10)
        return [(each["reason"], each["message"]) for each in await cluster.client.list(EVENTS, "default")]

    message = "invalid schedule: 59 23 31 2 * : time difference between two schedules is less than 1 second"
    assert simulate(scenario, controllers="service-accounts,job,cron-job") == [("InvalidSchedule", message)]


def test_names_and_stamps_follow_the_scheduled_time() -> None:
    """A Job is named by the minute of its run, and says the time in the CronJob's zone."""
    tree = cron_job("0 0 1 1 *", timeZone="Asia/Tokyo")
    job = make_job({"apiVersion": "batch/v1", "kind": "CronJob", **tree}, Timetable.of(tree["spec"]), from_stamp("2025-12-31T15:00:00Z"))
    assert job["metadata"]["name"] == f"c-{int(from_stamp('2025-12-31T15:00:00Z')) // 60}"
    assert job["metadata"]["annotations"] == {"batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:00:00+09:00"}
    assert rfc1123(from_stamp("2026-03-09T08:05:00Z")) == "Mon, 09 Mar 2026 08:05:00 +0000"


def test_history_keeps_the_newest() -> None:
    """Above the limits the oldest finished Jobs go, successes and failures apart."""

    def job(name: str, kind: str, start: str) -> dict[str, Any]:
        return {"metadata": {"name": name}, "status": {"startTime": f"2026-01-01T00:00:0{start}Z", "conditions": [{"type": kind, "status": "True"}]}}

    jobs = [job("b", "Complete", "2"), job("a", "Complete", "1"), job("c", "Complete", "3"), job("d", "Failed", "1"), job("e", "Failed", "4")]
    tree = cron_job("* * * * *", successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    assert [each["metadata"]["name"] for each in surplus(tree, jobs)] == ["a", "b", "d", "e"]


@pytest.mark.parametrize("delay", [0.0, 5.0])
def test_a_day_of_runs(delay: float) -> None:
    """Each scheduled minute gets one Job, however late caches are; finished ones stay within the limits; status tells the last."""

    class Made(list[str]):
        def replace(self, objects: Any) -> None:
            """Nothing is there at first."""

        def change(self, type_: str, obj: Any) -> None:
            """Note what is made."""
            if type_ == "ADDED":
                self.append(obj["metadata"]["name"])

    async def scenario(cluster: SimCluster) -> tuple[list[str], list[str], dict[str, Any]]:
        client, made = cluster.client, Made()
        client.watch(JOBS, made)
        await cluster.settle()
        await client.create(NODES, {"metadata": {"name": "n-0"}, "spec": {}})
        tree = cron_job("*/30 * * * *")
        tree["metadata"] = {"name": "c", "namespace": "default"}
        tree["spec"]["jobTemplate"]["spec"]["template"]["metadata"] = {"annotations": {"kubemini.dev/run-for": "60s"}}
        tree["spec"]["jobTemplate"]["spec"]["template"]["spec"]["nodeName"] = "n-0"
        await client.create(CRON_JOBS, {"apiVersion": "batch/v1", "kind": "CronJob", **tree})
        await cluster.env.sleep(86_400 - 600 - cluster.loop.time())
        jobs = [each["metadata"]["name"] for each in await client.list(JOBS, "default")]
        return made, jobs, (await client.get(CRON_JOBS, "c", "default"))["status"]

    controllers = "service-accounts,nodes,kubelet,job,cron-job,garbage-collector"
    made, jobs, status = simulate(scenario, seed=3, faults=Faults(watch_delay=delay), controllers=controllers)
    last = int(from_stamp("2026-01-01T23:30:00Z"))
    assert made == [f"c-{(last - ago * 1800) // 60}" for ago in range(46, -1, -1)]
    assert jobs == [f"c-{(last - ago * 1800) // 60}" for ago in (2, 1, 0)]
    assert status["lastScheduleTime"] == to_stamp(last)
    assert from_stamp(status["lastSuccessfulTime"]) >= last + 60
    assert "active" not in status
