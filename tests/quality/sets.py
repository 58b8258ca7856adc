"""Lives of StatefulSets and of groups (LeaderWorkerSets): made, changed, disturbed, left alone until all is as wished, and deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hypothesis import strategies as st

from kubemini.api.resources import (
    CONTROLLER_REVISIONS,
    ENDPOINT_SLICES,
    LEADER_WORKER_SETS,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    SERVICES,
    STATEFUL_SETS,
    Resource,
)
from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.sim.cluster import SimCluster
from kubemini.sim.faults import PERFECT, Faults
from kubemini.store import Change
from kubemini.testing.invariants import Checker, Invariant, StoreView, View
from kubemini.testing.invariants.dns import dns_invariants
from kubemini.testing.invariants.lws import lws_invariants, timely_lws_invariants
from kubemini.testing.invariants.statefulset import Deletions, Kept, statefulset_invariants
from tests.quality.searching import Scenario, play

CONTROLLERS = ("namespaces", "service-accounts", "garbage-collector", "endpoints", "stateful-set", "volumes", "nodes", "scheduler", "kubelet", "lws")
PROCESSES = ("kube-controller-manager", "lws-controller-manager")
LATE = Faults(watch_delay=0.5, request_delay=0.05)
ROUGH = Faults(watch_delay=0.4, request_delay=0.05, lost_before=0.03, lost_after=0.03, conflict=0.05)
DOMAIN = "example.com/rack"
FLEET = [{"count": 12, "name": "n-{i}", "cpu": 64, "memory": "256Gi", "labels": {DOMAIN: "rack-{i//2}"}}]
NEVER_READY = {"kubemini.dev/hold": "running"}

Steps = tuple[tuple[float, str, int], ...]
Spec = dict[str, object]


def steps(*deeds: str, size: int = 4, waits: tuple[float, ...] = (0, 0.3, 1, 5, 20), least: int = 0) -> st.SearchStrategy[Steps]:
    """Draw what happens: after so many seconds, what, with which number."""
    return st.lists(st.tuples(st.sampled_from(waits), st.sampled_from(deeds), st.integers(0, 5)), min_size=least, max_size=size).map(tuple)


def template(version: int, *, broken: bool = False, grace: int = 1) -> Tree:
    """Return a pod template; a broken one gives pods that are never ready."""
    annotations = {"version": str(version), "kubemini.dev/hold": "running" if broken else None}
    return {"metadata": {"annotations": annotations}, "spec": {"terminationGracePeriodSeconds": grace, "containers": [{"name": "c", "image": "i"}]}}


def made(tree: Tree) -> Tree:
    """Return a template as it is created: without what a patch would remove."""
    meta = {**tree["metadata"], "annotations": {key: value for key, value in tree["metadata"]["annotations"].items() if value is not None}}
    return {**tree, "metadata": meta}


@dataclass(frozen=True)
class Life:
    """One run of one StatefulSet, or LeaderWorkerSet where `groups`."""

    spec: Tree
    steps: Steps = ()
    seed: int = 0
    faults: Faults = PERFECT
    groups: bool = False
    exclusive: bool = False
    broken: bool = False
    """Whether pods of the first template are never ready."""
    stray: bool = False
    """Whether a pod that is none of the set's ends and stays."""
    one_failure: bool = False
    """Whether each group that was disturbed is made again once."""
    same_pods: bool = False
    """Whether the pods of the ordinals, or groups, that were always wanted stay the same."""

    @property
    def resource(self) -> Resource:
        """The kind."""
        return LEADER_WORKER_SETS if self.groups else STATEFUL_SETS

    def tree(self) -> Tree:
        """Return the object that is created."""
        meta: Tree = {"name": "web", "namespace": "default", "labels": {"team": "x"}}
        pods = made(template(0, broken=self.broken))
        if self.groups:
            if self.exclusive:
                meta["annotations"] = {"leaderworkerset.sigs.k8s.io/exclusive-topology": DOMAIN}
            group = {"workerTemplate": pods, **self.spec["leaderWorkerTemplate"]}
            return {"metadata": meta, "spec": {**self.spec, "leaderWorkerTemplate": group}}
        pods = {**pods, "metadata": {**pods["metadata"], "labels": {"app": "web"}}}
        given = {"serviceName": "web", "selector": {"matchLabels": {"app": "web"}}, "template": pods}
        return {"metadata": meta, "spec": {**given, **self.spec}}


