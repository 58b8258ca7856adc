"""What was seen in a run: lines of text and the states of pods, each with its virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.sim.cluster import SimCluster
from kubemini.store import Change

STEPS = ("FailureTarget", "SuccessCriteriaMet")
"""Conditions of Jobs that only announce another one."""
KINDS = ("jobsets.jobset.x-k8s.io", "workloads.kueue.x-k8s.io", "jobs.batch")
"""Tables whose conditions are told."""


@dataclass(slots=True)
class Line:
    """One thing that happened: `who` is the actor or object, `style` how to show it (plot, condition, event, pod)."""

    at: float
    who: str
    text: str
    style: str


@dataclass(slots=True)
class PodTrack:
    """The life of one pod: (time, state) with the states pending, starting, running, ready, stopping, stopped, failed, succeeded, gone."""

    name: str
    node: str = ""
    states: list[tuple[float, str]] = field(default_factory=list)


class Timeline:
    """Collects while a cluster runs."""

    def __init__(self, cluster: SimCluster) -> None:
        self._cluster = cluster
        self._start = 0.0
        self._on = False
        self.lines: list[Line] = []
        self.pods: dict[str, PodTrack] = {}
        """By uid, in order of creation."""
        self._going: set[str] = set()
        """Uids of what is being deleted: what still becomes of it is the deletion's doing, and not told."""
        self.duration = 0.0
        self.writes = 0
        self._first_revision = 0
        before = cluster.store.observer

        def observe(table: str, change: Change) -> None:
            if before is not None:
                before(table, change)
            if self._on:
                self._see(table, change)

        cluster.store.observer = observe

    def begin(self) -> None:
        """Start the clock."""
        self._on = True
        self._start = self._cluster.env.now()
        self._first_revision = self._cluster.store.revision

    def end(self) -> None:
        """Stop the clock."""
        self._on = False
        self.duration = self.lines[-1].at if self.lines else 0.0
        self.writes = self._cluster.store.revision - self._first_revision

    @property
    def now(self) -> float:
        """Seconds since `begin`."""
        return self._cluster.env.now() - self._start

    def say(self, text: str) -> None:
        """Add a line of the plot."""
        self.lines.append(Line(self.now, "", text, "plot"))

    # ------------------------------------------------------------------ seeing

    def _see(self, table: str, change: Change) -> None:
        if table == "pods":
            self._pod(change)
        elif table == "events" and change.new is not None:
            self._event(change.new.obj)
        elif table in KINDS and change.new is not None:
            self._conditions(change)

    def _conditions(self, change: Change) -> None:
        if change.new is None:
            return
        new = change.new.obj
        before = {each["type"]: each["status"] for each in ((change.old.obj if change.old else {}).get("status") or {}).get("conditions") or ()}
        who = f"{new['kind'].lower()}/{new['metadata']['name']}"
        if "deletionTimestamp" in new["metadata"]:
            self._going.add(new["metadata"]["uid"])
            return
        for condition in (new.get("status") or {}).get("conditions") or ():
            if before.get(condition["type"]) != condition["status"] and condition["type"] not in STEPS:
                mark = "" if condition["status"] == "True" else f"={condition['status']}"
                self.lines.append(
                    Line(self.now, who, f"{condition['type']}{mark}: {condition.get('message') or condition.get('reason', '')}", "condition")
                )
        old_restarts = ((change.old.obj if change.old else {}).get("status") or {}).get("restarts", 0)
        restarts = (new.get("status") or {}).get("restarts", 0)
        if restarts != old_restarts:
            self.lines.append(Line(self.now, who, f"restarts {old_restarts} → {restarts}: the whole gang starts anew", "condition"))

    def _event(self, event: Tree) -> None:
        if event.get("type") == "Warning":
            about = event["involvedObject"]
            who = f"{about['kind'].lower()}/{about['name']}"
            told = any(line.at == self.now and line.who == who and line.text.endswith(f": {event['message']}") for line in self.lines[-30:])
            if not told and about.get("uid") not in self._going:  # most warnings say again what a condition has just said
                self.lines.append(Line(self.now, who, f"{event['reason']}: {event['message']}", "event"))

    def _pod(self, change: Change) -> None:
        record = change.new if change.new is not None else change.old
        if record is None:
            return
        pod = record.obj
        meta = pod["metadata"]
        track = self.pods.get(meta["uid"])
        if track is None:
            track = self.pods[meta["uid"]] = PodTrack(meta["name"])
        track.node = pod["spec"].get("nodeName", track.node)
        state = "gone" if change.new is None else _state(pod)
        if state == "stopped" and track.states and track.states[-1][1] == "failed":
            return
        if not track.states or track.states[-1][1] != state:
            track.states.append((self.now, state))
            if state in ("ready", "stopped", "failed", "succeeded"):
                where = f" on {track.node}" if state == "ready" and track.node else ""
                self.lines.append(Line(self.now, f"pod/{meta['name']}", f"{state}{where}", "pod"))


def _state(pod: Tree) -> str:
    status = pod.get("status") or {}
    phase = status.get("phase")
    deleted = "deletionTimestamp" in pod["metadata"]
    if phase in ("Failed", "Succeeded"):
        return "stopped" if phase == "Failed" and deleted else str(phase).lower()
    if deleted:
        return "stopping"
    if phase == "Running":
        ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
        return "ready" if ready else "running"
    return "starting" if pod["spec"].get("nodeName") else "pending"
