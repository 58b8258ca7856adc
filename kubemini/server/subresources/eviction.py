"""``pods/eviction``: deletes a pod if its disruption budget can spare it. Mirrors ``EvictionREST`` of ``pkg/registry/core/pod/storage`` (1.36).

What is to happen is decided by `judge`, a pure function of the pod and the budgets that select it; the rest carries it
out: the budget's status is written first, then the pod's DisruptionTarget condition, then the pod is deleted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, BadRequest, Conflict, Forbidden, ServerError, Timeout, TooManyRequests
from kubemini.machinery.labels import from_label_selector
from kubemini.server.options import Caller, DeleteOptions, Outcome, WriteOptions
from kubemini.server.registry import Served
from kubemini.server.subresources.answers import CREATED, admitted, with_condition
from kubemini.server.subresources.base import ActionSubresource
from kubemini.server.verbs import Verbs

BUDGETS: Final = ("policy", "poddisruptionbudgets")
MAX_DISRUPTED_PODS: Final = 2000
"""How many evictions may wait to be seen by the disruption controller."""
ATTEMPTS: Final = 20
"""How often a budget is asked again when somebody else wrote it meanwhile."""
_API_SERVER: Final = Caller(user="system:apiserver", groups=("system:masters", "system:authenticated"), agent="kube-apiserver")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an eviction may do: delete the pod, after taking one disruption from `budget` where there is one."""

    budget: Tree | None = None
    """The budget to take a disruption from; None = the pod goes without asking one."""
    guarded: bool = False
    """Whether the verdict rests on the pod being unready, so that the deletion must find this very version of it."""
    guard: str = ""
    """Name of the budget that let the unready pod go."""


