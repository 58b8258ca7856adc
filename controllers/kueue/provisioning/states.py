"""What a ProvisioningRequest's answer means for the admission check of its Workload. Pure: trees in, the next state of the check out."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.api.wellknown import provisioning
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.provisioning.naming import attempt_of, template_name
from kubemini.controllers.kueue.reservation import PENDING, READY, REJECTED, RETRY
from kubemini.controllers.kueue.workloads import pod_sets_of

INACTIVE = "the check is not active"
NOT_NEEDED = "the provisioning request is not needed"


def inactive(check: Tree) -> Tree:
    """Return the state of a check whose configuration is missing."""
    return _changed(check, state=PENDING, message=INACTIVE)


def not_needed(check: Tree) -> Tree:
    """Return the state of a check of a Workload for which nothing is to be asked."""
    if check["state"] == READY:
        return check
    return _changed(check, state=READY, message=NOT_NEEDED, podSetUpdates=None)


def answered(check: Tree, workload: Tree, request: Tree, config: Tree) -> Tree:
    """Return the state of a check by the answer to its newest request. When it changed is left alone, as upstream leaves it: back-off counts from when the check became Pending."""
    failed, revoked, expired = (_true(request, type_) for type_ in (provisioning.FAILED, provisioning.CAPACITY_REVOKED, provisioning.BOOKING_EXPIRED))
    if failed is not None:
        return _again(check, workload, request, config, failed["message"], "Retrying after failure")
    if revoked is not None:
        if not conditions.active(workload) or conditions.finished(workload):
            return check
        return _changed(check, state=REJECTED, message=revoked["message"])
    if expired is not None:
        if conditions.admitted(workload):
            return check
        return _again(check, workload, request, config, expired["message"], "Retrying after booking expired")
    provisioned = conditions.find(request, provisioning.PROVISIONED)
    if provisioned is not None and provisioned["status"] == "True":
        if check["state"] == READY:
            return check
        return _changed(check, state=READY, message=provisioned["message"], podSetUpdates=updates(workload, request, config))
    if _true(request, provisioning.ACCEPTED) is not None:
        return check if provisioned is None else _changed(check, state=PENDING, message=provisioned["message"])
    return _changed(check, state=PENDING, message="")


def _true(request: Tree, type_: str) -> Tree | None:
    found = conditions.find(request, type_)
    return found if found is not None and found["status"] == "True" else None


def _again(check: Tree, workload: Tree, request: Tree, config: Tree, message: str, retrying: str) -> Tree:
    """Ask for another try, once for each request, or give up."""
    strategy = config["spec"].get("retryStrategy") or {}
    attempt = attempt_of(request["metadata"]["name"], workload["metadata"]["name"], check["name"])
    if attempt > strategy.get("backoffLimitCount", 3):
        return _changed(check, state=REJECTED, message=message)
    told = _changed(check, message=f"{retrying}: {message}")
    tries = check.get("retryCount", 0)
    if attempt <= tries:
        return told
    delay = back_off(tries + 1, strategy.get("backoffBaseSeconds", 60), strategy.get("backoffMaxSeconds", 1800))
    return _changed(told, state=RETRY, requeueAfterSeconds=delay)


def back_off(count: int, base: int, most: int) -> int:
    """Return how many seconds to wait before the n-th new try (from 1): doubled each time up to `most` (0 = without end). The first one is never cut.

    >>> [back_off(n, 60, 200) for n in (1, 2, 3, 9)], back_off(1, 60, 10)
    ([60, 120, 200, 200], 60)
    """
    delay = base
    for _ in range(min(count - 1, 40)):
        delay *= 2
        if most and delay > most:
            return most
    return min(delay, 2**31 - 1)


def updates(workload: Tree, request: Tree, config: Tree) -> list[Tree]:
    """Return what pods get that take the room of a request: annotations that say so, and node selectors from what the class told."""
    meta, spec = request["metadata"], request["spec"]
    named = {template_name(meta["name"], each["name"]): each["name"] for each in pod_sets_of(workload)}
    details = (request.get("status") or {}).get("provisioningClassDetails") or {}
    selectors: Sequence[Tree] = (config["spec"].get("podSetUpdates") or {}).get("nodeSelector") or ()
    chosen = {
        each["key"]: details[each["valueFromProvisioningClassDetail"]] for each in selectors if each["valueFromProvisioningClassDetail"] in details
    }
    marks = {provisioning.CONSUME: meta["name"], provisioning.CLASS_NAME: spec["provisioningClassName"]}
    return [
        {"name": named[each["podTemplateRef"]["name"]], "annotations": marks, **({"nodeSelector": chosen} if chosen else {})}
        for each in spec["podSets"]
        if each["podTemplateRef"]["name"] in named
    ]


def parameters(workload: Tree, config: Tree) -> dict[str, str]:
    """Return the parameters of a request: those of the configuration, and the job's own over them."""
    prefix = names.PROVISIONING_PARAMETER_PREFIX
    own = {key.removeprefix(prefix): value for key, value in (workload["metadata"].get("annotations") or {}).items() if key.startswith(prefix)}
    return {**(config["spec"].get("parameters") or {}), **own}


def follows(request: Tree, config: Tree) -> bool:
    """Tell whether a request asks for what its configuration says now."""
    spec = request["spec"]
    asked = spec.get("parameters") or {}
    return spec["provisioningClassName"] == config["spec"]["provisioningClassName"] and all(
        asked.get(key) == value for key, value in (config["spec"].get("parameters") or {}).items()
    )


def _changed(check: Tree, **fields: object) -> Tree:
    """Return a check with fields set (None removes one), itself where nothing changes."""
    if all(check.get(key) == value for key, value in fields.items()):
        return check
    new = {**check, **fields}
    return {key: value for key, value in new.items() if value is not None}
