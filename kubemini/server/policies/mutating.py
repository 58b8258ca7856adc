"""MutatingAdmissionPolicy: changes in CEL that users bind to resources. Mirrors ``apiserver/pkg/admission/plugin/policy/mutating`` (1.36).

A mutation is an apply configuration, merged as server-side apply merges but owned by nobody, or a JSON patch. Policies come in the order of their names; one
that wants to be asked again is, when a later one changed something.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.machinery.apply import Shape
from kubemini.machinery.apply.merging import check, faults_text, merge
from kubemini.machinery.apply.paths import FieldsError
from kubemini.machinery.cel import CelError, Environment, Program
from kubemini.machinery.cel.patches import as_json, misnamed
from kubemini.machinery.errors import ApiStatus, Forbidden, InternalError
from kubemini.machinery.jsonpatch import PatchFailed, TestFailed, operated
from kubemini.server.admission import AdmissionRequest
from kubemini.server.policies.conditions import ConditionFailed, conditions_hold
from kubemini.server.policies.scopes import SCOPE
from kubemini.server.policies.validating import Bound, BoundPolicies, Unsettled, scope_of, with_variables
from kubemini.server.registry import Kind, Served

PATCHES: Final = Environment(SCOPE.variables, patches=True)
"""What the expression of a mutation is evaluated with."""
ShapeOf = Callable[[Kind, str], Shape | None]
"""Returns the shape of a kind in an apiVersion."""


class DeniedByMutation(ApiStatus):
    """Mutations failed whose policies want no write without them."""

    def __init__(self, request: AdmissionRequest, texts: list[str]) -> None:
        kind = request.kind
        base = Forbidden.of(kind.plural, kind.group, request.name, "", causes=[{"message": text} for text in texts])
        super().__init__(texts[0], details=base.details)
        self.reason, self.code = "Invalid", 403


class _Failed(Exception):
    """A mutation cannot be made; its policy's failurePolicy decides."""


class MutatingBindings(BoundPolicies):
    """The mutating policies of one cluster with their bindings."""

    def __init__(self, *tables: Any, shape_of: ShapeOf) -> None:
        super().__init__(*tables)
        self._shape_of = shape_of

    def change(self, request: AdmissionRequest) -> None:
        """Let every policy that is bound to this write change its object. Raise `DeniedByMutation`, `InternalError`."""
        concerned = sorted(self.concerned(request), key=lambda each: each[0].names)
        denials: list[str] = []
        changed_at = [-1] * len(concerned)
        for index, (bound, served) in enumerate(concerned):
            if self._run(bound, served, request, denials):
                changed_at[index] = index
        last = max(changed_at, default=-1)
        for index, (bound, served) in enumerate(concerned):
            if index < last and bound.policy["spec"].get("reinvocationPolicy") == "IfNeeded":
                self._run(bound, served, request, denials)
        if denials:
            raise DeniedByMutation(request, denials)

    def _run(self, bound: Bound, served: Served, request: AdmissionRequest, denials: list[str]) -> bool:
        """Make the mutations of one policy, one after the other; tell whether the object changed."""
        before, spec = request.obj, bound.policy["spec"]
        failures: list[str] = []
        try:
            if not conditions_hold(spec.get("matchConditions") or (), scope_of(request, served)):
                return False
            for params in self.params(bound, request):
                for mutation in spec.get("mutations") or ():
                    try:
                        new = self._mutated(mutation, spec, {**scope_of(request, served), "params": params}, served, request.kind)
                    except (_Failed, CelError) as problem:
                        failures.append(str(problem))
                    else:
                        request.obj = new if new != request.obj else request.obj
        except (ConditionFailed, Unsettled) as problem:
            failures.append(str(problem))
        if spec.get("failurePolicy", "Fail") != "Ignore":
            policy, binding = bound.names
            denials += [f"policy '{policy}' with binding '{binding}' denied request: {text}" for text in failures]
        return request.obj is not before

    def _mutated(self, mutation: Tree, spec: Tree, scope: Mapping[str, Any], served: Served, kind: Kind) -> Tree:
        """Return the object, in the storage version, with one mutation. Raise `_Failed`, `CelError`, `InternalError`."""
        applies = mutation.get("patchType") == "ApplyConfiguration"
        expression: str = (mutation.get("applyConfiguration" if applies else "jsonPatch") or {}).get("expression", "").strip()
        declared = {each["name"]: each["expression"] for each in spec.get("variables") or ()}
        try:
            value = Program.compile(expression, PATCHES).evaluate(with_variables(expression, declared, scope, PATCHES))
        except CelError as problem:
            raise _Failed(f"expression '{expression}' resulted in error: {problem}") from None
        live: Tree = scope["object"]
        changed = self._applied(live, value, served, kind) if applies else _patched(live, value)
        try:
            decoded = served.version.codec.decode(changed, validation="Strict")
        except ApiStatus as problem:
            raise InternalError(f"Internal error occurred: {problem.message}") from None
        return served.to_storage({**decoded.tree, "apiVersion": served.api_version})

    def _applied(self, live: Tree, value: Any, served: Served, kind: Kind) -> Tree:
        if wrong := list(misnamed(value)):
            raise _Failed("type mismatch: " + "\n".join(wrong))
        config = {**as_json(value), "apiVersion": served.api_version, "kind": kind.kind}
        shape = self._shape_of(kind, served.api_version)
        if shape is None:
            raise _Failed("error applying patch: type converter must not be nil")
        if faults := check(config, shape):
            raise _Failed(f"error applying patch: failed to convert patch object to typed object: {faults_text(faults)}")
        if atomics := list(_atomics(config, shape)):
            raise _Failed(f"error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {', '.join(atomics)}")
        try:
            merged: Tree = merge(live, config, shape)
        except FieldsError as problem:
            raise _Failed(f"error applying patch: failed to merge patch: {problem}") from None
        return merged


def _patched(live: Tree, value: Any) -> Tree:
    operations = []
    for each in value:
        fields = each.fields
        if wrong := list(misnamed(fields["value"])) if getattr(fields.get("value"), "type_name", "") == "Object" else []:
            raise _Failed("type mismatch: " + "\n".join(wrong))
        operations.append({key: as_json(fields[key]) for key in ("op", "path", "from", "value") if key in fields})
    try:
        patched: Tree = operated(live, operations)
    except TestFailed:
        return live  # such a patch is not for this object
    except PatchFailed as problem:
        raise _Failed(f"JSON Patch: {problem}") from None
    return patched


def _atomics(value: Any, shape: Shape, path: str = "") -> Iterator[str]:
    """Yield the paths of what a merge would replace as a whole."""
    if isinstance(value, dict) and shape.is_object:
        if shape.atomic_object:
            yield path
        for key, each in value.items():
            below = shape.of_field(key)
            if below is not None:
                yield from _atomics(each, below, f"{path}.{key}")
    elif isinstance(value, list) and shape.is_list:
        if shape.atomic_list:
            yield path
        if shape.items is not None:
            for index, each in enumerate(value):
                yield from _atomics(each, shape.items, f"{path}[{index}]")
