"""Lets the pods of placed Workloads go to their domains: takes their topology gate and names the domain in their node selector.

Mirrors Kueue's ``pkg/controller/tas/topology_ungater.go``.
"""

from __future__ import annotations

from kubemini.api.kueue.assignments import decode
from kubemini.api.resources import PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.topology.ranking import assign, gated, label
from kubemini.controllers.kueue.workloads import assignments, pod_sets_of
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.expectations import ExpectedUids
from kubemini.runtime.keys import key_of

BATCH_SECONDS = 0.05


class Ungater(Controller):
    """Keys are Workloads."""

    name = "kueue-topology-ungater"
    component = "kueue-topology-ungater"

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub

    def setup(self, ctx: Context) -> None:
        """Follow Workloads and their pods."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._pods = ctx.informer(PODS)
        self._pods.add_index("workload", workload_of, reads=("annotations",), marks=(names.WORKLOAD,))
        self._expected: ExpectedUids[str] = ExpectedUids()
        self._waiting: dict[str, None] = {}
        """Workloads that have had gated pods since somebody looked: changes of pods mean nothing to others."""
        self._pods.on_change(self._on_pod, marks=(names.WORKLOAD,))
        self.hub.workloads.on_change(self._on_workload)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None:
            return
        for key in workload_of(tree):
            if new is None or not gated(new):
                self._expected.observed(key, tree["metadata"]["uid"])
            else:
                self._waiting[key] = None
            if key in self._waiting:
                self.queue.add_after(key, BATCH_SECONDS)

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and conditions.admitted(new) and any("topologyAssignment" in each for each in assignments(new)):
            self.queue.add(key_of(new))
        elif new is None and old is not None:
            self._expected.forget(key_of(old))
            self._waiting.pop(key_of(old), None)

    async def reconcile(self, key: str) -> float | None:
        """Let go whom there is a place for."""
        workload = self.hub.workloads.get_key(key)
        if workload is None or not conditions.admitted(workload) or conditions.finished(workload) or conditions.evicted(workload):
            return None
        if self._expected.outstanding(key):
            return None
        mine = [pod for pod in self._pods.by_index("workload", key) if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
        if not any(gated(pod) for pod in mine):
            self._waiting.pop(key, None)
            return None
        bad = {each["name"] for each in (workload.get("status") or {}).get("unhealthyNodes") or ()}
        pod_sets = {each["name"]: each for each in pod_sets_of(workload)}
        for assignment in assignments(workload):
            placed = assignment.get("topologyAssignment")
            if placed is None:
                continue
            members = [pod for pod in mine if label(pod, names.POD_SET) == assignment["name"] and "deletionTimestamp" not in pod["metadata"]]
            levels = placed["levels"]
            pod_set = {**pod_sets[assignment["name"]], "count": assignment.get("count", pod_sets[assignment["name"]]["count"])}
            for pod, values in assign(members, pod_set, levels, list(decode(placed))):
                if values[-1] not in bad:
                    await self._go(key, pod, dict(zip(levels, values, strict=True)))
        return None

    async def _go(self, key: str, pod: Tree, selector: dict[str, str]) -> None:
        spec = dict(pod["spec"])
        gates = [each for each in spec["schedulingGates"] if each["name"] != names.TOPOLOGY_GATE]
        if gates:
            spec["schedulingGates"] = gates
        else:
            del spec["schedulingGates"]
        spec["nodeSelector"] = {**(spec.get("nodeSelector") or {}), **selector}
        uid = pod["metadata"]["uid"]
        self._expected.expect(key, [uid])
        try:
            await self._ctx.client.update(PODS, {**pod, "spec": spec})
        except (NotFound, Conflict):
            self._expected.observed(key, uid)
            self.queue.add_after(key, BATCH_SECONDS)
        except Exception:
            self._expected.observed(key, uid)
            raise


def workload_of(pod: Tree) -> tuple[str, ...]:
    """Return the key of the Workload of a started pod, as index values."""
    name = (pod["metadata"].get("annotations") or {}).get(names.WORKLOAD)
    return (f"{pod['metadata']['namespace']}/{name}",) if name else ()
