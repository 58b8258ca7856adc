"""Names of ProvisioningRequests, autoscaling.x-k8s.io."""

from __future__ import annotations

from typing import Final

CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
"""Class: room is looked for in the cluster as it is, and set aside for some time."""
BEST_EFFORT_ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
"""Class: nodes for the whole request are added at once, or none."""
QUEUED_PROVISIONING: Final = "queued-provisioning.gke.io"
"""Class of GKE's Dynamic Workload Scheduler: the request waits until nodes for all of it can be had."""
CONSUME: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
"""Annotation on pods: the request whose room they take."""
CLASS_NAME: Final = "autoscaling.x-k8s.io/provisioning-class-name"
"""Annotation on pods: the class of that request."""

ACCEPTED: Final = "Accepted"
"""Condition: the autoscaler looks after it; also its reason."""
PROVISIONED: Final = "Provisioned"
"""Condition: there is room for all of it."""
FAILED: Final = "Failed"
"""Condition: there will be no room."""
BOOKING_EXPIRED: Final = "BookingExpired"
"""Condition: the room is set aside no longer."""
CAPACITY_REVOKED: Final = "CapacityRevoked"
"""Condition: the room has been taken away, pods or no pods."""

CAPACITY_FOUND: Final = "CapacityIsFound"
"""Reason of Provisioned=True: there was room."""
CAPACITY_PROVISIONED: Final = "CapacityIsProvisioned"
"""Reason of Provisioned=True: room was made."""
CAPACITY_NOT_FOUND: Final = "CapacityIsNotFound"
"""Reason of Failed=True and of Provisioned=False."""
RESERVATION_EXPIRED: Final = "CapacityReservationTimeExpired"
"""Reason of BookingExpired=True."""