class Leaders:
    """Not a promise: remembers every pod, for what is asked at the end."""

    name = "pods"

    def __init__(self) -> None:
        self.uids: dict[str, dict[str, None]] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Note a new pod."""
        if table == PODS.storage and change.old is None and change.new is not None:
            meta = change.new.obj["metadata"]
            self.uids.setdefault(meta["name"], {})[meta["uid"]] = None
        return ()

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing."""
        return ()


class _Player:
    """Plays one life."""

    def __init__(self, life: Life) -> None:
        self.life = life
        self.deletions = Deletions()
        self.pods = Leaders()
        self.least = life.spec.get("replicas", 1)
        """The smallest size that was ever wished for."""
        self.wanted: Tree = {}
        """The spec as it was last written."""
        self.disturbed: dict[str, None] = {}

    def invariants(self) -> list[Invariant]:
        """Return what must hold."""
        sets = [each for each in statefulset_invariants() if not isinstance(each, Deletions)]
        mine: list[Invariant] = [*sets, Kept(), *dns_invariants(lossless=not self.life.faults.lost_after), self.pods]
        if not self.life.groups:
            return [*mine, self.deletions]
        timely = timely_lws_invariants() if self.life.faults is PERFECT and not any("pod" in what for _, what, _ in self.life.steps) else []
        return [*mine, *lws_invariants(), *timely]

    async def patch(self, cluster: SimCluster, spec: Spec) -> None:
        """Change the spec."""
        self.wanted = (await cluster.client.patch(self.life.resource, "web", {"spec": spec}, namespace="default"))["spec"]

    async def do(self, cluster: SimCluster, what: str, which: int) -> None:
        """Do one thing; what is gone already is left alone."""
        groups = self.life.groups
        pods = [each for each in await cluster.list("pod") if "deletionTimestamp" not in each["metadata"]]
        target = pods[which % len(pods)]["metadata"] if pods else {"name": "none", "uid": ""}
        try:
            match what:
                case "scale":
                    self.least = min(self.least, which)
                    await self.patch(cluster, {"replicas": which})
                case "template" | "break":
                    pod = template(which, broken=what == "break")
                    await self.patch(cluster, {"leaderWorkerTemplate": {"workerTemplate": pod}} if groups else {"template": pod})
                case "partition":
                    held = {"partition": which}
                    await self.patch(
                        cluster,
                        {"rolloutStrategy": {"rollingUpdateConfiguration": held}} if groups else {"updateStrategy": {"rollingUpdate": held}},
                    )
                case "size":
                    await self.patch(cluster, {"leaderWorkerTemplate": {"size": 1 + which % 3}})
                case "start":
                    await self.patch(cluster, {"ordinals": {"start": which % 3}})
                case "fail pod" | "end pod":
                    self.deletions.excuse(target["uid"])
                    await cluster.fail_pod("default", target["name"], exit_code=1 if what == "fail pod" else 0)
                case "delete pod" | "kill pod":
                    self.deletions.excuse(target["uid"])
                    self.disturbed["-".join(target["name"].split("-")[:2])] = None
                    await cluster.client.delete(PODS, target["name"], namespace="default", uid=target["uid"], grace=0 if what == "kill pod" else None)
                case "delete service":
                    services = [each["metadata"]["name"] for each in await cluster.list("service") if each["metadata"]["name"].startswith("web")]
                    await cluster.client.delete(SERVICES, services[which % len(services)] if services else "none", namespace="default")
                case "lose leader":
                    # At once, while its workers take their time
                    leader = next(each["metadata"] for each in pods if each["metadata"]["name"] == "web-0")
                    self.disturbed["web-0"] = None
                    await cluster.client.delete(PODS, "web-0", namespace="default", uid=leader["uid"], grace=0)
                case "cripple" | "heal":
                    # A leader stops to be ready, and nobody does anything about it; later it is again
                    for each in pods:
                        if what == "heal" or each["metadata"]["name"] == f"web-{which}":
                            state = "False" if what == "cripple" else "True"
                            said = [{**one, "status": state} for one in each["status"]["conditions"] if one["type"] == "Ready"]
                            kept = [one for one in each["status"]["conditions"] if one["type"] != "Ready"]
                            await cluster.client.update_status(PODS, {**each, "status": {**each["status"], "conditions": [*kept, *said]}})
                case "service again":
                    service = await cluster.client.get(SERVICES, "web", "default")
                    await cluster.client.delete(SERVICES, "web", namespace="default", propagation="Background")
                    await cluster.client.create(SERVICES, {"metadata": {"name": "web", "namespace": "default"}, "spec": service["spec"]})
                case "look":
                    # At rest, but not as wished: names alone are looked at
                    for promise in dns_invariants():
                        wrong = list(promise.at_rest(StoreView(cluster.store)))
                        assert not wrong, f"{promise.name}: {wrong}"
                case "restart":
                    await cluster.restart(PROCESSES[which % 2])
                case _:
                    raise ValueError(what)
        except ApiStatus as refused:
            if refused.code not in (404, 409):
                raise

    async def run(self, cluster: SimCluster, checker: Checker) -> None:
        """Play the life to its end."""
        life, client = self.life, cluster.client
        if not life.groups:
            service = {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]}
            for name in ("web", "web-too"):
                await client.create(SERVICES, {"metadata": {"name": name, "namespace": "default"}, "spec": service})
        self.wanted = (await client.create(life.resource, life.tree()))["spec"]
        for after, what, which in life.steps:
            await cluster.settle(after)
            await self.do(cluster, what, which)
        if life.groups:
            await self.patch(cluster, {"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": 0}}})
        if life.stray:
            await self.stray(cluster)
        assert await cluster.settle(5000), "the cluster never comes to rest"
        checker.at_rest()
        live = await client.get(life.resource, "web", "default")
        assert live["spec"] == self.wanted, "the spec is not as it was left"
        self._check_pods()
        if life.groups and not any(what == "delete service" for _, what, _ in life.steps):
            # A group's own Service that somebody deletes comes back with its next leader only
            unique = live["spec"]["networkConfig"]["subdomainPolicy"] == "UniquePerReplica"
            services = {each["metadata"]["name"] for each in await cluster.list("service")}
            missing = [name for name in (f"web-{index}" for index in range(live["spec"]["replicas"])) if unique and name not in services]
            assert not missing, f"groups without a Service: {missing}"
        claims = [each["metadata"]["name"] for each in await client.list(PERSISTENT_VOLUME_CLAIMS)]
        await cluster.delete(f"{life.resource.plural}.{life.resource.group}/web", propagation="Foreground")
        assert await cluster.settle(5000), "the cluster never comes to rest"
        checker.at_rest()
        await self._check_rest(cluster, claims)

    async def stray(self, cluster: SimCluster) -> None:
        """Make a pod apart that the Service selects as well: it runs, ends and stays."""
        meta = {"name": "stray", "namespace": "default", "labels": {"app": "web"}, "annotations": {"kubemini.dev/run-for": "3s"}}
        spec = {"restartPolicy": "Never", "hostname": "stray", "subdomain": "web", "containers": [{"name": "c", "image": "i"}]}
        await cluster.client.create(PODS, {"metadata": meta, "spec": spec})

    def _check_pods(self) -> None:
        if self.life.same_pods:
            changed = [name for name in (f"web-{index}" for index in range(self.least)) if len(self.pods.uids.get(name, ())) > 1]
            assert not changed, f"pods were replaced for no reason: {changed}"
        if self.life.one_failure:
            for leader in self.disturbed:
                number = len(self.pods.uids[leader])
                assert number == 2, f"{leader} was made {number} times for one failure"

    async def _check_rest(self, cluster: SimCluster, claims: list[str]) -> None:
        left = [each["metadata"]["name"] for resource in (PODS, STATEFUL_SETS, CONTROLLER_REVISIONS) for each in await cluster.client.list(resource)]
        if self.life.groups:
            left += [each["metadata"]["name"] for each in (*await cluster.list("service"), *await cluster.client.list(ENDPOINT_SLICES))]
        left = [each for each in left if each.startswith("web-") and not each.startswith("web-too")]
        assert not left, f"left: {left}"
        policy = self.life.spec.get("persistentVolumeClaimRetentionPolicy") or {}
        kept = [] if policy.get("whenDeleted") == "Delete" else claims
        found = [each["metadata"]["name"] for each in await cluster.client.list(PERSISTENT_VOLUME_CLAIMS)]
        assert found == kept, f"claims {found}, wanted {kept}"


