"""How the kinds of apps, batch, autoscaling and policy print."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.human import human_duration
from kubemini.machinery.owners import controller_of
from kubemini.runtime.env import from_stamp
from kubemini.server.kinds.tables.common import (
    AGE,
    CONTAINERS,
    NAME,
    NONE,
    SELECTOR,
    UNKNOWN,
    UNSET,
    age,
    column,
    containers,
    get,
    name,
    pairs,
    selector,
    simple,
    since,
)
from kubemini.server.strategy import Table


def _template(obj: Tree) -> list[str]:
    return containers(get(obj, "spec", "template", "spec", default={}))


def _deployment(obj: Tree, now: float) -> list[Any]:
    status = obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{get(obj, 'spec', 'replicas', default=0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [name(obj), ready, *counts, age(obj, now), *_template(obj), selector(get(obj, "spec", "selector", default=None))]


DEPLOYMENT = Table(
    (NAME, column("Ready"), column("Up-to-date"), column("Available"), AGE, *CONTAINERS, SELECTOR),
    _deployment,
)


def _replica_set(obj: Tree, now: float) -> list[Any]:
    status = obj.get("status") or {}
    counts = [get(obj, "spec", "replicas", default=0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name(obj), *counts, age(obj, now), *_template(obj), selector(get(obj, "spec", "selector", default=None))]


_REPLICAS = (column("Desired", "integer"), column("Current", "integer"), column("Ready", "integer"))
REPLICA_SET = Table((NAME, *_REPLICAS, AGE, *CONTAINERS, SELECTOR), _replica_set)


def _replication_controller(obj: Tree, now: float) -> list[Any]:
    return [*_replica_set(obj, now)[:-1], pairs(get(obj, "spec", "selector", default=None))]


REPLICATION_CONTROLLER = Table((NAME, *_REPLICAS, AGE, *CONTAINERS, SELECTOR), _replication_controller)


def _stateful_set(obj: Tree, now: float) -> list[Any]:
    ready = f"{get(obj, 'status', 'readyReplicas', default=0)}/{get(obj, 'spec', 'replicas', default=0)}"
    return [name(obj), ready, age(obj, now), *_template(obj)]


STATEFUL_SET = Table((NAME, column("Ready"), AGE, *CONTAINERS), _stateful_set)


def _daemon_set(obj: Tree, now: float) -> list[Any]:
    status = obj.get("status") or {}
    keys = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    nodes = pairs(get(obj, "spec", "template", "spec", "nodeSelector", default=None))
    return [
        name(obj),
        *(status.get(key, 0) for key in keys),
        nodes,
        age(obj, now),
        *_template(obj),
        selector(get(obj, "spec", "selector", default=None)),
    ]


DAEMON_SET = Table(
    (NAME, *_REPLICAS, column("Up-to-date", "integer"), column("Available", "integer"), column("Node Selector"), AGE, *CONTAINERS, SELECTOR),
    _daemon_set,
)


# ------------------------------------------------------------------------------------------------------ batch


def job_status(obj: Tree) -> str:
    """Return the word for a Job's state: the first true condition that matters."""
    true = {each.get("type") for each in get(obj, "status", "conditions", default=[]) if each.get("status") == "True"}
    if "Complete" in true:
        return "Complete"
    if "Failed" in true:
        return "Failed"
    if "deletionTimestamp" in obj["metadata"]:
        return "Terminating"
    for condition in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if condition in true:
            return condition
    return "Running"


