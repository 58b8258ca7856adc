"""The autoscaler loop: one look at an autoscaler reads its target's Scale and metrics, writes the size that follows, and says why.

Upstream looks at every autoscaler every 15 seconds. Here a look is due so long after something changed that it depends on, and again as long as time alone can change the
outcome (a window that ends, a rate that allows more, metrics of a program): a cluster in which nothing happens costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kubemini.api.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.autoscaling import behavior as pace
from kubemini.controllers.autoscaling.behavior import History
from kubemini.controllers.autoscaling.metrics import INTERNAL, NONE, SPEC, Monitor, action
from kubemini.controllers.autoscaling.proposing import Situation, Unavailable, propose
from kubemini.controllers.autoscaling.replicas import CPU_INITIALIZATION, Tolerance
from kubemini.controllers.autoscaling.sources import Metrics
from kubemini.machinery import quantity
from kubemini.machinery.errors import ApiStatus, BadRequest, NotFound, qualified
from kubemini.machinery.labels import Selector, parse_selector
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import key_of
from kubemini.runtime.selecting import SelectorIndex
from kubemini.runtime.settings import Settings

_TARGETS = (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, REPLICATION_CONTROLLERS)
"""Kinds whose changes bring an autoscaler's next look on; others are noticed by their pods."""


SCALED_TO_ZERO = "ScaledToZero"


class _Stop(Exception):
    """The look ends here; the message is that of the error. `error` is its kind for the metrics."""

    def __init__(self, message: str, error: str = INTERNAL) -> None:
        super().__init__(message)
        self.error = error


@dataclass(slots=True)
class _Look:
    """One look at an autoscaler: what its status will say."""

    autoscaler: Tree
    stamp: str
    conditions: list[Tree] = field(default_factory=list)
    metrics: list[Tree] = field(default_factory=list)
    current: int | None = None
    desired: int | None = None
    scaled: bool = False
    unsettled: bool = False
    """Whether time alone may change the outcome."""
    error: str = NONE
    """What went wrong, for the metrics."""

    def say(self, type_: str, status: str, reason: str, message: str) -> None:
        """Set a condition; the time of transition moves with its status."""
        new = {"type": type_, "status": status, "lastTransitionTime": self.stamp, "reason": reason, "message": message}
        for index, each in enumerate(self.conditions):
            if each["type"] == type_:
                if each["status"] == status:
                    new["lastTransitionTime"] = each["lastTransitionTime"]
                self.conditions[index] = new
                return
        self.conditions.append(new)

    def status(self) -> Tree:
        """Return the status."""
        before = self.autoscaler.get("status") or {}
        found: Tree = {}
        if self.scaled:
            found["lastScaleTime"] = self.stamp
        elif "lastScaleTime" in before:
            found["lastScaleTime"] = before["lastScaleTime"]
        if self.current is None:
            # The Scale could not be read: the numbers stay as they were
            found = {key: value for key, value in before.items() if key != "conditions"}
        else:
            if self.current:
                found["currentReplicas"] = self.current
            found["desiredReplicas"] = before.get("desiredReplicas", 0) if self.desired is None else self.desired
            found["currentMetrics"] = self.metrics or None
        if self.conditions:
            found["conditions"] = self.conditions
        return found