def played(life: Life) -> None:
    """Play a life to its end."""
    player = _Player(life)
    play(player.run, player.invariants(), seed=life.seed, faults=life.faults, controllers=CONTROLLERS, fleet=FLEET)


# ----------------------------------------------------------------------------------------------- scenarios


ROLLING: st.SearchStrategy[Tree] = st.just({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})


def stateful(
    *,
    policies: tuple[str, ...] = ("OrderedReady", "Parallel"),
    strategies: st.SearchStrategy[Tree] = ROLLING,
    least: int = 0,
    **more: st.SearchStrategy[object],
) -> st.SearchStrategy[Tree]:
    """Draw the spec of a StatefulSet."""
    fields: dict[str, st.SearchStrategy[object]] = {
        "replicas": st.integers(least, 4),
        "podManagementPolicy": st.sampled_from(policies),
        "updateStrategy": strategies,
        **more,
    }
    return st.fixed_dictionaries(fields)


def lives(
    spec: st.SearchStrategy[Tree], deeds: st.SearchStrategy[Steps], faults: tuple[Faults, ...] = (PERFECT, LATE), **more: object
) -> st.SearchStrategy[Life]:
    """Draw lives."""
    given = {name: value if isinstance(value, st.SearchStrategy) else st.just(value) for name, value in more.items()}
    return st.builds(Life, spec=spec, steps=deeds, seed=st.integers(0, 2**16), faults=st.sampled_from(faults), **given)


