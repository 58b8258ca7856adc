"""The admission plugin of ValidatingAdmissionPolicy: nothing but a comparison until somebody binds a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kubemini.server.admission import Admission, AdmissionRequest
from kubemini.server.registry import Registry
from kubemini.store import Store

if TYPE_CHECKING:
    from kubemini.server.policies.validating import BoundPolicies

POLICIES: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS: Final = "validatingadmissionpolicybindings.admissionregistration.k8s.io"


class ValidatingPolicies(Admission):
    """The policies of one cluster as one plugin."""

    name = "ValidatingAdmissionPolicy"
    operations = ("CREATE", "UPDATE", "DELETE", "CONNECT")
    subresources = ("*",)

    def __init__(self, store: Store, registry: Registry) -> None:
        self._policies, self._bindings = store.table(POLICIES), store.table(BINDINGS)
        self._registry = registry
        self._bound: BoundPolicies | None = None

    def validate(self, request: AdmissionRequest) -> None:
        """Ask every policy that is bound to this write. Raise what a policy denies with."""
        if not len(self._bindings):
            return
        if self._bound is None:
            # Imported here: CEL is not needed to start a server
            from kubemini.server.policies.validating import BoundPolicies

            self._bound = BoundPolicies(self._policies, self._bindings, self._registry)
        self._bound.ask(request)
