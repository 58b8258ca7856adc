"""Endpoints of Services: EndpointSlices, legacy Endpoints, slices that mirror hand-made Endpoints, and those of the API server itself.

Mirrors kube-controller-manager's endpoint-slice, endpoint and endpoint-slice-mirroring controllers, and the API server's own
reconciler of ``default/kubernetes`` (Kubernetes 1.36).
"""

from __future__ import annotations

from kubemini.controllers.endpoints.apiserver import ApiServerEndpoints
from kubemini.controllers.endpoints.legacy import EndpointsController
from kubemini.controllers.endpoints.mirroring import MirroringController
from kubemini.controllers.endpoints.services import Services
from kubemini.controllers.endpoints.slices import EndpointSliceController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build the four loops."""
    services = Services()
    return [ApiServerEndpoints(), EndpointSliceController(services), EndpointsController(services), MirroringController()]
