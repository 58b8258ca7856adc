"""What an autoscaler writes into a ProvisioningRequest, and when. Pure: the conditions that stand are all that it knows of the past.

Words are those of the Cluster Autoscaler's ``provisioningrequest`` (main of August 2026).
"""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.api.wellknown import provisioning as names
from kubemini.controllers.cluster_autoscaler import script as scripts
from kubemini.controllers.cluster_autoscaler.script import Script
from kubemini.runtime.env import from_stamp

CLASSES = (names.CHECK_CAPACITY, names.BEST_EFFORT_ATOMIC, names.QUEUED_PROVISIONING)
"""What is answered; requests of other classes are for somebody else."""
NO_RETRY = "noRetry"
"""Parameter: "false" = look for room again and again, instead of failing."""
BOOKED_SECONDS = 600.0
"""How long room is set aside where nothing else is said."""
FAILED_TO_CREATE_PODS = "FailedToCreatePods"
"""Reason of Failed=True: a PodTemplate is missing."""
LOOK_SECONDS = 10.0
"""Pause between two looks for room."""
GIVEN_UP_SECONDS = 7 * 86400.0
"""Age at which a request fails for which no room was found."""
ACCEPTED_MESSAGE = "ProvisioningRequest is accepted by ClusterAutoscaler"
FOUND_MESSAGE = "Capacity is found in the cluster"
NOT_FOUND_MESSAGE = "CA could not find requested capacity"
LATER_MESSAGE = "Capacity is not found, CA will try to find it later."
EXPIRED_MESSAGE = "Capacity reservation time is expired"
GIVEN_UP_MESSAGE = "ProvisioningRequest is expired"
REVOKED_MESSAGE = "Capacity has been revoked"

Condition = tuple[str, bool, str, str]
"""Type, status, reason, message."""


def over(request: Tree) -> bool:
    """Tell whether nothing will be said of a request any more."""
    ends = (names.FAILED, names.BOOKING_EXPIRED, names.CAPACITY_REVOKED)
    return any(each["type"] in ends and each["status"] == "True" for each in (request.get("status") or {}).get("conditions") or ())


@dataclass(frozen=True, slots=True)
class Step:
    """Conditions to write now, and in how many seconds to look again (None = never)."""

    conditions: tuple[Condition, ...] = ()
    again: float | None = None


def next_step(request: Tree, script: Script, latency: float, now: float, room: bool | None = None) -> Step | None:
    """Return what is to be done about a request of one of our classes; None where it depends on whether there is `room` and nobody has looked."""
    known = {each["type"]: each for each in (request.get("status") or {}).get("conditions") or ()}

    def true(type_: str) -> Tree | None:
        found = known.get(type_)
        return found if found is not None and found["status"] == "True" else None

    if over(request):
        return Step()
    provisioned = true(names.PROVISIONED)
    if provisioned is not None:
        return _afterwards(request, script, now - from_stamp(provisioned["lastTransitionTime"]))
    age = now - from_stamp(request["metadata"]["creationTimestamp"])
    if age > GIVEN_UP_SECONDS:
        return Step(((names.FAILED, True, "Expired", GIVEN_UP_MESSAGE),))
    accepted = true(names.ACCEPTED)
    if accepted is None:
        return Step(((names.ACCEPTED, True, names.ACCEPTED, ACCEPTED_MESSAGE),), script.after if script.after is not None else latency)
    left = from_stamp(accepted["lastTransitionTime"]) + (script.after if script.after is not None else latency) - now
    if script.outcome == scripts.PENDING:
        return Step(again=GIVEN_UP_SECONDS - age + 1.0)
    if left > 0:
        return Step(again=left)
    if script.outcome == scripts.FAILED:
        return Step(((names.FAILED, True, names.CAPACITY_NOT_FOUND, NOT_FOUND_MESSAGE),))
    if not script.outcome and room is None:
        return None
    if script.outcome or room:
        made = request["spec"]["provisioningClassName"] != names.CHECK_CAPACITY
        reason = names.CAPACITY_PROVISIONED if made else names.CAPACITY_FOUND
        then = _afterwards(request, script, 0.0)
        return Step(((names.PROVISIONED, True, reason, FOUND_MESSAGE), *then.conditions), then.again)
    if (request["spec"].get("parameters") or {}).get(NO_RETRY) == "false":
        said = (names.PROVISIONED, False, names.CAPACITY_NOT_FOUND, LATER_MESSAGE)
        return Step(() if names.PROVISIONED in known else (said,), LOOK_SECONDS)
    return Step(((names.FAILED, True, names.CAPACITY_NOT_FOUND, NOT_FOUND_MESSAGE),))


def _afterwards(request: Tree, script: Script, since: float) -> Step:
    """Return what becomes of room that was given so many seconds ago."""
    revoked = script.outcome == scripts.REVOKED
    if revoked or script.outcome == scripts.EXPIRED:
        lasts = script.lasts or 0.0
    elif script.lasts is not None:
        lasts = script.lasts
    elif request["spec"]["provisioningClassName"] == names.QUEUED_PROVISIONING:
        return Step()
    else:
        lasts = BOOKED_SECONDS
    if since < lasts:
        return Step(again=lasts - since)
    if revoked:
        return Step(((names.CAPACITY_REVOKED, True, names.CAPACITY_REVOKED, REVOKED_MESSAGE),))
    return Step(((names.BOOKING_EXPIRED, True, names.RESERVATION_EXPIRED, EXPIRED_MESSAGE),))
