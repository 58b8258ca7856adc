"""The admission plugins of MutatingAdmissionPolicy and ValidatingAdmissionPolicy: nothing but a comparison until somebody binds a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kubemini.api.trees import Tree
from kubemini.server.admission import Admission, AdmissionRequest
from kubemini.server.registry import Registry
from kubemini.store import Store

if TYPE_CHECKING:
    from kubemini.server.policies.mutating import MutatingBindings, ShapeOf
    from kubemini.server.policies.validating import BoundPolicies

POLICIES: Final = "validatingadmissionpolicies.admissionregistration.k8s.io"
BINDINGS: Final = "validatingadmissionpolicybindings.admissionregistration.k8s.io"
MUTATING: Final = "mutatingadmissionpolicies.admissionregistration.k8s.io"
MUTATING_BINDINGS: Final = "mutatingadmissionpolicybindings.admissionregistration.k8s.io"


class MutatingPolicies(Admission):
    """The mutating policies of one cluster as one plugin; `shape_of` returns how the objects of a kind are merged."""

    name = "MutatingAdmissionPolicy"
    subresources = ("*",)

    def __init__(self, store: Store, registry: Registry, shape_of: ShapeOf) -> None:
        self._policies, self._bindings = store.table(MUTATING), store.table(MUTATING_BINDINGS)
        self._registry = registry
        self._shape_of = shape_of
        self._bound: MutatingBindings | None = None

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Let every policy that is bound to this write change it. Raise what one denies with."""
        if not self._bindings.records or request.obj is None:
            return None
        if self._bound is None:
            # Imported here: CEL is not needed to start a server
            from kubemini.server.policies.mutating import MutatingBindings

            self._bound = MutatingBindings(self._policies, self._bindings, self._registry, shape_of=self._shape_of)
        before = request.obj
        self._bound.change(request)
        changed, request.obj = request.obj, before
        return None if changed is before else changed


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
        if not self._bindings.records:
            return
        if self._bound is None:
            # Imported here: CEL is not needed to start a server
            from kubemini.server.policies.validating import BoundPolicies

            self._bound = BoundPolicies(self._policies, self._bindings, self._registry)
        self._bound.ask(request)
