"""The DaemonSet loop: one reconcile brings the pods of all nodes in line, takes a rolling update on by a step, and tells the counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from kubemini.api.resources import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.daemon_set.history import HashCollision, Histories, Revisions
from kubemini.controllers.daemon_set.placing import Daemon, allows_surge, limits, oldest_first, target
from kubemini.controllers.daemon_set.updating import Step, replace, surge
from kubemini.controllers.replica_set.claiming import Claims
from kubemini.controllers.replica_set.pods import ended, is_available, next_available, phase, ready_since
from kubemini.controllers.replica_set.writing import PodWriter
from kubemini.machinery.errors import ApiStatus
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.consistency import LAPSE, StaleSkips, StatusWrites
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_of, key_of
from kubemini.runtime.selecting import SelectorIndex

BURST = 250
"""Pods that one pass makes or deletes."""
BATCH_SECONDS, BATCH_PER_POD, BATCH_LIMIT = 0.02, 50e-6, 1.0
BACKOFF_BASE, BACKOFF_LIMIT = 1.0, 900.0
"""Seconds between two deletions of failed pods on one node: doubling from the first to the second."""


class DaemonSetController(Controller):
    """Keys are DaemonSets."""

    name = "daemonset"
    component = "daemonset-controller"

    def setup(self, ctx: Context) -> None:
        """Follow DaemonSets, nodes and pods."""
        self._ctx = ctx
        self._sets = ctx.informer(DAEMON_SETS)
        self._nodes = ctx.informer(NODES)
        self._pods = ctx.informer(PODS)
        self._claims = Claims(ctx, DAEMON_SETS, self._pods)
        self._histories = Histories(ctx)
        self._writer = PodWriter(ctx)
        self._selectors = SelectorIndex()
        self._daemons: dict[str, tuple[Tree, str, Daemon]] = {}
        self._backoff: dict[str, tuple[int, dict[str, tuple[float, float]]]] = {}
        """DaemonSet uid → (observed generation, node → (seconds, when a failed pod was deleted last)); a new generation starts afresh."""
        self._status_writes = StatusWrites()
        self._stale = StaleSkips("daemonset", "DaemonSet")
        self.families = (self._stale,)
        self._sets.on_change(self._on_set)
        self._pods.on_change(self._on_pod, controller="DaemonSet")
        self._nodes.on_change(self._on_node)
        ctx.informer(CONTROLLER_REVISIONS).on_change(self._on_revision)

    # ------------------------------------------------------------------ events

    def _on_set(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        if new is None:
            self._selectors.drop(key)
            self._daemons.pop(key, None)
            self._status_writes.forget(key)
            uid = obj["metadata"]["uid"]
            self._writer.expectations.forget(uid)
            self._backoff.pop(uid, None)
            return
        if old is None or old["spec"].get("selector") is not new["spec"].get("selector"):
            self._selectors.put(key, new["metadata"]["namespace"], from_label_selector(new["spec"].get("selector")))
        self.queue.add(key)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None:
            return
        for each in (old, new):
            owner = controller_of(each) if each is not None else None
            if each is not None and owner is not None and owner["kind"] == "DaemonSet":
                if each is pod:
                    self._writer.observe(owner["uid"], old, new)
                pods = self._pods.count_index("controller", owner["uid"])
                self.queue.add_after(f"{each['metadata']['namespace']}/{owner['name']}", min(BATCH_SECONDS + pods * BATCH_PER_POD, BATCH_LIMIT))
        if new is not None and controller_of(new) is None:
            labels = new["metadata"].get("labels")
            if old is None or controller_of(old) is not None or old["metadata"].get("labels") != labels:
                for key in self._selectors.matching(new["metadata"]["namespace"], labels):
                    self.queue.add_after(key, BATCH_SECONDS)

    def _on_revision(self, old: Tree | None, new: Tree | None) -> None:
        """A revision that was changed, deleted or let go by somebody brings a pass about; a new one is our own, or a stray to adopt."""
        owner = controller_of(new) if new is not None else None
        before = controller_of(old) if old is not None else None
        changed = new if new is not None else old
        if changed is None:
            return
        namespace = changed["metadata"]["namespace"]
        for each in (before, owner if old is not None else None):
            if each is not None and each["kind"] == "DaemonSet":
                self.queue.add_after(f"{namespace}/{each['name']}", BATCH_SECONDS)
        if new is not None and owner is None:
            for key in self._selectors.matching(namespace, new["metadata"].get("labels")):
                self.queue.add_after(key, BATCH_SECONDS)

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        if old is not None and new is not None and old["spec"] == new["spec"] and old["metadata"].get("labels") == new["metadata"].get("labels"):
            return
        for key in self._sets.objects:
            self.queue.add_after(key, BATCH_SECONDS)

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a DaemonSet."""
        daemon_set = self._sets.get_key(key)
        if daemon_set is None:
            return None
        meta, spec = daemon_set["metadata"], daemon_set["spec"]
        if self._status_writes.behind(key, meta):
            # The cache will show our last write, and that brings the next pass
            self._stale.count(DAEMON_SETS)
            return LAPSE
        if not spec["selector"]:
            text = "This daemon set is selecting all pods. A non-empty selector is required."
            self._ctx.recorder.event(daemon_set, "Warning", "SelectingAll", text)
            return None
        if "deletionTimestamp" in meta:
            return None
        try:
            revisions = await self._histories.of(daemon_set, self._claims.owned(meta["uid"]))
        except HashCollision:
            status = daemon_set.get("status") or {}
            await self._write(key, daemon_set, {**status, "collisionCount": status.get("collisionCount", 0) + 1})
            return None
        daemon = self._daemon(key, daemon_set, revisions.hash)
        uid = meta["uid"]
        again: float | None = None
        failure: ApiStatus | None = None
        acted = self._writer.expectations.satisfied(uid)
        if acted:
            try:
                again = await self._act(daemon_set, daemon, revisions)
            except ApiStatus as refused:
                # What can be told is told all the same
                failure = refused
        elif (lapse := self._writer.expectations.lapses_in(uid)) is not None:
            again = max(lapse, 0.0) + 0.001
        wait = await self._tell(key, daemon_set, daemon, observed=acted)
        if failure is not None:
            raise failure
        return min((each for each in (again, wait) if each is not None), default=None)

    def _daemon(self, key: str, daemon_set: Tree, hashed: str) -> Daemon:
        known = self._daemons.get(key)
        if known is None or known[0] is not daemon_set or known[1] != hashed:
            same = (
                known is not None
                and known[1] == hashed
                and known[0]["spec"] is daemon_set["spec"]
                and known[0]["metadata"]["uid"] == daemon_set["metadata"]["uid"]
            )
            made = known[2] if same and known is not None else Daemon.of(daemon_set, hashed)
            known = self._daemons[key] = (daemon_set, hashed, made)
        return known[2]

    async def _by_node(self, daemon_set: Tree) -> dict[str, list[Tree]]:
        found: dict[str, list[Tree]] = {}
        for pod in await self._claims.claim(daemon_set, from_label_selector(daemon_set["spec"]["selector"])):
            if not (ended(pod) and "deletionTimestamp" in pod["metadata"]):
                node = target(pod)
                if node:
                    found.setdefault(node, []).append(pod)
        return found

    async def _act(self, daemon_set: Tree, daemon: Daemon, revisions: Revisions) -> float | None:
        by_node = await self._by_node(daemon_set)
        step, again = self._manage(daemon_set, daemon, by_node)
        await self._apply(daemon_set, daemon, step)
        if not self._writer.expectations.satisfied(daemon_set["metadata"]["uid"]):
            return again
        if step.create or step.delete:
            # What was just done is seen already: a pod that was made counts as one that does not serve yet
            by_node = await self._by_node(daemon_set)
        if (daemon_set["spec"].get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate":
            await self._apply(daemon_set, daemon, self._update(daemon_set, daemon, by_node))
        pods = self._claims.owned(daemon_set["metadata"]["uid"])
        live = {label for pod in pods if (label := (pod["metadata"].get("labels") or {}).get(names.CONTROLLER_REVISION_HASH))}
        await self._histories.trim(daemon_set, revisions, live)
        return again

    # ------------------------------------------------------------------ nodes

    def _manage(self, daemon_set: Tree, daemon: Daemon, by_node: dict[str, list[Tree]]) -> tuple[Step, float | None]:
        """Return what is missing and what is too much, and when a failed pod may be deleted again."""
        step = Step()
        again: float | None = None
        for node in self._nodes.list():
            name = node["metadata"]["name"]
            pods = by_node.get(name, [])
            run, stay = daemon.runs_on(node)
            if run and not pods:
                step.create.append(name)
            elif stay and pods:
                wait = self._tidy(daemon_set, daemon, node, pods, step, run=run)
                again = wait if again is None else again if wait is None else min(again, wait)
            elif pods:
                step.delete += [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        for name, pods in by_node.items():
            if self._nodes.get(name) is None:
                # Made for a node that is gone: nothing will ever place them
                step.delete += [pod for pod in pods if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]]
        return step, again

    def _tidy(self, daemon_set: Tree, daemon: Daemon, node: Tree, pods: Sequence[Tree], step: Step, *, run: bool) -> float | None:
        """Note what goes of the pods on a node that the daemon runs on: ended ones, and all but one of several.

        Where an update may surge, a new pod does not wait for the end of the last one.
        """
        place = node["metadata"]["name"]
        running: list[Tree] = []
        wait: float | None = None
        recorder = self._ctx.recorder
        for pod in pods:
            meta = pod["metadata"]
            if "deletionTimestamp" in meta:
                continue
            if phase(pod) == "Failed":
                left = self._backs_off(daemon_set, place)
                if left is not None:
                    wait = left if wait is None else min(wait, left)
                    continue
                text = f"Found failed daemon pod {meta['namespace']}/{meta['name']} on node {place}, will try to kill it"
                recorder.event(daemon_set, "Warning", "FailedDaemonPod", text)
                step.delete.append(pod)
            elif phase(pod) == "Succeeded":
                text = f"Found succeeded daemon pod {meta['namespace']}/{meta['name']} on node {place}, will try to delete it"
                recorder.event(daemon_set, "Normal", "SucceededDaemonPod", text)
                step.delete.append(pod)
            else:
                running.append(pod)
        if not allows_surge(daemon_set):
            step.delete += oldest_first(running)[1:]
        elif len(running) > 1:
            self._tidy_surge(daemon_set, daemon, running, step)
        elif run and not running:
            step.create.append(place)
        return wait

    def _tidy_surge(self, daemon_set: Tree, daemon: Daemon, running: Sequence[Tree], step: Step) -> None:
        """While an update surges, a node may have one old pod and one new, the oldest of each kind; the old one goes when it fails or the new is available."""
        old = [pod for pod in oldest_first(running) if not daemon.has_hash(pod)]
        new = [pod for pod in oldest_first(running) if daemon.has_hash(pod)]
        step.delete += [*new[1:], *old[1:]]
        if old and new and (ready_since(old[0]) is None or self._available(daemon_set, new[0])):
            step.delete.append(old[0])

    def _backs_off(self, daemon_set: Tree, node: str) -> float | None:
        """Return how long a failed pod on a node has to wait; None when it may go now, which counts."""
        now = self._ctx.env.now()
        uid, generation = daemon_set["metadata"]["uid"], (daemon_set.get("status") or {}).get("observedGeneration", 0)
        known = self._backoff.get(uid)
        if known is None or known[0] != generation:
            known = self._backoff[uid] = (generation, {})
        seconds, last = known[1].get(node, (0.0, 0.0))
        if seconds and now - last < seconds:
            return last + seconds - now
        if seconds and now - last > 2 * BACKOFF_LIMIT:
            seconds = 0.0
        known[1][node] = (min(seconds * 2, BACKOFF_LIMIT) if seconds else BACKOFF_BASE, now)
        return None

    def _update(self, daemon_set: Tree, daemon: Daemon, by_node: dict[str, list[Tree]]) -> Step:
        nodes = {node["metadata"]["name"] for node in self._nodes.list() if daemon.runs_on(node)[0]}
        most_surge, most_unavailable = limits(daemon_set, len(nodes))
        available = partial(self._available, daemon_set)
        ordered = {name: by_node[name] for name in sorted(by_node)}
        if most_surge:
            return surge(daemon, ordered, most_surge, nodes, available)
        return replace(daemon, ordered, most_unavailable, available)

    def _available(self, daemon_set: Tree, pod: Tree) -> bool:
        return is_available(pod, daemon_set["spec"].get("minReadySeconds", 0), self._ctx.env.now())

    async def _apply(self, daemon_set: Tree, daemon: Daemon, step: Step) -> None:
        if not step.create and not step.delete:
            return
        owner = {**daemon_set, "apiVersion": "apps/v1", "kind": "DaemonSet"}
        refusal: ApiStatus | None = None
        if step.create:
            refusal = await self._writer.create(owner, [partial(daemon.pod, node) for node in step.create[:BURST]])
        if step.delete:
            refusal = await self._writer.delete(owner, step.delete[:BURST]) or refusal
        if refusal is not None:
            raise refusal

    # ------------------------------------------------------------------ the status

    async def _write(self, key: str, daemon_set: Tree, status: Tree) -> None:
        written = await self._ctx.client.update_status(DAEMON_SETS, {**daemon_set, "status": status})
        self._status_writes.note(key, written)

    async def _tell(self, key: str, daemon_set: Tree, daemon: Daemon, *, observed: bool) -> float | None:
        by_node = await self._by_node(daemon_set)
        now, min_ready = self._ctx.env.now(), daemon_set["spec"].get("minReadySeconds", 0)
        desired = current = misplaced = ready = available = updated = 0
        waiting: list[Tree] = []
        for node in self._nodes.list():
            pods = by_node.get(node["metadata"]["name"], ())
            if not daemon.runs_on(node)[0]:
                misplaced += bool(pods)
                continue
            desired += 1
            if pods:
                current += 1
                pod = oldest_first(pods)[0]
                ready += ready_since(pod) is not None
                available += is_available(pod, min_ready, now)
                updated += daemon.is_current(pod)
                # A pod beside the counted one too: an update that surges waits for it
                waiting += pods
        before = daemon_set.get("status") or {}
        status: Tree = {
            "currentNumberScheduled": current,
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
        }
        generation = daemon_set["metadata"].get("generation", 0) if observed else before.get("observedGeneration", 0)
        optional = (
            ("observedGeneration", generation),
            ("updatedNumberScheduled", updated),
            ("numberAvailable", available),
            ("numberUnavailable", desired - available),
            ("collisionCount", before.get("collisionCount")),
        )
        status |= {name: value for name, value in optional if value}
        if before.get("conditions"):
            status["conditions"] = before["conditions"]
        if status != before:
            await self._write(key, daemon_set, status)
        return next_available(waiting, min_ready, now)
