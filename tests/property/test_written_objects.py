"""Every object that kubemini stores of a kind that an operator brings is valid by upstream's CustomResourceDefinition: no unknown field, no wrong type, no broken rule."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache

import pytest

from kubemini.api.operators import OWNED_KINDS
from kubemini.api.resources import JOB_SETS, LEADER_WORKER_SETS
from kubemini.api.trees import Tree
from kubemini.machinery.schema.structural import StructuralCodec
from kubemini.sim.cluster import SimCluster, simulate
from kubemini.store import Change
from kubemini.testing.invariants import Checker, View
from tests.property.test_interrupted import LIVES
from tests.property.test_training_runs import EXAMPLE, FLEET, play
from tests.unit.schema.test_upstream import definitions


@cache
def codecs() -> dict[str, StructuralCodec]:
    """Return upstream's storage version of each kind, by storage name; skip where the definitions are not at hand."""
    found = {}
    ours = {f"{kind.plural}.{kind.group}" for kind in OWNED_KINDS}
    for crd in definitions():
        name = crd["metadata"]["name"]
        if name in ours:
            version = next(each for each in crd["spec"]["versions"] if each["storage"])
            group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
            found[name] = StructuralCodec(version["schema"]["openAPIV3Schema"], group=group, version=version["name"], kind=kind)
    return found


class Valid:
    """An invariant: what is stored is what upstream's schema lets be stored."""

    name = "valid by upstream's schema"

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def observe(self, table: str, change: Change, view: View) -> Iterable[str]:
        """Decode and validate one object, as an update of what was there before."""
        codec = codecs().get(table)
        if codec is None or change.new is None:
            return ()
        self.seen[table] = self.seen.get(table, 0) + 1
        return list(problems(codec, change.new.obj, change.old.obj if change.old is not None else None))

    def at_rest(self, view: View) -> Iterable[str]:
        """Nothing more at rest."""
        return ()


def problems(codec: StructuralCodec, new: Tree, old: Tree | None) -> Iterator[str]:
    """Yield what is wrong with a stored object."""
    whole = {"apiVersion": f"{codec.group}/{codec.version}", "kind": codec.kind, **new}
    decoded = codec.decode(whole, validation="Strict").tree
    if decoded != whole:
        yield f"{codec.kind} {new['metadata']['name']} is stored without defaults or with fields to be dropped"
    for error in codec.validate(decoded, old):
        yield f"{codec.kind} {new['metadata']['name']}: {error}"


@pytest.mark.parametrize("name", [name for name, life in LIVES.items() if life.resource is JOB_SETS])
def test_jobsets(name: str) -> None:
    """JobSets with all that a life writes into their status."""
    assert watched(lambda cluster: jobset_life(cluster, name))["jobsets.jobset.x-k8s.io"] >= 2


async def jobset_life(cluster: SimCluster, name: str) -> None:
    """Let a JobSet live."""
    tree = LIVES[name].tree()
    await cluster.client.create(JOB_SETS, {**tree, "metadata": {**tree["metadata"], "namespace": "default"}})
    await cluster.settle(30)
    await cluster.settle(600)


def test_training_runs() -> None:
    """The objects of Kueue, with gangs that are admitted, evicted and restarted."""
    seen = watched(lambda cluster: play(cluster, EXAMPLE))
    assert {name.split(".")[0] for name in seen} >= {"jobsets", "workloads", "clusterqueues", "localqueues", "resourceflavors"}


def test_leader_worker_sets() -> None:
    """LeaderWorkerSets that come up and are rolled out."""

    async def scenario(cluster: SimCluster) -> None:
        container = {"name": "m", "image": "i"}
        template = {"size": 2, "workerTemplate": {"spec": {"containers": [container]}}}
        spec = {"replicas": 2, "leaderWorkerTemplate": template}
        meta = {"name": "x", "namespace": "default"}
        await cluster.client.create(
            LEADER_WORKER_SETS, {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": meta, "spec": spec}
        )
        await cluster.settle(60)
        changed = {"spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [{**container, "image": "j"}]}}}}}
        await cluster.client.patch(LEADER_WORKER_SETS, "x", changed, namespace="default")
        await cluster.settle(600)

    assert watched(scenario)["leaderworkersets.leaderworkerset.x-k8s.io"] >= 3


def test_what_is_not_valid_is_noticed() -> None:
    """A field that upstream does not know, or a value that it refuses, is a violation."""
    codec = codecs()["jobsets.jobset.x-k8s.io"]
    sound: Tree = {"metadata": {"name": "x", "namespace": "default"}, "spec": {}, "status": {"restarts": 0}}
    assert list(problems(codec, sound, None)) == []
    bad = {**sound, "status": {"restarts": 0, "replicatedJobsStatus": [{"name": "a"}]}}
    assert list(problems(codec, bad, None))


def watched(scenario: Callable[[SimCluster], Awaitable[None]]) -> dict[str, int]:
    """Run a scenario on the whole control plane; return how many objects of each kind were written. Raise the first violation."""
    codecs()
    valid = Valid()
    checkers: list[Checker] = []

    async def whole(cluster: SimCluster) -> None:
        checkers.append(Checker(cluster.store, [valid]))
        await scenario(cluster)

    simulate(whole, fleet=FLEET)
    if checkers[0].violation is not None:
        raise checkers[0].violation
    return valid.seen