CLAIM: Tree = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
RETENTION = st.sampled_from([None, {"whenDeleted": "Delete", "whenScaled": "Retain"}, {"whenDeleted": "Retain", "whenScaled": "Delete"}])

SETS = Scenario(
    "StatefulSet",
    lives(stateful(revisionHistoryLimit=st.just(1)), steps("scale", "template", "fail pod", "delete pod", "restart"), (PERFECT, ROUGH)),
    played,
)
"""Anything happens to a StatefulSet."""
UPDATED = Scenario(
    "StatefulSet updates",
    lives(
        stateful(least=3, minReadySeconds=st.sampled_from([0, 8]), revisionHistoryLimit=st.sampled_from([0, 1])),
        steps("template", "template", "delete pod", waits=(4, 12, 30), least=1, size=3),
    ),
    played,
)
HELD = Scenario(
    "StatefulSet updates that are held",
    lives(stateful(least=3), steps("partition", "template", "delete pod", waits=(1, 5, 20), least=3, size=6)),
    played,
)
ON_DELETE = Scenario(
    "StatefulSet OnDelete",
    lives(stateful(least=1, strategies=st.just({"type": "OnDelete"})), steps("template", "delete pod", waits=(1, 5), least=3, size=5)),
    played,
    examples=10,
)
SCALED = Scenario("StatefulSet scale", lives(stateful(), steps("scale", least=2), same_pods=True), played, examples=20)
ENDED = Scenario(
    "StatefulSet pods that end", lives(stateful(least=1), steps("end pod", "fail pod", waits=(5, 20), least=1, size=2)), played, examples=10
)
BROKEN_SET = Scenario(
    "StatefulSet that breaks",
    lives(
        stateful(policies=("Parallel",), least=1, minReadySeconds=st.sampled_from([0, 5])),
        st.just(((5.0, "break", 1), (20.0, "template", 2))),
    ),
    played,
    examples=10,
)
NEVER_READY_SET = Scenario(
    "StatefulSet never ready",
    lives(stateful(policies=("OrderedReady",), least=2), st.just(((5.0, "scale", 0),)), broken=True),
    played,
    examples=5,
)
ENDED_APART = Scenario("a pod apart that ends", lives(stateful(), steps("scale", size=1), stray=True), played, examples=5)
UNREADY = Scenario(
    "StatefulSet pods that are not ready",
    lives(stateful(policies=("Parallel",), least=1), st.just(((5.0, "break", 1), (20.0, "look", 0), (0.0, "template", 2)))),
    played,
    examples=5,
)
LATE_ENDPOINTS = Scenario(
    "endpoints seen late",
    lives(
        stateful(policies=("Parallel",), least=2),
        steps("service again", "delete pod", "scale", waits=(0, 0, 5), least=3, size=6),
        (Faults(watch_delay=2.0), LATE),
    ),
    played,
)
CLAIMS = Scenario(
    "StatefulSet claims",
    lives(
        stateful(least=1, volumeClaimTemplates=st.just([CLAIM]), persistentVolumeClaimRetentionPolicy=RETENTION).map(
            lambda spec: {key: value for key, value in spec.items() if value is not None}
        ),
        steps("delete pod", "template", waits=(5, 20), size=2),
        (PERFECT,),
    ),
    played,
    examples=15,
)


