"""Finding a place for one pod and holding it: the fast way or a full decision, then promises in memory, nothing written yet."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kubemini.api.resources import NAMESPACES, POD_DISRUPTION_BUDGETS
from kubemini.api.trees import Tree
from kubemini.controllers.scheduler import preemption
from kubemini.controllers.scheduler.cache import Cache, NodeInfo, ports_of, priority_of
from kubemini.controllers.scheduler.claims import ClaimFilter, ClaimPlan, DeviceClaims
from kubemini.controllers.scheduler.deciding import Decision, Filters, Rejection, decide, filters_of
from kubemini.controllers.scheduler.feasible import Failure, Signature, Signatures
from kubemini.controllers.scheduler.gangs import InDomain
from kubemini.controllers.scheduler.terms import terms_of
from kubemini.controllers.scheduler.volume_binding import VolumeBinder, VolumePlan
from kubemini.controllers.scheduler.volumes import claim_names, plugins_of
from kubemini.machinery.node_matching import named_nodes
from kubemini.runtime.controller import Context

REMEMBERED = 1024
"""Decisions kept for `why`."""


@dataclass(slots=True)
class Assumed:
    """A pod that has its place in memory, and what has to be written before it is bound."""

    pod: Tree
    node: str
    volumes: VolumePlan | None = None
    claims: ClaimPlan | None = None
    deadline: float = 0.0


class Placer:
    """Decides against the cache, and remembers why."""

    def __init__(self, ctx: Context) -> None:
        self._env = ctx.env
        self._namespaces = ctx.informer(NAMESPACES)
        self._budgets = ctx.informer(POD_DISRUPTION_BUDGETS)
        self.cache = Cache()
        self.volumes = VolumeBinder(ctx)
        self.claims = DeviceClaims(ctx)
        self._signatures = Signatures(self.cache, self._labels_of)
        self._decisions: OrderedDict[str, Decision | str] = OrderedDict()
        """Pod → decision, or just the node that was found the fast way."""
        self._namespaces.on_change(self._on_namespace)

    def _on_namespace(self, old: Tree | None, new: Tree | None) -> None:
        if self.cache.terms.stated and (old or {"metadata": {}})["metadata"].get("labels") != (new or {"metadata": {}})["metadata"].get("labels"):
            self.cache.terms.reset()

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        found = self._namespaces.get(namespace)
        labels: Mapping[str, str] = (found or {"metadata": {}})["metadata"].get("labels") or {}
        return labels

    # ------------------------------------------------------------------ why

    def remember(self, decision: Decision) -> None:
        """Keep a decision for `why`."""
        self._decisions[decision.pod] = decision
        self._decisions.move_to_end(decision.pod)
        if len(self._decisions) > REMEMBERED:
            self._decisions.popitem(last=False)

    def _quick(self, key: str, node: str) -> None:
        decisions = self._decisions
        decisions[key] = node
        if len(decisions) > REMEMBERED:
            decisions.popitem(last=False)

    def why(self, key: str) -> Decision | None:
        """Return the last decision about a pod (``namespace/name``): its node, or each node's refusal."""
        found = self._decisions.get(key)
        return Decision(key, found, nodes=self.cache.count()) if isinstance(found, str) else found

    # ------------------------------------------------------------------ deciding

    def signature(self, pod: Tree) -> Signature | None:
        """Return the signature of a pod that can take the fast way, else None."""
        spec = pod["spec"]
        if spec.get("topologySpreadConstraints") or spec.get("resourceClaims") or ports_of(spec):
            return None
        if spec.get("affinity") and (terms_of(spec) or named_nodes(spec) is not None):
            return None
        if (spec.get("volumes") and claim_names(pod)) or (pod.get("status") or {}).get("nominatedNodeName"):
            return None
        return self._signatures.of(pod)

    def group(self, pod: Tree) -> Hashable:
        """Return what pods of the same fate have in common: their signature, else nothing but themselves."""
        return self.signature(pod) or f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"

    def assume(self, pod: Tree, domain: InDomain | None = None) -> Assumed | Decision:
        """Find a node for a pod and hold the place; the decision says why there is none."""
        meta = pod["metadata"]
        signature = self.signature(pod) if domain is None else None
        if signature is not None:
            node = signature.best()
            if node is not None:
                self._quick(f"{meta['namespace']}/{meta['name']}", node)
                self.cache.place(pod, node)
                return Assumed(pod, node)
            decision = self._refused_alike(pod, signature)
            if decision is not None:
                self.remember(decision)
                return decision
        filters = self.filters(pod, domain=domain)
        decision = decide(filters, self.cache)
        self.remember(decision)
        if decision.node is None:
            if signature is not None and not self.cache.nominated:
                # A copy: what preemption says is added to each pod's own
                signature.failure = Failure(signature.state, replace(decision))
            return decision
        return self._hold(pod, decision.node, filters)

    def _refused_alike(self, pod: Tree, signature: Signature) -> Decision | None:
        """Return the refusal of an equal pod, where nothing has changed since."""
        failure = signature.failure
        if failure is None or failure.state != signature.state or self.cache.nominated:
            return None
        return replace(failure.decision, pod=f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")

    def _hold(self, pod: Tree, node: str, filters: Filters) -> Assumed:
        info = self.cache.nodes[node]
        assumed = Assumed(pod, node)
        if filters.volumes:
            assumed.volumes = self.volumes.reserve(pod, info)
        for plugin in filters.last:
            if isinstance(plugin, ClaimFilter):
                if plugin.pending and node not in plugin.found:
                    plugin.refusal(info)
                assumed.claims = self.claims.reserve(pod, self.claims.live(pod) or [], plugin, node)
        self.cache.place(pod, node)
        return assumed

    def forget(self, assumed: Assumed) -> None:
        """Give a place up again."""
        self.cache.remove(assumed.pod["metadata"]["uid"])
        self.settle(assumed)

    def settle(self, assumed: Assumed) -> None:
        """Drop the promises behind a place that was given up or is bound now."""
        if assumed.volumes is not None:
            self.volumes.release(assumed.volumes)
        if assumed.claims is not None:
            self.claims.release(assumed.pod, assumed.claims)

    def filters(self, pod: Tree, without: Sequence[str] = (), domain: InDomain | None = None) -> Filters:
        """Prepare all filters of a pod. `without` names placed pods that would be gone (preemption victims)."""
        filters = filters_of(pod, self.cache, self._labels_of, without=without)
        spec = pod["spec"]
        if domain is not None:
            filters.first = (domain,)
        affinity = spec.get("affinity")
        if affinity and named_nodes(spec) == []:
            filters.rejection = Rejection("NodeAffinity", "pod affinity terms conflict", "not found")
        if filters.rejection is None and spec.get("volumes") and claim_names(pod):
            gone = dict.fromkeys(without)
            found = plugins_of(pod, self.volumes, lambda: self._placed(gone), lambda info: self._on(info, gone))
            if isinstance(found, Rejection):
                filters.rejection = found
            else:
                filters.volumes = found
        if filters.rejection is None and spec.get("resourceClaims"):
            claims = self.claims.live(pod) or []
            needed = self.claims.filter_of(pod, claims)
            if isinstance(needed, Rejection):
                filters.rejection = needed
            else:
                filters.last = (needed,)
        return filters

    def _placed(self, gone: Mapping[str, None]) -> Iterable[Tree]:
        return (pod for uid, (_, pod) in self.cache.placed.items() if uid not in gone)

    def _on(self, info: NodeInfo, gone: Mapping[str, None]) -> Iterable[Tree]:
        return [pod for uid, pod in info.pods.items() if uid not in gone]

    # ------------------------------------------------------------------ preemption

    def budgets(self) -> Sequence[Tree]:
        """Return all disruption budgets."""
        return self._budgets.list() if self._budgets.objects else ()

    def preempt(self, pod: Tree, decision: Decision, spared: Collection[str] = (), *, barred: str = "") -> preemption.Outcome:
        """Look for pods that would have to go for this one, none of the `spared`; add to the decision's message what came of it.

        `barred` says why it must not preempt at all.
        """
        rejection = decision.rejection
        if not decision.nodes:
            return preemption.Outcome(keep=True)
        if rejection is not None and rejection.suffix:
            decision.message = f"{decision.message} {rejection.suffix}"
            return preemption.Outcome(keep=True)
        spec = pod["spec"]
        mark = (priority_of(pod), spec.get("preemptionPolicy") or "")
        signature = self.signature(pod)
        failure = signature.failure if signature is not None else None
        if barred:
            outcome = preemption.Outcome(text=barred, keep=True)
        elif (
            failure is not None and signature is not None and failure.state == signature.state and mark in failure.texts and not self.cache.nominated
        ):
            text, plugins = failure.texts[mark]
            outcome = preemption.Outcome(text=text, keep=mark[1] == "Never", plugins=plugins)
        else:
            budgets = self.budgets()
            offset = self._env.random.randrange(len(decision.refusals)) if len(decision.refusals) > preemption.CANDIDATES_LEAST else 0
            outcome = preemption.find(pod, decision, self.cache, budgets, lambda without: self.filters(pod, without), offset=offset, spared=spared)
            if failure is not None and signature is not None and failure.state == signature.state and outcome.candidate is None and not spared:
                failure.texts[mark] = (outcome.text, outcome.plugins)
        if outcome.candidate is None and outcome.text:
            claims = spec.get("resourceClaims") and (rejection is None or rejection.plugin != "DynamicResources")
            decision.message = (
                f"{decision.message} {'still not schedulable' if claims else 'no new claims to deallocate'}, preemption: {outcome.text}"
            )
        return outcome
