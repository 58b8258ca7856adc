"""Storage: claims bound to volumes, volumes made on demand by a simulated provisioner, and the protection of what is in use.

Mirrors kube-controller-manager's persistentvolume-binder, pvc-protection, pv-protection and ephemeral-volume controllers, and an external CSI
provisioner and resizer (Kubernetes 1.36).
"""

from __future__ import annotations

from kubemini.controllers.volumes.binder import VolumeBinderController
from kubemini.controllers.volumes.ephemeral import EphemeralVolumeController
from kubemini.controllers.volumes.protection import ClaimProtection, VolumeProtection
from kubemini.controllers.volumes.provisioner import SimulatedProvisioner
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build all loops."""
    return [VolumeBinderController(), SimulatedProvisioner(), ClaimProtection(), VolumeProtection(), EphemeralVolumeController()]
