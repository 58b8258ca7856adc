"""Finding places for a whole group against one state of the cluster, in one domain where it asks for that, and room by preemption. Nothing is written here."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubemini.api.trees import Tree
from kubemini.controllers.scheduler.cache import priority_of
from kubemini.controllers.scheduler.deciding import Decision
from kubemini.controllers.scheduler.gangs import Gang, InDomain
from kubemini.controllers.scheduler.placing import Assumed, Placer
from kubemini.controllers.scheduler.preemption import Candidate


@dataclass(slots=True)
class Trial:
    """Which pods of a group have a place in memory, and why the others have none."""

    placed: list[Assumed] = field(default_factory=list)
    failed: list[tuple[Tree, Decision]] = field(default_factory=list)
    domain: InDomain | None = None
    """Where they were looked for."""

    def pods(self) -> list[Tree]:
        """Return all pods that were tried."""
        return [*(each.pod for each in self.placed), *(pod for pod, _ in self.failed)]


@dataclass(slots=True)
class Rescue:
    """What preemption could do for a group that does not fit: everything or nothing."""

    candidates: list[tuple[Tree, Candidate]] = field(default_factory=list)
    """Pods with the node whose victims make room for them; empty where that would not be enough."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Uid → the node that is kept for a pod meanwhile."""
    texts: dict[str, str] = field(default_factory=dict)
    """Uid → why a pod has no node."""
    plugins: dict[str, None] = field(default_factory=dict)
    """The plugins that refused pods, or would even without victims."""
    kept: dict[str, None] = field(default_factory=dict)
    """Uids of pods whose earlier nomination stays: their victims are on their way out."""


class GroupPlacer:
    """Tries groups with a `Placer`."""

    def __init__(self, placer: Placer) -> None:
        self._placer = placer
        self._cache = placer.cache

    def assume(self, gang: Gang, todo: list[Tree], members: list[Tree]) -> Trial:
        """Place as many pods as there is room for; with a topology, in the domain where most of them fit, best by score, and in the one that is in use already."""
        if gang.topology is None:
            return self._all(todo, None)
        key, cache = gang.topology, self._cache
        taken = [cache.placed[uid][0] for pod in members if (uid := pod["metadata"]["uid"]) in cache.placed]
        values = dict.fromkeys(info.labels[key] for name in taken if key in (info := cache.nodes[name]).labels)
        best: tuple[int, float, InDomain] | None = None
        for value in values or sorted(dict.fromkeys(info.labels[key] for info in cache.live() if key in info.labels)):
            domain = InDomain(key, value)
            trial = self._all(todo, domain)
            score = sum(self._score(each) for each in trial.placed)
            self.forget(trial)
            if best is None or (len(trial.placed), score) > best[:2]:
                best = (len(trial.placed), score, domain)
        return self._all(todo, best[2] if best is not None else InDomain(key, ""))

    def _score(self, assumed: Assumed) -> float:
        decision = self._placer.why(f"{assumed.pod['metadata']['namespace']}/{assumed.pod['metadata']['name']}")
        return decision.scores.get(assumed.node, 0.0) if decision is not None else 0.0

    def _all(self, todo: list[Tree], domain: InDomain | None) -> Trial:
        trial = Trial(domain=domain)
        for pod in todo:
            found = self._placer.assume(pod, domain)
            if isinstance(found, Assumed):
                trial.placed.append(found)
            else:
                trial.failed.append((pod, found))
        return trial

    def forget(self, trial: Trial) -> None:
        """Give all places up again."""
        for each in reversed(trial.placed):
            self._placer.forget(each)

    def rescue(self, trial: Trial, wanted: int) -> Rescue:
        """Look for room by preemption for all that have no place, and give all places up again: the group starts when the victims are gone, if `wanted` pods do.

        Pods take their turns anew: one that preempts sees those before it, which are as important at least, so that no group drives out its own, and those
        after it see that it has its place. As upstream, a group that need not preempt to reach its number waits nevertheless if one of its pods can.
        """
        cache, rescue = self._cache, Rescue()
        self.forget(trial)
        held: list[Assumed] = []
        removed: list[tuple[Tree, str]] = []
        for pod in sorted(trial.pods(), key=turn):
            decision = self._placer.assume(pod, trial.domain)
            if isinstance(decision, Assumed):
                held.append(decision)
                continue
            outcome = self._placer.preempt(pod, decision)
            rescue.texts[pod["metadata"]["uid"]] = decision.message
            rescue.plugins |= decision.plugins() | dict.fromkeys(outcome.plugins)
            if outcome.keep:
                rescue.kept[pod["metadata"]["uid"]] = None
            candidate = outcome.candidate
            if candidate is None:
                continue
            for victim in candidate.victims:
                removed.append((victim, candidate.node))
                cache.remove(victim["metadata"]["uid"])
            cache.place(pod, candidate.node)
            held.append(Assumed(pod, candidate.node))
            rescue.candidates.append((pod, candidate))
        for each in reversed(held):
            self._placer.forget(each)
        for victim, node in removed:
            cache.place(victim, node)
        if len(held) >= wanted and rescue.candidates:
            rescue.nodes = {each.pod["metadata"]["uid"]: each.node for each in held}
        else:
            rescue.candidates.clear()
        return rescue


def turn(pod: Tree) -> tuple[int, str, str]:
    """Sort key of a group's pods: priority, then age."""
    meta = pod["metadata"]
    return (-priority_of(pod), meta.get("creationTimestamp") or "", meta["name"])