class HorizontalController(Controller):
    """Keys are HorizontalPodAutoscalers."""

    name = "horizontalpodautoscaling"
    measured_as = "horizontalpodautoscaler"
    component = "horizontal-pod-autoscaler"

    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self._metrics = Metrics(settings.metrics)
        self._period = settings.autoscaling_period

    def setup(self, ctx: Context) -> None:
        """Follow autoscalers, pods, and the workloads that most of them scale."""
        self._ctx = ctx
        self._autoscalers = ctx.informer(HORIZONTAL_POD_AUTOSCALERS)
        self._pods = ctx.informer(PODS)
        self._selectors = SelectorIndex()
        self._selected: dict[str, str] = {}
        """Autoscaler → selector of its target, as last read."""
        self._histories: dict[str, History] = {}
        self._resources: dict[tuple[str, str], Resource] = {}
        self._monitor = Monitor(lambda: len(self._autoscalers.objects))
        self.families = self._monitor.all()
        self._tolerances = ctx.gates.enabled("HPAConfigurableTolerance")
        self._to_zero = ctx.gates.enabled("HPAScaleToZero")
        self._autoscalers.add_index("target", _target)
        self._autoscalers.on_change(self._on_autoscaler)
        self._pods.on_change(self._on_pod)
        for resource in _TARGETS:
            ctx.informer(resource).on_change(lambda old, new, kind=resource.kind: self._on_target(kind, old, new))  # type: ignore[misc]

    # ------------------------------------------------------------------ events

    def _on_autoscaler(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        key = key_of(obj)
        if new is None:
            self._selectors.drop(key)
            self._selected.pop(key, None)
            self._histories.pop(key, None)
            self._monitor.desired.pop((obj["metadata"]["namespace"], obj["metadata"]["name"]), None)
        elif old is None or old["spec"] != new["spec"] or old["metadata"].get("annotations") != new["metadata"].get("annotations"):
            self.queue.add_after(key, self._period)

    def _on_pod(self, old: Tree | None, new: Tree | None) -> None:
        pod = new if new is not None else old
        if pod is None or not self._selected:
            return
        for key in self._selectors.matching(pod["metadata"]["namespace"], pod["metadata"].get("labels")):
            self.queue.add_after(key, self._period)

    def _on_target(self, kind: str, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if (
            obj is not None
            and self._autoscalers.objects
            and (old is None or new is None or old["spec"] is not new["spec"] or old.get("status") is not new.get("status"))
        ):
            for each in self._autoscalers.by_index("target", f"{kind}/{obj['metadata']['namespace']}/{obj['metadata']['name']}"):
                self.queue.add_after(key_of(each), self._period)

    # ------------------------------------------------------------------ the look

    async def reconcile(self, key: str) -> float | None:
        """Take one look at an autoscaler."""
        autoscaler = self._autoscalers.get_key(key)
        if autoscaler is None:
            return None
        status = autoscaler.get("status") or {}
        began = self._ctx.env.now()
        look = _Look(autoscaler, self._ctx.env.stamp(), list(status.get("conditions") or ()))
        try:
            await self._look(key, look)
        except _Stop as stop:
            look.error = stop.error
        else:
            if look.desired is not None:
                meta = autoscaler["metadata"]
                self._monitor.desired[meta["namespace"], meta["name"]] = look.desired
        new = look.status()
        if new != status:
            try:
                await self._ctx.client.update_status(HORIZONTAL_POD_AUTOSCALERS, {**autoscaler, "status": new})
            except ApiStatus as refused:
                look.error = INTERNAL if look.error == NONE else look.error
                look.unsettled = not isinstance(refused, NotFound)
        did = action(look.current or 0, look.desired or 0) if look.scaled else NONE
        self._monitor.looked(did, look.error, self._ctx.env.now() - began)
        return self._period if look.unsettled or self._metrics.program is not None else None

    async def _look(self, key: str, look: _Look) -> None:
        spec, env = look.autoscaler["spec"], self._ctx.env
        scale, resource = await self._scale(look)
        look.say("AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale")
        current: int = scale["spec"].get("replicas", 0)
        look.current = current
        history = self._histories.setdefault(key, History([(env.now(), current)]))
        least, most = spec.get("minReplicas", 1), spec["maxReplicas"]
        if current == 0 and (not _wakes(look) if self._to_zero else least != 0):
            look.say("ScalingActive", "False", "ScalingDisabled", "scaling is disabled since the replica count of the target is zero")
            look.desired = 0
            return
        if current > most:
            wanted, why = most, "Current number of replicas above Spec.MaxReplicas"
        elif current < least:
            wanted, why = least, "Current number of replicas below Spec.MinReplicas"
        else:
            wanted, name = await self._wanted(key, look, scale)
            why = f"{name} above target" if wanted > current else "All metrics below target"
            wanted = self._paced(look, history, current, wanted, least, most)
        look.desired = wanted
        if wanted != current:
            look.unsettled = True
            await self._rescale(look, history, scale, resource, wanted, why)

    async def _scale(self, look: _Look) -> tuple[Tree, Resource]:
        """Return the target's Scale."""
        autoscaler = look.autoscaler
        reference, namespace = autoscaler["spec"]["scaleTargetRef"], autoscaler["metadata"]["namespace"]
        version, kind = reference.get("apiVersion", ""), reference["kind"]
        group = version.rpartition("/")[0]
        if (group, kind) not in self._resources:
            self._resources = {(each.group, each.kind): each for each in reversed(self._ctx.client.resources())}
        resource = self._resources.get((group, kind))
        problem, error = f'no matches for kind "{kind}" in group "{group}"', INTERNAL
        if version.count("/") > 1:
            problem, error = f"unexpected GroupVersion string: {version}", SPEC
        elif resource is not None:
            try:
                return await self._ctx.client.scale(resource, reference["name"], namespace), resource
            except ApiStatus as refused:
                problem = refused.message
                if isinstance(refused, NotFound) and not refused.details:
                    problem = (
                        f"the server could not find the requested resource (get {qualified(resource.plural, resource.group)} {reference['name']})"
                    )
        self._ctx.recorder.event(autoscaler, "Warning", "FailedGetScale", problem)
        look.say("AbleToScale", "False", "FailedGetScale", f"the HPA controller was unable to get the target's current scale: {problem}")
        look.unsettled = True
        raise _Stop(problem, error)

    # ------------------------------------------------------------------ metrics

    async def _wanted(self, key: str, look: _Look, scale: Tree) -> tuple[int, str]:
        """Return the largest size that a metric proposes, and the words for that metric."""
        autoscaler, recorder = look.autoscaler, self._ctx.recorder
        selector = self._selector(key, look, scale)
        pods = self._pods.select(selector, autoscaler["metadata"]["namespace"])
        self._refuse_shared(look, selector)
        wanted: int = scale["spec"].get("replicas", 0)
        specs = autoscaler["spec"].get("metrics") or []
        now = self._ctx.env.now()
        if any(each["type"] in ("Resource", "ContainerResource") for each in specs):
            # Pods that started just now may come to count without any further event
            look.unsettled = any(_starts(pod, now) for pod in pods)
        best: tuple[int, str] | None = None
        failures: list[Unavailable] = []
        for metric in specs:
            described = await self._described(metric, autoscaler) if metric["type"] == "Object" else None
            look.unsettled = look.unsettled or metric["type"] == "Object"
            reported = scale["status"].get("replicas", 0)
            situation = Situation(autoscaler, pods, wanted, reported, self._tolerance(autoscaler), now, described)
            try:
                found = propose(metric, situation, self._metrics)
            except Unavailable as problem:
                self._monitor.computed(NONE, problem.error, metric["type"], self._ctx.env.now() - now)
                recorder.event(autoscaler, "Warning", problem.reason, problem.event)
                failures.append(problem)
                look.metrics.append({"type": ""})
                continue
            shown = (autoscaler.get("status") or {}).get("currentReplicas", 0)
            self._monitor.computed(action(shown, found.replicas), NONE, metric["type"], self._ctx.env.now() - now)
            look.metrics.append(found.status)
            if best is None or found.replicas > best[0]:
                best = (found.replicas, found.name)
        if best is None or (failures and best[0] < wanted):
            # Without all metrics no size is taken for too large
            first = failures[0]
            look.say("ScalingActive", "False", first.reason, f"the HPA was unable to compute the replica count: {first.event}")
            text = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {first}"
            recorder.event(autoscaler, "Warning", "FailedComputeMetricsReplicas", text)
            raise _Stop(text)
        if failures:
            look.error = INTERNAL
        look.say("ScalingActive", "True", "ValidMetricFound", f"the HPA was able to successfully calculate a replica count from {best[1]}")
        return best

    def _selector(self, key: str, look: _Look, scale: Tree) -> Selector:
        """Return which pods belong to the target."""
        autoscaler, text = look.autoscaler, scale["status"].get("selector", "")
        if not text:
            self._ctx.recorder.event(autoscaler, "Warning", "SelectorRequired", "selector is required")
            look.say("ScalingActive", "False", "InvalidSelector", "the HPA target's scale is missing a selector")
            look.unsettled = True
            raise _Stop("selector is required")
        try:
            selector = parse_selector(text)
        except BadRequest as problem:
            told = f"couldn't convert selector into a corresponding internal selector object: {problem.message}"
            self._ctx.recorder.event(autoscaler, "Warning", "InvalidSelector", told)
            look.say("ScalingActive", "False", "InvalidSelector", told)
            raise _Stop(told) from problem
        if self._selected.get(key) != text:
            self._selected[key] = text
            self._selectors.put(key, autoscaler["metadata"]["namespace"], selector)
        return selector

    def _refuse_shared(self, look: _Look, selector: Selector) -> None:
        """Stop where another autoscaler's target has the same pods."""
        autoscaler = look.autoscaler
        namespace = autoscaler["metadata"]["namespace"]
        others: dict[str, None] = {}
        if sum(1 for key in self._selected if key.startswith(f"{namespace}/")) > 1:
            for pod in self._pods.select(selector, namespace):
                others |= dict.fromkeys(self._selectors.matching(namespace, pod["metadata"].get("labels")))
        if len(others) > 1:
            text = f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(sorted(others))}]"
            self._ctx.recorder.event(autoscaler, "Warning", "AmbiguousSelector", text)
            look.say("ScalingActive", "False", "AmbiguousSelector", text)
            look.unsettled = True
            raise _Stop(text)

    def _tolerance(self, autoscaler: Tree) -> Tolerance:
        behavior = autoscaler["spec"].get("behavior")
        found = Tolerance()
        if behavior is None or not self._tolerances:
            return found
        down, up = ((behavior.get(name) or {}).get("tolerance") for name in ("scaleDown", "scaleUp"))
        return Tolerance(
            quantity.nano(down) / quantity.NANO if down is not None else found.down,
            quantity.nano(up) / quantity.NANO if up is not None else found.up,
        )

    async def _described(self, metric: Tree, autoscaler: Tree) -> Tree | None:
        """Return the object that a metric describes, for the annotations on it."""
        reference = metric["object"]["describedObject"]
        group, kind = reference.get("apiVersion", "").rpartition("/")[0], reference["kind"]
        resource = self._resources.get((group, kind))
        if resource is None:
            return None
        try:
            return await self._ctx.client.get(resource, reference["name"], autoscaler["metadata"]["namespace"] if resource.namespaced else "")
        except ApiStatus:
            return None

    # ------------------------------------------------------------------ sizes

    def _paced(self, look: _Look, history: History, current: int, wanted: int, least: int, most: int) -> int:
        """Return what of a wish may come true now."""
        rules, now = look.autoscaler["spec"].get("behavior"), self._ctx.env.now()
        history.bridge(now, self._period)
        if rules is None:
            steady = pace.Decision(pace.stabilized(history, wanted, now), "ScaleDownStabilized", pace.HIGHER)
            found = pace.limited(current, steady.replicas, least, most)
        else:
            steady = pace.stabilized_by(history, rules, current, wanted, now)
            found = pace.limited_by(history, rules, current, steady.replicas, least, most, now)
        if steady.replicas != wanted:
            look.say("AbleToScale", "True", steady.reason, steady.message)
        else:
            look.say("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size")
        # Windows end and rates allow more; the limits of the autoscaler itself stay
        look.unsettled = look.unsettled or steady.replicas != wanted or found.reason in ("ScaleUpLimit", "ScaleDownLimit")
        look.say("ScalingLimited", "False" if found.replicas == steady.replicas else "True", found.reason, found.message)
        return found.replicas

    async def _rescale(self, look: _Look, history: History, scale: Tree, resource: Resource, wanted: int, why: str) -> None:
        recorder, autoscaler, current = self._ctx.recorder, look.autoscaler, look.current or 0
        try:
            await self._ctx.client.update(resource, {**scale, "spec": {**scale["spec"], "replicas": wanted}}, subresource="scale")
        except ApiStatus as refused:
            recorder.event(autoscaler, "Warning", "FailedRescale", f"New size: {wanted}; reason: {why}; error: {refused.message}")
            look.say("AbleToScale", "False", "FailedUpdateScale", f"the HPA controller was unable to update the target scale: {refused.message}")
            look.desired = None
            raise _Stop(refused.message) from refused
        look.say("AbleToScale", "True", "SucceededRescale", f"the HPA controller was able to update the target scale to {wanted}")
        recorder.event(autoscaler, "Normal", "SuccessfulRescale", f"New size: {wanted}; reason: {why}")
        if self._to_zero:
            # By this it knows its own work: what somebody else scales to zero stays there
            if current > 0 and wanted == 0 and _sees_without_pods(autoscaler):
                look.say(SCALED_TO_ZERO, "True", "ScaledToZero", "the HPA controller scaled the workload to zero")
            else:
                look.say(SCALED_TO_ZERO, "False", "NotScaledToZero", "the HPA controller did not scale the workload to zero")
        look.scaled = True
        if autoscaler["spec"].get("behavior") is not None:
            history.scaled(self._ctx.env.now(), current, wanted, autoscaler["spec"]["behavior"])


def _target(autoscaler: Tree) -> tuple[str, ...]:
    reference = autoscaler["spec"]["scaleTargetRef"]
    return (f"{reference['kind']}/{autoscaler['metadata']['namespace']}/{reference['name']}",)


def _sees_without_pods(autoscaler: Tree) -> bool:
    """Tell whether a metric of an autoscaler has values although there are no pods."""
    return any(each["type"] in ("Object", "External") for each in autoscaler["spec"].get("metrics") or ())


def _wakes(look: _Look) -> bool:
    """Tell whether a target without pods is scaled up again: the autoscaler took it down itself, and still sees something."""
    asleep = any(each["type"] == SCALED_TO_ZERO and each["status"] == "True" for each in look.conditions)
    return asleep and _sees_without_pods(look.autoscaler)


def _starts(pod: Tree, now: float) -> bool:
    """Tell whether a pod is not Ready and within the time in which its CPU counts only if it is."""
    status = pod.get("status") or {}
    start = status.get("startTime")
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    return start is not None and not ready and from_stamp(start) + CPU_INITIALIZATION > now
