"""Elastic jobs: a job that grows gets a new Workload slice beside the old one, which replaces it on admission; one that shrinks is changed in place."""

from __future__ import annotations

from typing import Protocol

from kubemini.api.resources import PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.integrations.framework import Finish, Integration, Stop
from kubemini.controllers.kueue.integrations.podsets import same
from kubemini.controllers.kueue.workloads import pod_sets_of
from kubemini.controllers.kueue.writing import update_workload
from kubemini.runtime.controller import Context
from kubemini.runtime.keys import controller_uid, key_of


def elastic(job: Tree, config: KueueConfig) -> bool:
    """Tell whether a job may be resized while it runs."""
    return (job["metadata"].get("annotations") or {}).get(names.ELASTIC_JOB) == "true" and config.on("ElasticJobsViaWorkloadSlices")


class Loop(Protocol):
    """What slices need of the generic loop over jobs of one kind."""

    kind: Integration

    async def create(self, job: Tree, extra: str, annotations: dict[str, str], *, first_slice: bool = False) -> None:
        """Make a Workload for a job."""

    async def finish(self, job: Tree, workload: Tree, finish: Finish) -> None:
        """Mark the Workload of a job that has ended."""

    async def mark_finished(self, workload: Tree, reason: str, message: str) -> None:
        """Mark a Workload as finished."""

    async def drop_finalizer(self, workload: Tree) -> bool:
        """Take Kueue's finalizer off a Workload. Tell whether it had one."""
        ...

    async def pods_ready(self, job: Tree, workload: Tree) -> bool:
        """Write PodsReady where it changes. Tell whether something was written."""
        ...


class Slices:
    """The Workload slices of elastic jobs of one kind."""

    def __init__(self, ctx: Context, hub: Hub, kind: Integration) -> None:
        self._ctx = ctx
        self._hub = hub
        self._kind = kind
        ctx.informer(PODS).add_index("controller", controller_uid, reads=("ownerReferences",))

    def predecessor(self, workload: Tree) -> Tree | None:
        """Return the unfinished slice that a slice replaces, or None."""
        key = (workload["metadata"].get("annotations") or {}).get(names.WORKLOAD_SLICE_REPLACEMENT_FOR)
        old = self._hub.workloads.get_key(key) if key else None
        return old if old is not None and not conditions.finished(old) else None

    async def ensure(self, loop: Loop, job: Tree, finish: Finish | None) -> Tree | type[Stop] | None:
        """Return the slice that stands for a job now; `Stop` after a write."""
        owned = sorted(
            self._hub.workloads.by_index("owner", job["metadata"]["uid"]),
            key=lambda each: (each["metadata"]["creationTimestamp"], each["metadata"]["name"]),
        )
        live = [each for each in owned if not conditions.finished(each)]
        if finish is not None:
            for workload in owned:
                if conditions.finished(workload):
                    await loop.drop_finalizer(workload)
            for workload in live:
                await loop.finish(job, workload, finish)
            return Stop if live else None
        if not live:
            await loop.create(job, str(job["metadata"].get("generation", 1)), {names.ELASTIC_JOB: "true"}, first_slice=True)
            return Stop
        holder, newest = await self._normalised(loop, live)
        if holder is None and newest is None:
            return Stop
        current = newest or holder
        assert current is not None
        wanted = loop.kind.pod_sets(job)
        counts = [each["count"] for each in wanted]
        have = [each["count"] for each in current["spec"]["podSets"]]
        if newest is not None and await loop.pods_ready(job, newest):
            return Stop
        if counts == have:
            return holder if holder is not None and newest is not None else current
        shrinks = all(a <= b for a, b in zip(counts, have, strict=True))
        if not conditions.reserved(current) or shrinks:
            if newest is not None and holder is not None and all(a <= b["count"] for a, b in zip(counts, holder["spec"]["podSets"], strict=True)):
                await loop.mark_finished(newest, names.OUT_OF_SYNC, "The workload slice is out of sync with its parent job")
                return Stop
            pod_sets = [{**each, "count": count} for each, count in zip(current["spec"]["podSets"], counts, strict=True)]
            await update_workload(self._ctx, {**current, "spec": {**current["spec"], "podSets": pod_sets}})
            return Stop
        first = (current["metadata"].get("annotations") or {}).get(names.WORKLOAD_SLICE_NAME) or current["metadata"]["name"]
        annotations = {names.ELASTIC_JOB: "true", names.WORKLOAD_SLICE_REPLACEMENT_FOR: key_of(current), names.WORKLOAD_SLICE_NAME: first}
        await loop.create(job, str(job["metadata"].get("generation", 1)), annotations)
        return Stop

    async def _normalised(self, loop: Loop, live: list[Tree]) -> tuple[Tree | None, Tree | None]:
        """Return (the slice with quota, the one that is to replace it), and finish all others. (None, None) after a write."""
        holders = [each for each in live if conditions.reserved(each) and not conditions.evicted(each)]
        holder = holders[-1] if holders else None
        if holder is None:
            keep = live[-1]
            for workload in live[:-1]:
                await loop.mark_finished(workload, names.OUT_OF_SYNC, "The workload slice is out of sync with its parent job")
            return (None, None) if len(live) > 1 else (None, keep)
        successors = [
            each for each in live if (each["metadata"].get("annotations") or {}).get(names.WORKLOAD_SLICE_REPLACEMENT_FOR) == key_of(holder)
        ]
        newest = successors[-1] if successors else None
        replaced = (holder["metadata"].get("annotations") or {}).get(names.WORKLOAD_SLICE_REPLACEMENT_FOR)
        wrote = False
        for workload in live:
            if workload is not holder and workload is not newest:
                reason = names.WORKLOAD_SLICE_REPLACED if key_of(workload) == replaced else names.OUT_OF_SYNC
                await loop.mark_finished(
                    workload,
                    reason,
                    "The workload slice was replaced" if reason != names.OUT_OF_SYNC else "The workload slice is out of sync with its parent job",
                )
                wrote = True
        return (None, None) if wrote else (holder, newest)

    async def scale(self, loop: Loop, job: Tree, workload: Tree) -> None:
        """Let as many pods of a running job go as its admitted slice has room for."""
        pods = self._ctx.informer(PODS)
        granted = sum(each["count"] for each in pod_sets_of(workload))
        mine = [
            pod
            for pod in pods.by_index("controller", job["metadata"]["uid"])
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        ]
        held = [pod for pod in mine if any(gate["name"] == names.ELASTIC_JOB for gate in pod["spec"].get("schedulingGates") or ())]
        room = granted - (len(mine) - len(held))
        for pod in held[: max(0, room)]:
            gates = [gate for gate in pod["spec"]["schedulingGates"] if gate["name"] != names.ELASTIC_JOB]
            spec = {key: value for key, value in pod["spec"].items() if key != "schedulingGates"}
            if gates:
                spec["schedulingGates"] = gates
            await self._ctx.client.update(PODS, {**pod, "spec": spec})


__all__ = ["Slices", "elastic", "same"]
