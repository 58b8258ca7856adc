"""Endpoints of Services: EndpointSlices, legacy Endpoints, and slices that mirror hand-made Endpoints.

Mirrors kube-controller-manager's endpoint-slice, endpoint and endpoint-slice-mirroring controllers (Kubernetes 1.36). ``default/kubernetes`` has
none, as on a control plane whose API server runs with ``--endpoint-reconciler-type=none``.
"""

from __future__ import annotations

from kubemini.controllers.endpoints.legacy import EndpointsController
from kubemini.controllers.endpoints.mirroring import MirroringController
from kubemini.controllers.endpoints.services import Services
from kubemini.controllers.endpoints.slices import EndpointSliceController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the three loops."""
    services = Services()
    return [EndpointSliceController(services), EndpointsController(services), MirroringController()]
