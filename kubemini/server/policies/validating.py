"""ValidatingAdmissionPolicy: rules in CEL that users bind to resources. Mirrors ``apiserver/pkg/admission/plugin/policy/validating`` (1.36).

Compiled policies are kept until a policy or binding changes; a write that no binding concerns costs one comparison.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kubemini.api.trees import Tree
from kubemini.machinery.cel import CelError, Environment, Program
from kubemini.machinery.errors import ApiStatus, Forbidden
from kubemini.machinery.labels import from_label_selector
from kubemini.server.admission import AdmissionRequest
from kubemini.server.policies.conditions import ConditionFailed, conditions_hold
from kubemini.server.policies.matching import Matcher
from kubemini.server.policies.review import request_attributes, shown
from kubemini.server.policies.scopes import SCOPE, permissions
from kubemini.server.registry import Registry, Served
from kubemini.store import Table

_CODES: Final = {"Invalid": 422, "Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_VARIABLE: Final = re.compile(r"\bvariables\.([A-Za-z_]\w*)")


class DeniedByPolicy(ApiStatus):
    """A policy says no, with the reason that its rule names."""

    def __init__(self, request: AdmissionRequest, reason: str, text: str) -> None:
        kind = request.kind
        base = Forbidden.of(kind.plural, kind.group, request.name, text, causes=[{"message": text}])
        super().__init__(base.message, details=base.details)
        self.reason, self.code = reason, _CODES.get(reason, 422)


@dataclass(frozen=True, slots=True)
class Bound:
    """A policy with one binding."""

    policy: Tree
    binding: Tree
    policy_matcher: Matcher
    binding_matcher: Matcher

    @property
    def names(self) -> tuple[str, str]:
        """The names of the policy and of the binding."""
        return self.policy["metadata"]["name"], self.binding["metadata"]["name"]


class BoundPolicies:
    """The policies of one cluster with their bindings."""

    def __init__(self, policies: Table, bindings: Table, registry: Registry) -> None:
        self._policies, self._bindings = policies, bindings
        self._registry = registry
        self._seen = (-1, -1)
        self.bound: list[Bound] = []

    def concerned(self, request: AdmissionRequest) -> Iterator[tuple[Bound, Served]]:
        """Yield the bound policies that a write concerns, with the version in which they see it."""
        seen = (self._policies.log.end, self._bindings.log.end)
        if seen != self._seen:
            self._seen, self.bound = seen, self._read()
        for bound in self.bound:
            served = bound.policy_matcher.served(request)
            if served is not None and bound.binding_matcher.served(request) is not None:
                yield bound, served

    def ask(self, request: AdmissionRequest) -> None:
        """Ask every policy that is bound to this write. Raise `DeniedByPolicy`."""
        for bound, served in self.concerned(request):
            self._ask(bound, request, served)

    def _read(self) -> list[Bound]:
        found = []
        for record in self._bindings.values():
            binding = record.obj
            policy = self._policies.get(binding["spec"].get("policyName", ""))
            if policy is not None:
                own = _matcher(policy.obj["spec"].get("matchConstraints"))
                found.append(Bound(policy.obj, binding, own, _matcher(binding["spec"].get("matchResources"))))
        return found

    def _ask(self, bound: Bound, request: AdmissionRequest, served: Served) -> None:
        spec = bound.policy["spec"]
        variables = scope_of(request, served)
        fails = spec.get("failurePolicy", "Fail") != "Ignore"
        try:
            if not conditions_hold(spec.get("matchConditions") or (), variables):
                return
            for params in self.params(bound, request):
                for reason, text in _broken(spec, {**variables, "params": params}, fails=fails):
                    self._act(bound, request, reason, text)
        except (ConditionFailed, Unsettled) as problem:
            if fails:
                self._act(bound, request, "Invalid", str(problem))

    def params(self, bound: Bound, request: AdmissionRequest) -> Sequence[Tree | None]:
        """Return the parameter objects of a binding. Raise `Unsettled` where it wants one and there is none."""
        wanted: Tree | None = bound.policy["spec"].get("paramKind")
        reference: Tree | None = bound.binding["spec"].get("paramRef")
        if wanted is None or reference is None:
            return [None]
        served = self._registry.by_kind(wanted.get("apiVersion", ""), wanted.get("kind", ""))
        if served is None:
            raise Unsettled(f"failed to find resource referenced by paramKind: '{wanted.get('apiVersion')}, Kind={wanted.get('kind')}'")
        namespace = (reference.get("namespace") or request.namespace) if served.kind.namespaced else ""
        reader = request.ctx.reader
        if reference.get("name"):
            one = reader.get(served.kind.storage, namespace, reference["name"])
            found = [] if one is None else [one]
        else:
            selector = from_label_selector(reference.get("selector"))
            found = [obj for obj in reader.list(served.kind.storage, namespace) if selector.matches_object(obj)]
        if not found and reference.get("parameterNotFoundAction", "Deny") == "Deny":
            raise Unsettled("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction")
        return [served.from_storage(obj) for obj in found]

    def _act(self, bound: Bound, request: AdmissionRequest, reason: str, text: str) -> None:
        policy, binding = bound.names
        actions = bound.binding["spec"].get("validationActions") or ()
        if "Warn" in actions:
            request.warnings.append(f"Validation failed for ValidatingAdmissionPolicy '{policy}' with binding '{binding}': {text}")
        if "Deny" in actions:
            raise DeniedByPolicy(request, reason, f"ValidatingAdmissionPolicy '{policy}' with binding '{binding}' denied request: {text}")


def scope_of(request: AdmissionRequest, served: Served) -> dict[str, Any]:
    """Return what the expressions of a policy without parameters see of a write."""
    attributes = request_attributes(request, served, "")
    return {
        "object": shown(request.obj, served),
        "oldObject": shown(request.old, served),
        "request": attributes,
        "namespaceObject": request.ctx.reader.get("namespaces", "", request.namespace) if request.namespace else None,
        "params": None,
        "variables": {},
        **permissions(request, attributes),
    }


class Unsettled(Exception):
    """A policy cannot be evaluated; its failure policy decides."""


def _matcher(resources: Tree | None) -> Matcher:
    tree = resources or {}
    return Matcher(
        rules=tree.get("resourceRules") or None,
        excluded=tree.get("excludeResourceRules") or (),
        namespaces=tree.get("namespaceSelector"),
        objects=tree.get("objectSelector"),
        exact=tree.get("matchPolicy") == "Exact",
    )


def _broken(spec: Tree, variables: Mapping[str, Any], *, fails: bool) -> Iterator[tuple[str, str]]:
    """Yield reason and text of every rule that does not hold."""
    declared = {each["name"]: each["expression"] for each in spec.get("variables") or ()}
    for rule in spec.get("validations") or ():
        expression: str = rule["expression"]
        try:
            scope = with_variables(expression + rule.get("messageExpression", ""), declared, variables)
            holds = Program.compile(expression, SCOPE).evaluate(scope)
        except CelError as problem:
            if fails:
                yield "Invalid", f"expression '{expression}' resulted in error: {problem}"
            continue
        if holds is not True:
            yield rule.get("reason") or "Invalid", _text(rule, scope)


def _text(rule: Tree, scope: Mapping[str, Any]) -> str:
    if rule.get("messageExpression"):
        try:
            made = Program.compile(rule["messageExpression"], SCOPE).evaluate(scope)
        except CelError:
            made = None
        if isinstance(made, str) and made.strip() and "\n" not in made:
            return made
    return str(rule.get("message") or f"failed expression: {rule['expression'].strip()}")


def with_variables(text: str, declared: Mapping[str, str], scope: Mapping[str, Any], language: Environment = SCOPE) -> dict[str, Any]:
    """Return the scope with those composed variables that a text names, and those that they name in turn. Raise `CelError`."""
    known: dict[str, Any] = {}

    def need(expression: str) -> None:
        for name in dict.fromkeys(_VARIABLE.findall(expression)):
            if name in declared and name not in known:
                need(declared[name])
                known[name] = Program.compile(declared[name], language).evaluate({**scope, "variables": known})

    need(text)
    return {**scope, "variables": known}