def _job(obj: Tree, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    completions, parallelism, succeeded = spec.get("completions"), spec.get("parallelism", 0) or 0, status.get("succeeded", 0)
    wanted = completions if completions is not None else f"1 of {parallelism}" if parallelism > 1 else 1
    start, end = status.get("startTime"), status.get("completionTime")
    duration = human_duration((from_stamp(end) if end else now) - from_stamp(start)) if start else ""
    return [name(obj), job_status(obj), f"{succeeded}/{wanted}", duration, age(obj, now), *_template(obj), selector(spec.get("selector"))]


JOB = Table((NAME, column("Status"), column("Completions"), column("Duration"), AGE, *CONTAINERS, SELECTOR), _job)


def _cron_job(obj: Tree, now: float) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    last = since(status["lastScheduleTime"], now) if status.get("lastScheduleTime") else NONE
    template = get(spec, "jobTemplate", "spec", default={})
    return [
        name(obj),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        UNSET if spec.get("suspend") is None else str(spec["suspend"]),
        len(status.get("active") or ()),
        last,
        age(obj, now),
        *containers(get(template, "template", "spec", default={})),
        selector(template.get("selector")),
    ]


CRON_JOB = Table(
    (
        NAME,
        column("Schedule"),
        column("Timezone"),
        column("Suspend", "boolean"),
        column("Active", "integer"),
        column("Last Schedule"),
        AGE,
        *CONTAINERS,
        SELECTOR,
    ),
    _cron_job,
)


# ------------------------------------------------------------------------------------------------------ the rest


def _controller_revision(obj: Tree, now: float) -> list[Any]:
    owner = controller_of(obj)
    shown = NONE
    if owner is not None:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        kind = owner.get("kind", "").lower()
        shown = f"{kind}.{group}/{owner.get('name', '')}" if group else f"{kind}/{owner.get('name', '')}"
    return [name(obj), shown, obj.get("revision", 0), age(obj, now)]


CONTROLLER_REVISION = Table((NAME, column("Controller"), column("Revision"), AGE), _controller_revision)

POD_DISRUPTION_BUDGET = simple(
    column("Min Available"),
    column("Max Unavailable"),
    column("Allowed Disruptions", "integer"),
    cells=lambda obj: [
        str(get(obj, "spec", "minAvailable", default="N/A")),
        str(get(obj, "spec", "maxUnavailable", default="N/A")),
        get(obj, "status", "disruptionsAllowed", default=0),
    ],
)


def _target(metric: Tree, current: Tree) -> str:
    """Return one metric of an HPA as ``current/target``."""
    kind = metric.get("type", "")
    field = {"Resource": "resource", "ContainerResource": "containerResource", "Pods": "pods", "Object": "object", "External": "external"}.get(
        kind, ""
    )
    target, now = get(metric, field, "target", default={}), get(current, field, "current", default={})
    if target.get("averageUtilization") is not None:
        name_of = f"{get(metric, field, 'name')}: " if kind in ("Resource", "ContainerResource") else ""
        used = f"{now['averageUtilization']}%" if now.get("averageUtilization") is not None else UNKNOWN
        return f"{name_of}{used}/{target['averageUtilization']}%"
    if target.get("averageValue") is not None:
        name_of = f"{get(metric, field, 'name')}: " if kind in ("Resource", "ContainerResource") else ""
        suffix = " (avg)" if kind in ("Object", "External") else ""
        return f"{name_of}{now.get('averageValue') or UNKNOWN}/{target['averageValue']}{suffix}"
    return f"{now.get('value') or UNKNOWN}/{target.get('value', UNKNOWN)}"


def _hpa(obj: Tree) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    reference = f"{get(spec, 'scaleTargetRef', 'kind')}/{get(spec, 'scaleTargetRef', 'name')}"
    metrics, current = spec.get("metrics") or [], status.get("currentMetrics") or []
    if metrics:
        shown = [_target(each, current[index] if index < len(current) else {}) for index, each in enumerate(metrics)]
        targets = ", ".join(shown[:2]) + (f" + {len(shown) - 2} more..." if len(shown) > 2 else "")
    elif spec.get("targetCPUUtilizationPercentage") is not None:
        used = status.get("currentCPUUtilizationPercentage")
        targets = f"cpu: {f'{used}%' if used is not None else UNKNOWN}/{spec['targetCPUUtilizationPercentage']}%"
    else:
        targets = NONE
    least = spec.get("minReplicas")
    return [reference, targets, UNSET if least is None else str(least), spec.get("maxReplicas", 0), status.get("currentReplicas", 0)]


HORIZONTAL_POD_AUTOSCALER = simple(column("Reference"), column("Targets"), column("MinPods"), column("MaxPods"), column("Replicas"), cells=_hpa)

SCALE = simple(
    column("Desired", "integer"),
    column("Available", "integer"),
    cells=lambda obj: [get(obj, "spec", "replicas", default=0), get(obj, "status", "replicas", default=0)],
)
