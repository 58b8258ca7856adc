"""Lives of one Job: any shape, pods that exit as drawn, things done to it on the way; then it is left alone, ends, and goes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from kubemini.api.resources import JOBS, PODS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import PERFECT, Faults
from kubemini.testing.invariants import Checker
from kubemini.testing.invariants.job import condition, finished, job_invariants
from kubemini.testing.invariants.job_exact import Excuses, exact_job_invariants
from tests.quality.searching import Scenario, play, program

CONTROLLERS = "namespaces,service-accounts,garbage-collector,job,nodes,scheduler,kubelet"
PROCESS = "kube-controller-manager"
LAGGING = Faults(watch_delay=1.5, request_delay=0.05)
LATE = replace(LAGGING, lost_before=0.03, conflict=0.05)
LOSSY = replace(LAGGING, lost_before=0.2, conflict=0.2)
"""Nothing that a controller cannot find out."""
ROUGH = replace(LATE, lost_after=0.05)
IGNORED, FATAL = 42, 43
"""Exit codes that failure policies know."""


@dataclass(frozen=True)
class Life:
    """One run."""

    spec: Tree
    exits: dict[int, int]
    run_for: int = 5
    steps: tuple[tuple[int, str, int], ...] = ()
    seed: int = 0
    faults: Faults = PERFECT

    @property
    def lossless(self) -> bool:
        """Whether the controllers can know all that they did."""
        return not self.faults.lost_after and not any(what == "restart" for _, what, _ in self.steps)

    def job(self) -> Tree:
        """Return the Job."""
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": self.spec}


def template(restart: str = "Never") -> Tree:
    """Return a pod template."""
    return {"metadata": {}, "spec": {"restartPolicy": restart, "containers": [{"name": "m", "image": "i"}]}}


EXITS = st.dictionaries(st.integers(0, 5), st.just(1), max_size=4)
ALL_FAIL = st.just(dict.fromkeys(range(60), 1))
DEEDS = ("fail", "delete", "delete", "suspend", "resume", "lower")


def steps(*deeds: str, size: int = 4, waits: tuple[int, ...] = (0, 1, 2, 3, 5, 8, 15, 60)) -> st.SearchStrategy[tuple[tuple[int, str, int], ...]]:
    """Draw what happens: after so many seconds, what, to which."""
    return st.lists(st.tuples(st.sampled_from(waits), st.sampled_from(deeds), st.integers(0, 4)), max_size=size).map(tuple)


SEEDS = st.integers(0, 2**16)
NO_STEPS: st.SearchStrategy[tuple[tuple[int, str, int], ...]] = st.just(())


def plain(**more: st.SearchStrategy[object]) -> st.SearchStrategy[Tree]:
    """Draw a spec."""
    fields = {
        "parallelism": st.integers(1, 4),
        "completions": st.integers(1, 5),
        "backoffLimit": st.integers(0, 3),
        "completionMode": st.sampled_from(["NonIndexed", "NonIndexed", "Indexed"]),
        "podReplacementPolicy": st.sampled_from(["TerminatingOrFailed", "Failed"]),
        "template": st.just(template()),
    }
    return st.fixed_dictionaries({**fields, **more})


def lives(
    spec: st.SearchStrategy[Tree],
    *,
    exits: st.SearchStrategy[dict[int, int]] = EXITS,
    deeds: st.SearchStrategy[tuple[tuple[int, str, int], ...]] = NO_STEPS,
    faults: tuple[Faults, ...] = (PERFECT, LATE),
    run_for: st.SearchStrategy[int] | None = None,
) -> st.SearchStrategy[Life]:
    """Draw lives."""
    runs = run_for if run_for is not None else st.integers(1, 12)
    return st.builds(Life, spec=spec, exits=exits, run_for=runs, steps=deeds, seed=SEEDS, faults=st.sampled_from(faults))


async def do(cluster: SimCluster, excuses: Excuses, what: str, which: int) -> None:
    """Do one thing to the Job or its pods; what is gone already is left alone."""
    pods = await cluster.list("pod")
    pod = pods[which % len(pods)] if pods else None
    try:
        match what:
            case "fail" if pod is not None:
                await cluster.fail_pod("default", pod["metadata"]["name"])
            case "delete" if pod is not None:
                excuses.excuse(pod["metadata"]["uid"])
                await cluster.delete_pod("default", pod["metadata"]["name"])
            case "flip":
                ended = [each for each in pods if (each.get("status") or {}).get("phase") == "Succeeded"]
                if ended:
                    await cluster.client.update_status(PODS, {**ended[0], "status": {**ended[0]["status"], "phase": "Failed"}})
            case "suspend" | "resume":
                await cluster.client.patch(JOBS, "j", {"spec": {"suspend": what == "suspend"}}, namespace="default")
            case "lower":
                await cluster.client.patch(JOBS, "j", {"spec": {"parallelism": which}}, namespace="default")
            case "shrink":
                await cluster.client.patch(JOBS, "j", {"spec": {"parallelism": which or 1, "completions": which or 1}}, namespace="default")
            case "lose":
                await cluster.lose_node("cpu-0")
            case "find":
                await cluster.recover_node("cpu-0")
            case "restart":
                await cluster.restart(PROCESS)
            case "again":
                await again(cluster, excuses)
            case _:
                pass
    except ApiStatus as refused:
        if refused.code not in (404, 409, 422):
            raise


async def again(cluster: SimCluster, excuses: Excuses) -> None:
    """Delete the Job and make it anew under its name at once."""
    job = await cluster.get("job/j")
    for each in (job, *await cluster.list("pod")):
        excuses.excuse(each["metadata"]["uid"])
    spec = {name: value for name, value in job["spec"].items() if name != "selector"}
    labels = {
        name: value
        for name, value in (spec["template"]["metadata"].get("labels") or {}).items()
        if "batch" not in name and "job-name" not in name and "uid" not in name
    }
    spec["template"] = {**spec["template"], "metadata": {"labels": labels}}
    await cluster.delete("job/j", propagation="Background")
    await cluster.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "default"}, "spec": spec})


def playing(end: Callable[[Life, Tree], None] | None = None) -> Callable[[Life], None]:
    """Return how a life is played; `end` looks at the finished Job."""

    def played(life: Life) -> None:
        excuses = Excuses()

        async def scenario(cluster: SimCluster, checker: Checker) -> None:
            await cluster.settle(60)
            await cluster.client.create(JOBS, life.job())
            for after, what, which in life.steps:
                if await cluster.settle(after):
                    checker.at_rest()
                await do(cluster, excuses, what, which)
            if life.spec.get("suspend") or any(what in ("suspend", "lower") for _, what, _ in life.steps):
                if await cluster.settle(5_000):
                    checker.at_rest()
                await do(cluster, excuses, "lower", 3)
                await do(cluster, excuses, "resume", 0)
            assert await cluster.settle(20_000), "the cluster never comes to rest"
            checker.at_rest()
            if "ttlSecondsAfterFinished" not in life.spec:
                job = await cluster.get("job/j")
                if life.spec.get("managedBy") is not None:
                    assert not job.get("status"), f"somebody else's Job has the status {job['status']}"
                else:
                    assert finished(job), f"the Job has not ended: {job.get('status')}"
                    if end is not None:
                        end(life, job)
                excuses.excuse(job["metadata"]["uid"])
                await cluster.delete("job/j", propagation="Background")
                await cluster.settle(1000)
                checker.at_rest()
            left = [each["metadata"]["name"] for each in (*await cluster.list("job"), *await cluster.list("pod"))]
            assert not left, f"left: {left}"

        invariants = [*job_invariants(), *exact_job_invariants(excuses, lossless=life.lossless)]
        play(
            scenario,
            invariants,
            seed=life.seed,
            faults=life.faults,
            fleet="cpu:1",
            controllers=CONTROLLERS,
            program=program(life.exits, life.run_for),
        )

    return played


def completes(life: Life, job: Tree) -> None:
    """Say that nothing failed."""
    status = job["status"]
    assert condition(job, "Complete") is not None, f"not Complete: {status['conditions']}"
    assert status["succeeded"] == life.spec["completions"], status
    assert not status.get("failed"), f"{status.get('failed')} pods failed, none did"


def policed() -> st.SearchStrategy[Tree]:
    """Draw a spec with a pod failure policy."""
    return plain(podReplacementPolicy=st.just("Failed"), podFailurePolicy=st.just(FAILURE_POLICY))


FAILURE_POLICY: Tree = {
    "rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [FATAL]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [IGNORED, FATAL]}},
    ]
}
INDEXED = st.just("Indexed")

DISTURBED = Scenario("job", lives(plain(), deeds=steps(*DEEDS)), playing())
"""Anything happens to a Job."""
FAILING = Scenario("failing job", lives(plain()), playing())
"""Pods fail, nothing else happens."""
INTERRUPTED = Scenario("killed job controller", lives(plain(), deeds=steps("fail", "delete", "restart", "restart"), faults=(ROUGH,)), playing())
"""The controller is killed, and answers are lost."""
PAUSED = Scenario(
    "paused job",
    lives(plain(suspend=st.booleans()), exits=st.just({}), deeds=steps("suspend", "resume"), run_for=st.just(10)),
    playing(completes),
)
"""Suspended and resumed, nothing else happens: it completes without a failure."""
PER_INDEX = Scenario(
    "limit per index",
    lives(
        plain(completionMode=INDEXED, backoffLimit=st.just(100), backoffLimitPerIndex=st.integers(0, 2)),
        exits=st.dictionaries(st.integers(0, 7), st.just(1), max_size=7),
    ),
    playing(),
)
LIMITED_INDEXES = Scenario(
    "limit of failed indexes",
    lives(
        plain(
            completionMode=INDEXED,
            completions=st.integers(2, 5),
            backoffLimit=st.just(100),
            backoffLimitPerIndex=st.just(0),
            maxFailedIndexes=st.integers(1, 2),
        )
    ),
    playing(),
)
POLICED = Scenario(
    "pod failure policy",
    lives(policed(), exits=st.dictionaries(st.integers(0, 4), st.sampled_from([1, IGNORED]), max_size=4)),
    playing(),
)
SUCCESS_POLICY = Scenario(
    "success policy",
    lives(
        plain(
            completionMode=INDEXED,
            completions=st.integers(2, 4),
            successPolicy=st.sampled_from(
                [{"rules": [{"succeededIndexes": "1"}]}, {"rules": [{"succeededCount": 1}]}, {"rules": [{"succeededIndexes": "0,1"}]}]
            ),
        ),
        exits=st.dictionaries(st.integers(0, 3), st.just(1), max_size=1),
    ),
    playing(),
)
DEADLINE = Scenario(
    "deadline",
    lives(
        plain(activeDeadlineSeconds=st.integers(5, 40), suspend=st.booleans()), deeds=steps("suspend", "resume", size=3), run_for=st.integers(5, 60)
    ),
    playing(),
)
EXPIRING = Scenario(
    "time to live",
    lives(plain(ttlSecondsAfterFinished=st.integers(0, 20)), deeds=steps("again", "again", "resume", size=3, waits=(1, 8, 12, 18, 30))),
    playing(),
)
"""The Job goes by itself, and is made anew under its name."""
FOREIGN = Scenario("managed by others", lives(plain(managedBy=st.just("example.com/other"))), playing(), examples=5)
RESTARTING = Scenario(
    "containers restart",
    # Without lost writes: what a limit is reached by is gone with the pods, should the verdict not be written (upstream too)
    lives(
        plain(template=st.just(template("OnFailure"))),
        exits=st.dictionaries(st.integers(0, 5), st.just(1), min_size=1, max_size=4),
        faults=(PERFECT, LAGGING),
    ),
    playing(),
)
ELASTIC = Scenario(
    "elastic job",
    lives(
        st.builds(
            lambda spec, size: {**spec, "parallelism": size, "completions": size},
            plain(completionMode=INDEXED, backoffLimit=st.just(6)),
            st.integers(2, 5),
        ),
        exits=st.dictionaries(st.integers(0, 3), st.just(1), max_size=3),
        deeds=steps("shrink", "shrink", "delete", waits=(1, 3, 6, 9)),
        run_for=st.just(5),
    ),
    playing(),
)
REPLACED = Scenario("made anew", lives(plain(), deeds=steps("again", "delete", waits=(0, 1, 2, 3, 8))), playing(), examples=60)
FLIPPING = Scenario(
    "phases flip", lives(plain(), deeds=steps("flip", "flip", "fail", waits=(1, 5, 6, 7)), faults=(LOSSY,), run_for=st.just(5)), playing()
)
LOST_WRITES = Scenario("lost writes", lives(plain(), faults=(LOSSY,)), playing())
RESIZED = Scenario(
    "resized",
    lives(
        plain(parallelism=st.integers(2, 4), completions=st.integers(4, 6)),
        exits=st.just({}),
        deeds=steps("lower", size=3, waits=(2, 4, 9)),
        run_for=st.just(10),
    ),
    playing(completes),
)
EXPIRED_ANEW = Scenario(
    "made anew as it expires",
    lives(
        plain(ttlSecondsAfterFinished=st.integers(1, 3), completions=st.just(1)),
        exits=st.just({}),
        deeds=st.tuples(st.tuples(st.integers(6, 14), st.just("again"), st.just(0))),
        faults=(replace(LAGGING, watch_delay=4.0),),
        run_for=st.just(2),
    ),
    playing(),
    examples=60,
)
SLOW_ENDS = Scenario(
    "slow ends",
    lives(
        plain(podReplacementPolicy=st.just("Failed")),
        exits=st.just({}),
        deeds=st.tuples(*(st.tuples(st.integers(2, 4), st.just(what), st.just(0)) for what in ("lose", "suspend", "resume", "find"))),
        run_for=st.just(30),
    ),
    playing(),
)
"""A node falls silent, so that pods terminate slowly, and the Job is suspended and resumed meanwhile."""
ALWAYS_FAILING = Scenario("always failing", lives(plain(), exits=ALL_FAIL), playing(), examples=10)
ONE_BY_ONE = Scenario(
    "always failing, one by one", lives(plain(backoffLimit=st.just(4), parallelism=st.just(1)), exits=ALL_FAIL), playing(), examples=10
)
NEVER_SUCCEEDING = Scenario(
    "containers always fail", lives(plain(template=st.just(template("OnFailure"))), exits=ALL_FAIL, faults=(PERFECT, LAGGING)), playing(), examples=10
)
POLICED_FAILING = Scenario("pod failure policy, always failing", lives(policed(), exits=ALL_FAIL), playing(), examples=10)
POLICED_IGNORED = Scenario(
    "pod failure policy, ignored failures",
    lives(policed(), exits=st.dictionaries(st.integers(0, 4), st.just(IGNORED), max_size=4)),
    playing(completes),
    examples=20,
)