def grouped(
    *,
    budgets: tuple[tuple[int, int], ...] = ((1, 0), (0, 1), (2, 2), (1, 1)),
    policies: tuple[str, ...] = ("None", "RecreateGroupOnPodRestart"),
    least: int = 0,
    size: int = 1,
    sub_groups: bool = False,
) -> st.SearchStrategy[Tree]:
    """Draw the spec of a LeaderWorkerSet."""

    def spec(replicas: int, size: int, policy: str, first: bool, unique: bool, budget: tuple[int, int], sub: tuple[int, int, str]) -> Tree:
        rolling = {"maxUnavailable": budget[0], "maxSurge": budget[1]}
        group: Tree = {"size": size, "restartPolicy": policy}
        if sub_groups:
            group |= {"size": sub[0], "subGroupPolicy": {"subGroupSize": sub[1], "subGroupPolicyType": sub[2]}}
        return {
            "replicas": replicas,
            "startupPolicy": "LeaderReady" if first else "LeaderCreated",
            "networkConfig": {"subdomainPolicy": "UniquePerReplica" if unique else "Shared"},
            "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
            "leaderWorkerTemplate": group,
        }

    subs = st.sampled_from(
        [(3, 1, "LeaderWorker"), (4, 2, "LeaderWorker"), (5, 2, "LeaderWorker"), (3, 2, "LeaderExcluded"), (5, 2, "LeaderExcluded")]
    )
    return st.builds(
        spec,
        st.integers(least, 3),
        st.integers(size, 3),
        st.sampled_from(policies),
        st.booleans(),
        st.booleans(),
        st.sampled_from(budgets),
        subs,
    )


