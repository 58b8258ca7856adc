"""Known defects of the autoscaler, made again. Each replaces one function or method for the time of a search."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.controllers.autoscaling import behavior
from kubemini.controllers.autoscaling.behavior import Decision, History
from kubemini.controllers.autoscaling.controller import HorizontalController
from kubemini.controllers.autoscaling.replicas import Tolerance
from tests.quality import autoscaled
from tests.quality.searching import Mutant, Scenario, Swap

MUTANTS: list[Mutant] = []


def mutant(name: str, source: str, defect: str, replaced: str, scenario: Scenario[Any], *swaps: Swap) -> None:
    """Add one to the table."""
    MUTANTS.append(Mutant(name, source, defect, replaced, scenario, swaps))


mutant(
    "tolerance-ignored",
    "autoscaling/v2",
    "sizes follow every small change",
    "Tolerance.holds never is so",
    autoscaled.AUTOSCALED,
    Swap(Tolerance, "holds", lambda self, ratio: False),
)


def _at_once(history: History, wanted: int, now: float) -> int:
    return wanted


mutant(
    "shrinks-at-once",
    "autoscaling/v2",
    "without a behavior a size shrinks with the first lower value",
    "behavior.stabilized forgets what was recommended",
    autoscaled.AUTOSCALED,
    Swap(behavior, "stabilized", _at_once),
)


def _without_windows(history: History, rules: Tree, current: int, wanted: int, now: float) -> Decision:
    return Decision(wanted, "ReadyForNewScale", "")


mutant(
    "windows-ignored",
    "KEP-853",
    "stabilization windows mean nothing",
    "behavior.stabilized_by returns what is recommended",
    autoscaled.AUTOSCALED,
    Swap(behavior, "stabilized_by", _without_windows),
)


def _one_window(history: History, rules: Tree, current: int, wanted: int, now: float) -> Decision:
    return _STABILIZED_BY(history, {**rules, "scaleUp": {**rules["scaleUp"], "stabilizationWindowSeconds": 0}}, current, wanted, now)


_STABILIZED_BY = behavior.stabilized_by

mutant(
    "grows-at-once",
    "KEP-853",
    "the window for growing means nothing",
    "behavior.stabilized_by takes it for 0",
    autoscaled.STEADY,
    Swap(behavior, "stabilized_by", _one_window),
)
mutant(
    "rates-forgotten",
    "KEP-853",
    "what a policy allows in a period is allowed again at each look",
    "History.scaled notes nothing",
    autoscaled.HURRIED,
    Swap(History, "scaled", lambda self, now, before, after, rules: None),
)


def _most(select: str) -> Any:
    def turned(history: History, rules: Tree, current: int, now: float) -> int:
        return _UP_LIMIT(history, {**rules, "selectPolicy": select}, current, now)

    return turned


_UP_LIMIT, _DOWN_LIMIT = behavior._up_limit, behavior._down_limit

mutant(
    "strictest-policy-ignored",
    "KEP-853",
    "with selectPolicy Min the most generous policy decides",
    "behavior._up_limit always takes the most",
    autoscaled.HURRIED,
    Swap(behavior, "_up_limit", _most("Max")),
)


def _never_disabled(history: History, rules: Tree, current: int, now: float) -> int:
    return 0 if rules.get("selectPolicy") == "Disabled" else _DOWN_LIMIT(history, rules, current, now)


mutant(
    "shrinks-though-disabled",
    "KEP-853",
    "a size shrinks though that is disabled",
    "behavior._down_limit knows no Disabled",
    autoscaled.HURRIED,
    Swap(behavior, "_down_limit", _never_disabled),
)


def _unlimited(history: History, rules: Tree, current: int, wanted: int, least: int, most: int, now: float) -> Decision:
    return _LIMITED_BY(history, rules, current, wanted, 0, 1000, now)


_LIMITED_BY = behavior.limited_by

mutant(
    "limits-ignored",
    "autoscaling/v2",
    "with a behavior sizes leave minReplicas and maxReplicas behind",
    "behavior.limited_by knows neither",
    autoscaled.HURRIED,
    Swap(behavior, "limited_by", _unlimited),
)


async def _rescale_size(self: HorizontalController, look: Any, history: History, scale: Tree, resource: Any, wanted: int, why: str) -> None:
    if resource.kind == "LeaderWorkerSet":
        meta = scale["metadata"]
        body = {"spec": {"leaderWorkerTemplate": {"size": wanted}}}
        await self._ctx.client.patch(resource, meta["name"], body, namespace=meta["namespace"])
    await _RESCALE(self, look, history, scale, resource, wanted, why)


_RESCALE = HorizontalController._rescale

mutant(
    "groups-grow-inside",
    "LWS scale subresource",
    "an autoscaler changes the size of groups",
    "HorizontalController._rescale writes size as well",
    autoscaled.AUTOSCALED,
    Swap(HorizontalController, "_rescale", _rescale_size),
)


async def _all_pods(self: HorizontalController, key: str, look: Any, scale: Tree) -> Any:
    selector = scale["status"].get("selector", "").partition(",leaderworkerset.sigs.k8s.io/worker-index")[0]
    return await _WANTED(self, key, look, {**scale, "status": {**scale["status"], "selector": selector}})


_WANTED = HorizontalController._wanted

mutant(
    "workers-counted-as-replicas",
    "LWS hpaPodSelector",
    "the pods of whole groups are taken for replicas",
    "HorizontalController._wanted selects workers too",
    autoscaled.AUTOSCALED_BY_PODS,
    Swap(HorizontalController, "_wanted", _all_pods),
)