class EvictionSubresource(ActionSubresource):
    """Evicts a pod."""

    name = "eviction"

    async def act(self, api: Verbs, served: Served, namespace: str, name: str, body: Tree, options: WriteOptions) -> Outcome:
        """Evict. Raise `BadRequest`, `NotFound`, `Conflict`, `TooManyRequests` where a budget says no, `ServerError` for two budgets."""
        kind = served.kind
        if name != (body.get("metadata") or {}).get("name"):
            raise BadRequest("name in URL does not match name in Eviction object")
        deletion = delete_options(body, options)
        await admitted(api, kind, namespace, name, self.name, body, options)
        pod = api.live(kind, namespace, name).obj
        verdict = judge(pod, api.reader.list("poddisruptionbudgets.policy", namespace))
        if verdict.budget is not None:
            await self._take(api, verdict.budget, name, dry_run=deletion.dry_run)
        try:
            await self._delete(api, served, pod, deletion, options)
        except Conflict:
            if verdict.guarded and not deletion.resource_version:
                raise too_many(verdict.guard) from None
            raise
        return Outcome(CREATED, None, 201)

    async def _take(self, api: Verbs, budget: Tree, pod: str, *, dry_run: bool) -> None:
        """Write one disruption less into the status of a budget, asking it anew when it has changed meanwhile."""
        served = _preferred(api, *BUDGETS)
        meta = budget["metadata"]
        for _ in range(ATTEMPTS):
            taken = with_disruption(budget, pod, api.env.stamp())
            if dry_run:
                return
            try:
                await api.update(served, meta["namespace"], meta["name"], taken, WriteOptions(caller=_API_SERVER), subresource="status")
            except Conflict:
                budget = api.live(served.kind, meta["namespace"], meta["name"]).obj
            else:
                return
        raise Timeout(f'Timeout: couldn\'t update PodDisruptionBudget "{meta["name"]}" due to conflicts', details={"retryAfterSeconds": 10})

    async def _delete(self, api: Verbs, served: Served, pod: Tree, deletion: DeleteOptions, options: WriteOptions) -> None:
        from kubemini.server.deleting import Deleting

        assert isinstance(api, Deleting), "only a whole server evicts"
        meta = pod["metadata"]
        if deletion.dry_run:
            await api.delete(served, meta["namespace"], meta["name"], deletion)
            return
        # A rehearsal finds violated preconditions before anything is written.
        await api.delete(served, meta["namespace"], meta["name"], replace(deletion, dry_run=True))
        marked = with_condition(pod, "DisruptionTarget", api.env.stamp(), {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"})
        written = await api.update(served, meta["namespace"], meta["name"], served.from_storage(marked), options, subresource="status")
        revision = written.obj["metadata"]["resourceVersion"]
        await api.delete(served, meta["namespace"], meta["name"], replace(deletion, resource_version=revision))


def _preferred(api: Verbs, group: str, plural: str) -> Served:
    kind = api.registry.kind(group, plural)
    assert kind is not None
    return api.registry.preferred(kind)


# ------------------------------------------------------------------------------------------------ decisions


def delete_options(eviction: Tree, options: WriteOptions) -> DeleteOptions:
    """Return the delete options of an Eviction. Raise `ServerError` where it contradicts the query about a dry run."""
    body: Tree = eviction.get("deleteOptions") or {}
    asked = body.get("dryRun") or []
    if asked and options.dry_run and asked != ["All"]:
        raise ServerError(f"Non-matching dry-run options in request and content: [All] and [{' '.join(asked)}]")
    preconditions: Tree = body.get("preconditions") or {}
    return DeleteOptions(
        caller=options.caller,
        grace=body.get("gracePeriodSeconds"),
        propagation=body.get("propagationPolicy") or "",
        orphan=body.get("orphanDependents"),
        uid=preconditions.get("uid") or "",
        resource_version=preconditions.get("resourceVersion") or "",
        dry_run=bool(asked) or options.dry_run,
    )


def judge(pod: Tree, budgets: Iterable[Tree]) -> Verdict:
    """Return what may be done to evict a pod, given the budgets of its namespace. Raise `ServerError` where two of them select it."""
    meta, status = pod["metadata"], pod.get("status") or {}
    if "deletionTimestamp" in meta or status.get("phase") in {"Succeeded", "Failed", "Pending"}:
        return Verdict()
    found = [budget for budget in budgets if _selects(budget, meta.get("labels") or {})]
    if len(found) > 1:
        raise ServerError("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
    if not found:
        return Verdict()
    budget = found[0]
    if not is_ready(pod) and _spares_unready(budget):
        return Verdict(guarded=True, guard=budget["metadata"]["name"])
    return Verdict(budget=budget)


def is_ready(pod: Tree) -> bool:
    """Tell whether the pod's Ready condition is True."""
    conditions: list[Tree] = (pod.get("status") or {}).get("conditions") or []
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _selects(budget: Tree, labels: Tree) -> bool:
    try:
        return from_label_selector((budget.get("spec") or {}).get("selector")).matches(labels)
    except ValueError:
        return False


def _spares_unready(budget: Tree) -> bool:
    """Tell whether a budget lets unready pods go: always by policy, otherwise while the healthy ones suffice."""
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status: Tree = budget.get("status") or {}
    wanted = status.get("desiredHealthy") or 0
    return 0 < wanted <= (status.get("currentHealthy") or 0)


def with_disruption(budget: Tree, pod: str, stamp: str) -> Tree:
    """Return the budget with one disruption less and the pod noted as disrupted. Raise `TooManyRequests` or `Forbidden` where it has none to give."""
    meta, status = budget["metadata"], budget.get("status") or {}
    name, allowed = meta["name"], status.get("disruptionsAllowed") or 0
    if (status.get("observedGeneration") or 0) < meta.get("generation", 0):
        raise too_many(name)
    if allowed < 0:
        raise Forbidden.of("poddisruptionbudget", "policy", name, "pdb disruptions allowed is negative")
    disrupted: Tree = status.get("disruptedPods") or {}
    if len(disrupted) > MAX_DISRUPTED_PODS:
        raise Forbidden.of("poddisruptionbudget", "policy", name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if allowed == 0:
        needs, has = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
        raise _violated(f"The disruption budget {name} needs {needs} healthy pods and has {has} currently", retry_after=0)
    fresh = {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": {**disrupted, pod: stamp}}
    if allowed == 1:
        fresh["conditions"] = _exhausted(status, stamp)
    return {**budget, "status": fresh}


def _exhausted(status: Tree, stamp: str) -> list[Tree]:
    conditions: list[Tree] = status.get("conditions") or []
    before = next((each for each in conditions if each.get("type") == "DisruptionAllowed"), None)
    since = before["lastTransitionTime"] if before is not None and before.get("status") == "False" else stamp
    condition: Tree = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": status.get("observedGeneration") or 0,
        "lastTransitionTime": since,
        "reason": "InsufficientPods",
        "message": "",
    }
    return [condition if each is before else each for each in conditions] if before is not None else [*conditions, condition]


def too_many(budget: str) -> ApiStatus:
    """Return the refusal while a budget's status lags behind, or a race was lost: try again soon."""
    return _violated(f"The disruption budget {budget} is still being processed by the server.", retry_after=10)


def _violated(cause: str, *, retry_after: int) -> TooManyRequests:
    details: Tree = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    return TooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", details=details)