GROUPS = Scenario(
    "LeaderWorkerSet",
    lives(grouped(), steps("scale", "template", "size", "fail pod", "delete pod", "delete service", "restart"), (PERFECT, ROUGH), groups=True),
    played,
)
"""Anything happens to a LeaderWorkerSet."""
ROLLED = Scenario(
    "LeaderWorkerSet updates",
    lives(grouped(least=2, size=2), steps("template", "size", waits=(5, 8, 20), least=1, size=3), groups=True),
    played,
)
CANARIES = Scenario(
    "LeaderWorkerSet updates that are held",
    lives(grouped(least=2, size=2), steps("partition", "template", "delete pod", waits=(5, 20), least=3, size=5), groups=True),
    played,
)
ONE_FAILURE = Scenario(
    "LeaderWorkerSet, one failure",
    lives(
        grouped(least=1, size=2, policies=("RecreateGroupOnPodRestart",)),
        steps("delete pod", "kill pod", waits=(20,), least=1, size=1),
        (PERFECT, LATE, Faults(watch_delay=3.0, request_delay=0.05)),
        groups=True,
        one_failure=True,
    ),
    played,
)
UPDATED_GROUPS = Scenario(
    "LeaderWorkerSet updates, groups restart as a whole",
    lives(
        grouped(least=1, size=2, policies=("RecreateGroupOnPodRestart",), budgets=((1, 0), (3, 0))),
        st.just(((20.0, "template", 1),)),
        (PERFECT, LATE, Faults(watch_delay=3.0, request_delay=0.05)),
        groups=True,
    ),
    played,
    examples=15,
)
SCALED_GROUPS = Scenario("LeaderWorkerSet scale", lives(grouped(), steps("scale", least=2), groups=True, same_pods=True), played, examples=15)
BROKEN_GROUPS = Scenario(
    "LeaderWorkerSet that never was ready",
    lives(grouped(least=2, budgets=((1, 0), (0, 1))), st.just(((20.0, "template", 1),)), groups=True, broken=True),
    played,
    examples=10,
)
HALF_BROKEN_GROUPS = Scenario(
    "LeaderWorkerSet that lost some of its groups",
    lives(
        grouped(least=2, budgets=((1, 0), (1, 1)), policies=("None",)),
        st.builds(lambda which: ((10.0, "cripple", which), (5.0, "template", 2), (40.0, "heal", 0)), st.integers(0, 1)),
        (PERFECT,),
        groups=True,
    ),
    played,
    examples=10,
)
FLAPPING_GROUPS = Scenario(
    "LeaderWorkerSet whose groups fail during an update",
    lives(grouped(least=2, policies=("None",)), st.just(((10.0, "template", 1), (3.0, "delete pod", 5), (0.5, "delete pod", 4))), groups=True),
    played,
    examples=20,
)
RESIZED = Scenario(
    "LeaderWorkerSet, new sizes that are held",
    lives(
        grouped(least=2, size=2),
        st.builds(
            lambda size, which: ((20.0, "partition", 3), (0.0, "size", size), (20.0, "delete pod", which)),
            st.sampled_from([0, 1, 2]),
            st.integers(0, 3),
        ),
        groups=True,
    ),
    played,
    examples=10,
)
LONE_FAILURES = Scenario(
    "LeaderWorkerSet, pods that restart alone",
    lives(grouped(least=1, size=2, policies=("None",)), steps("delete pod", waits=(20,), least=1, size=2), groups=True),
    played,
    examples=10,
)
OWN_SERVICES = Scenario(
    "LeaderWorkerSet, Services of groups",
    lives(
        grouped(least=1, policies=("None",)).map(lambda spec: {**spec, "networkConfig": {"subdomainPolicy": "UniquePerReplica"}}),
        steps("delete pod", "template", waits=(20,), least=1, size=3),
        groups=True,
    ),
    played,
    examples=10,
)
SLOW_WORKERS = Scenario(
    "LeaderWorkerSet, leaders that go before their workers",
    lives(
        grouped(least=1, size=2, policies=("RecreateGroupOnPodRestart",), budgets=((1, 0),)),
        st.just(((20.0, "lose leader", 0),)),
        (PERFECT, LATE, Faults(watch_delay=3.0, request_delay=0.05)),
        groups=True,
        one_failure=True,
    ),
    played,
    examples=20,
)
SUB_GROUPS = Scenario("subgroups", lives(grouped(least=1, sub_groups=True), steps("template", size=1), groups=True), played, examples=10)
PLACED_GROUPS = Scenario(
    "exclusive groups",
    lives(grouped(least=2), steps("template", "delete pod", waits=(5, 20), size=3), groups=True, exclusive=True),
    played,
    examples=15,
)
