"""Admission policies, their bindings, and the match conditions of webhooks: expressions are compiled with what each of them may name.

Mirrors ``pkg/apis/admissionregistration/validation`` (1.36).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import duplicate, forbidden, invalid, not_supported, required, too_many
from kubemini.server.kinds.core.formats import Errors, one_of, wrong

if TYPE_CHECKING:
    from kubemini.machinery.cel import Environment
    from kubemini.machinery.cel.types import Type

FAILURES: Final = ("Fail", "Ignore")
MATCHES: Final = ("Equivalent", "Exact")
ACTIONS: Final = ("Audit", "Deny", "Warn")
_OPERATIONS: Final = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES: Final = ("*", "Cluster", "Namespaced")
_REASONS: Final = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
REINVOCATIONS: Final = ("IfNeeded", "Never")
_PATCHES: Final = {"ApplyConfiguration": ("applyConfiguration", "Object"), "JSONPatch": ("jsonPatch", "list(JSONPatch)")}
"""Kinds of patches: the field that has the expression, and the type that it must be of."""
_CONDITIONS: Final = 64
_ANNOTATIONS: Final = 20
_ANNOTATION_BYTES: Final = 5 * 1024
_IDENTIFIER: Final = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED: Final = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)


# ------------------------------------------------------------------------------------------------------ what they match


def rule_errors(rule: Tree, path: str) -> Errors:
    """Check which writes a webhook or policy is for."""
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        yield invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, each in enumerate(operations):
        if each not in _OPERATIONS:
            yield not_supported(f"{path}.operations[{index}]", each, _OPERATIONS)
    for key, word in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(key) or []
        if not values:
            yield required(f"{path}.{key}")
        if len(values) > 1 and "*" in values:
            yield invalid(f"{path}.{key}", values, f"if '*' is present, must not specify other {word}")
    resources = rule.get("resources") or []
    if not resources:
        yield required(f"{path}.resources")
    for index, each in enumerate(resources):
        if not each:
            yield required(f"{path}.resources[{index}]")
    if len(resources) > 1 and "*/*" in resources:
        yield invalid(f"{path}.resources", resources, "if '*/*' is present, must not specify other resources")
    yield from one_of(rule.get("scope"), _SCOPES, f"{path}.scope", needed=False)


def _match_resources(tree: Tree, path: str) -> Errors:
    yield from one_of(tree.get("matchPolicy"), MATCHES, f"{path}.matchPolicy", needed=False)
    for key in ("namespaceSelector", "objectSelector"):
        yield from labels.validate_label_selector(tree.get(key), f"{path}.{key}")
    for key in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(tree.get(key) or ()):
            here = f"{path}.{key}[{index}]"
            given: list[str] = rule.get("resourceNames") or []
            for at, name in enumerate(given):
                yield from wrong(names.path_segment, name, f"{here}.resourceNames[{at}]")
                if name in given[:at]:
                    yield duplicate(f"{here}.resourceNames[{at}]", name)
            yield from rule_errors(rule, here)


def conditions(entries: list[Tree], path: str, *, params: bool = False) -> Errors:
    """Check match conditions; `params` tells whether there are parameters to speak of."""
    from kubemini.server.policies.scopes import checked

    if len(entries) > _CONDITIONS:
        yield too_many(path, len(entries), _CONDITIONS)
    seen: set[str] = set()
    for index, each in enumerate(entries):
        here, name, expression = f"{path}[{index}]", each.get("name", ""), each.get("expression", "").strip()
        if expression:
            yield from _compiles(expression, f"{here}.expression", checked(params=params), "bool")
        else:
            yield required(f"{here}.expression")
        if name:
            yield from wrong(names.qualified_name, name, f"{here}.name")
        else:
            yield required(f"{here}.name")
        if name and name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)


# ------------------------------------------------------------------------------------------------------ expressions


def _compiles(expression: str, path: str, scope: Environment, *wanted: str) -> Errors:
    """Refuse an expression that is no CEL, names what it may not, or is of another type than `wanted` (none: of any)."""
    # Imported here: CEL is not needed to start a server.
    from kubemini.machinery.cel import CelCompileError, Program

    try:
        found = str(Program.compile(expression, scope).result)
    except CelCompileError as problem:
        yield invalid(path, expression, f"compilation failed: {problem}")
        return
    shown = "null_type" if found == "null" else found
    if wanted and shown not in wanted:
        one = wanted[0] if len(wanted) == 1 else f"one of [{' '.join(wanted)}]"
        yield invalid(path, expression, f"must evaluate to {one} but got {shown}")


def _variables(entries: Iterable[Tree], path: str, *, params: bool, patches: bool, types: dict[str, Type]) -> Errors:
    """Check composed variables, and put their types into `types`."""
    from kubemini.machinery.cel import CelCompileError, Program
    from kubemini.machinery.cel.types import DYN
    from kubemini.server.policies.scopes import checked

    for index, each in enumerate(entries):
        here, name, expression = f"{path}[{index}]", each.get("name", ""), each.get("expression", "")
        if not name.strip():
            yield required(f"{here}.name", "name is not specified")
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED:
            yield invalid(f"{here}.name", name, "name is not a valid CEL identifier")
        if not expression.strip():
            yield required(f"{here}.expression", "expression is not specified")
            continue
        scope = checked(params=params, variables=types, patches=patches)
        yield from _compiles(expression, f"{here}.expression", scope)
        try:
            types[name] = Program.compile(expression, scope).result
        except CelCompileError:
            types[name] = DYN


# ------------------------------------------------------------------------------------------------------ policies


def policy(part: str) -> Callable[[Tree], Errors]:
    """Return the rule of admission policies; `part` is ``validations`` or ``mutations``."""

    def check(obj: Tree) -> Errors:
        spec: Tree = obj.get("spec") or {}
        yield from one_of(spec.get("failurePolicy"), FAILURES, "spec.failurePolicy")
        params = spec.get("paramKind") is not None
        if params:
            yield from _param_kind(spec["paramKind"], "spec.paramKind")
        constraints = spec.get("matchConstraints")
        if constraints is None:
            yield required("spec.matchConstraints")
        else:
            yield from _match_resources(constraints, "spec.matchConstraints")
            if not constraints.get("resourceRules"):
                yield required("spec.matchConstraints.resourceRules")
        yield from conditions(spec.get("matchConditions") or [], "spec.matchConditions", params=params)
        types: dict[str, Type] = {}
        yield from _variables(spec.get("variables") or (), "spec.variables", params=params, patches=part == "mutations", types=types)
        variables = types if spec.get("variables") else None
        if part == "mutations":
            if not spec.get(part):
                yield required(f"spec.{part}", f"{part} must contain at least one item")
            for index, mutation in enumerate(spec.get(part) or ()):
                yield from _mutation(mutation, f"spec.{part}[{index}]", params=params, variables=variables)
            yield from one_of(spec.get("reinvocationPolicy"), REINVOCATIONS, "spec.reinvocationPolicy")
            return
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            for key in ("validations", "auditAnnotations"):
                yield required(f"spec.{key}", "validations or auditAnnotations must contain at least one item")
            return
        yield from _validations(spec.get("validations") or (), params=params, variables=variables)
        yield from _annotations(obj["metadata"].get("name", ""), spec.get("auditAnnotations") or [], params=params, variables=variables)

    return check


def _mutation(mutation: Tree, path: str, *, params: bool, variables: dict[str, Type] | None) -> Errors:
    from kubemini.server.policies.scopes import checked

    kind = mutation.get("patchType", "")
    if not kind:
        yield required(f"{path}.patchType")
        return
    if kind not in _PATCHES:
        yield not_supported(f"{path}.patchType", kind, tuple(_PATCHES))
        return
    for each, (field, wanted) in _PATCHES.items():
        given = mutation.get(field)
        if each != kind:
            if given is not None:
                yield invalid(f"{path}.{field}", f"{{{field}}}", f"must not be specified when patchType is {kind}")
        elif given is None:
            yield required(f"{path}.{field}", f"must be specified when patchType is {kind}")
        elif not (expression := given.get("expression", "").strip()):
            yield required(f"{path}.{field}.expression", "expression is not specified")
        else:
            yield from _compiles(expression, f"{path}.{field}.expression", checked(params=params, variables=variables, patches=True), wanted)


def _param_kind(kind: Tree, path: str) -> Errors:
    version: str = kind.get("apiVersion", "")
    if not version:
        yield required(f"{path}.apiVersion")
    elif version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    else:
        group, _, name = ("" if version == "/" else version).rpartition("/")
        if group:
            yield from wrong(names.dns1123_subdomain, group, f"{path}.apiVersion")
        if name:
            yield from wrong(names.dns1035_label, name, f"{path}.apiVersion")
        else:
            yield invalid(f"{path}.apiVersion", version, "version must be specified")
    name = kind.get("kind", "")
    if not name:
        yield required(f"{path}.kind")
    elif problem := names.dns1035_label(name.lower()):
        yield invalid(f"{path}.kind", name, f"may have mixed case, but should otherwise match: {','.join(names.faults(problem))}")


def _validations(entries: Iterable[Tree], *, params: bool, variables: dict[str, Type] | None) -> Errors:
    from kubemini.server.policies.scopes import checked

    for index, each in enumerate(entries):
        here = f"spec.validations[{index}]"
        if not each.get("expression", "").strip():
            yield required(f"{here}.expression", "expression is not specified")
        else:
            yield from _compiles(each["expression"], f"{here}.expression", checked(params=params, variables=variables), "bool")
        text = each.get("messageExpression", "")
        if text and not text.strip():
            yield invalid(f"{here}.messageExpression", text, "must be non-empty if specified")
        elif text:
            scope = checked(params=params, authorizer=False, variables=variables)
            yield from _compiles(text, f"{here}.messageExpression", scope, "string")
        message = each.get("message", "")
        if message and not message.strip():
            yield invalid(f"{here}.message", message, "message must be non-empty if specified")
        elif re.search(r"[\n\r]", message.strip()):
            yield invalid(f"{here}.message", message, "message must not contain line breaks")
        if each.get("reason") not in (None, *_REASONS):
            yield not_supported(f"{here}.reason", each["reason"], _REASONS)


def _annotations(policy_name: str, entries: list[Tree], *, params: bool, variables: dict[str, Type] | None) -> Errors:
    from kubemini.server.policies.scopes import checked

    if len(entries) > _ANNOTATIONS:
        yield invalid("spec.auditAnnotations", entries, f"must not have more than {_ANNOTATIONS} auditAnnotations")
    seen: set[str] = set()
    for index, each in enumerate(entries):
        here, key, expression = f"spec.auditAnnotations[{index}]", each.get("key", ""), each.get("valueExpression", "").strip()
        if policy_name:
            yield from wrong(names.qualified_name, f"{policy_name}/{key}", f"{here}.key")
        else:
            yield invalid(f"{here}.key", key, "requires metadata.name be non-empty")
        if not expression:
            yield required(f"{here}.valueExpression", "valueExpression is not specified")
        elif len(expression) > _ANNOTATION_BYTES:
            yield required(f"{here}.valueExpression", f"must not exceed {_ANNOTATION_BYTES} bytes in length")
        else:
            yield from _compiles(expression, f"{here}.valueExpression", checked(params=params, variables=variables), "string", "null_type")
        if key in seen:
            yield duplicate(f"{here}.key", key)
        seen.add(key)


# ------------------------------------------------------------------------------------------------------ bindings


def policy_binding(obj: Tree) -> Errors:
    """Check a binding of either kind of policy."""
    spec: Tree = obj.get("spec") or {}
    if not spec.get("policyName"):
        yield required("spec.policyName")
    else:
        yield from wrong(names.dns1123_subdomain, spec["policyName"], "spec.policyName")
    if spec.get("paramRef") is not None:
        yield from _param_ref(spec["paramRef"], "spec.paramRef")
    if spec.get("matchResources") is not None:
        yield from _match_resources(spec["matchResources"], "spec.matchResouces")  # spelled so upstream
    if obj.get("kind") == "ValidatingAdmissionPolicyBinding":
        yield from _actions(spec.get("validationActions") or [], "spec.validationActions")


def _param_ref(reference: Tree, path: str) -> Errors:
    name, selector = reference.get("name", ""), reference.get("selector")
    if name:
        yield from wrong(names.path_segment, name, f"{path}.name")
        if selector is not None:
            yield forbidden(f"{path}.name", "name and selector are mutually exclusive")
    if selector is not None:
        yield from labels.validate_label_selector(selector, f"{path}.selector")
        if name:
            yield forbidden(f"{path}.selector", "name and selector are mutually exclusive")
    if not name and selector is None:
        yield required(path, "one of name or selector must be specified")
    yield from one_of(reference.get("parameterNotFoundAction"), ("Deny", "Allow"), f"{path}.parameterNotFoundAction")


def _actions(actions: list[str], path: str) -> Errors:
    for index, each in enumerate(actions):
        if each not in ACTIONS:
            yield not_supported(f"{path}[{index}]", each, ACTIONS)
        if each in actions[:index]:
            yield duplicate(f"{path}[{index}]", each)
    if "Deny" in actions and "Warn" in actions:
        yield invalid(
            path,
            actions,
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        )
    if not actions:
        yield required(path, "at least one validation action is required")
