"""The budget loop: one reconcile counts the pods of a PodDisruptionBudget and says how many may go."""

from __future__ import annotations

from kubemini.api.resources import POD_DISRUPTION_BUDGETS, PODS
from kubemini.api.trees import Tree
from kubemini.controllers.disruption import budget as view
from kubemini.controllers.disruption.scales import Expected, Scales, UnknownScale
from kubemini.machinery.errors import NotFound
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of
from kubemini.runtime.selecting import SelectorIndex

BATCH_SECONDS, BATCH_PER_POD, BATCH_LIMIT = 0.02, 50e-6, 1.0
_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, "
    'which may result in undefined behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
)


class DisruptionController(Controller):
    """Keys are PodDisruptionBudgets."""

    name = "disruption"
    component = "controllermanager"

    def setup(self, ctx: Context) -> None:
        """Follow budgets, pods and the workloads that have a size."""
        self._ctx = ctx
        self._budgets = ctx.informer(POD_DISRUPTION_BUDGETS)
        self._pods = ctx.informer(PODS)
        self._scales = Scales(ctx)
        self._selectors = SelectorIndex()
        self._sizes: dict[str, int] = {}
        self._budgets.on_change(self._on_budget)
        self._pods.on_change(self._on_pod)

    def _on_budget(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        if new is None:
            self._selectors.drop(key)
            self._sizes.pop(key, None)
            return
        if old is None or old["spec"].get("selector") is not new["spec"].get("selector"):
            self._selectors.put(key, new["metadata"]["namespace"], from_label_selector(new["spec"].get("selector")))
        self.queue.add(key)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        """A budget looks again when its pods come, go, turn ready or are about to go."""
        if not self._budgets.objects:
            return
        if old is not None and new is not None and old["metadata"].get("labels") is not new["metadata"].get("labels"):
            self._due(old)
        pod = new if new is not None else old
        if pod is not None:
            self._due(pod)

    def _due(self, pod: Tree) -> None:
        meta = pod["metadata"]
        keys = self._selectors.matching(meta["namespace"], meta.get("labels"))
        if len(keys) > 1:
            chosen = keys[0].rpartition("/")[2]
            text = f'Pod "{meta["namespace"]}"/"{meta["name"]}" matches multiple PodDisruptionBudgets.  Chose "{chosen}" arbitrarily.'
            self._ctx.recorder.event(pod, "Warning", "MultiplePodDisruptionBudgets", text)
        for key in keys:
            self.queue.add_after(key, min(BATCH_SECONDS + self._sizes.get(key, 0) * BATCH_PER_POD, BATCH_LIMIT))

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Take one pass over a budget."""
        budget = self._budgets.get_key(key)
        if budget is None:
            return None
        recorder, env = self._ctx.recorder, self._ctx.env
        pods = self._pods.select(from_label_selector(budget["spec"].get("selector")), budget["metadata"]["namespace"])
        self._sizes[key] = len(pods)
        if not pods:
            recorder.event(budget, "Normal", "NoPods", "No matching pods found")
        try:
            if view.needs_scale(budget):
                expected = await self._scales.expected(pods)
            else:
                expected = Expected(0 if view.is_empty(budget) else len(pods))
        except UnknownScale as problem:
            recorder.event(budget, "Warning", "CalculateExpectedPodCountFailed", f"Failed to calculate the number of expected pods: {problem}")
            await self._save(budget, view.failed(budget, str(problem), env.stamp()))
            return None
        if expected.unmanaged:
            recorder.event(budget, "Warning", "UnmanagedPods", _UNMANAGED.format(view.selector_text(budget["spec"].get("selector"))))
        granted = view.disrupted(budget, pods, env.now())
        for pod in granted.overdue:
            namespace = budget["metadata"]["namespace"]
            # Upstream names the namespace twice, not the budget
            text = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            recorder.event(pod, "Warning", "NotDeleted", text)
        current = view.healthy(pods, granted.since)
        wanted = view.desired(budget, expected.pods)
        status = view.status(budget, expected=expected.pods, wanted=wanted, current=current, since=granted.since, stamp=env.stamp())
        await self._save(budget, status)
        return granted.again + 0.001 if granted.again is not None else None

    async def _save(self, budget: Tree, status: Tree) -> None:
        if status == budget.get("status"):
            return
        try:
            await self._ctx.client.update_status(POD_DISRUPTION_BUDGETS, {**budget, "status": status})
        except NotFound:
            return
