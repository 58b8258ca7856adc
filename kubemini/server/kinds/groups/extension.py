"""admissionregistration.k8s.io, apiregistration.k8s.io and flowcontrol: what extends and guards the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import duplicate, forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import Errors, one_of, port_number, wrong

_OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
_SCOPES = ("*", "Cluster", "Namespaced")
_FAILURES = ("Fail", "Ignore")
_MATCHES = ("Equivalent", "Exact")
_REVIEWS = ("v1", "v1beta1")


def webhook_configuration(obj: Tree) -> Errors:
    """Check a MutatingWebhookConfiguration or a ValidatingWebhookConfiguration."""
    seen: set[str] = set()
    for index, hook in enumerate(obj.get("webhooks") or ()):
        here, name = f"webhooks[{index}]", hook.get("name", "")
        yield from names.fully_qualified_name(f"{here}.name", name)
        yield from labels.validate_label_selector(hook.get("namespaceSelector"), f"{here}.namespaceSelector")
        yield from labels.validate_label_selector(hook.get("objectSelector"), f"{here}.objectSelector")
        for at, rule in enumerate(hook.get("rules") or ()):
            yield from _rule(rule, f"{here}.rules[{at}]")
        yield from one_of(hook.get("failurePolicy"), _FAILURES, f"{here}.failurePolicy", needed=False)
        yield from one_of(hook.get("matchPolicy"), _MATCHES, f"{here}.matchPolicy", needed=False)
        effects = hook.get("sideEffects")
        if effects is None:
            yield required(f"{here}.sideEffects", "must specify one of None, NoneOnDryRun")
        elif effects not in ("None", "NoneOnDryRun"):
            yield not_supported(f"{here}.sideEffects", effects, ("None", "NoneOnDryRun"))
        seconds = hook.get("timeoutSeconds")
        if seconds is not None and not 1 <= seconds <= 30:
            yield invalid(f"{here}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
        yield from _client(hook.get("clientConfig") or {}, f"{here}.clientConfig")
        yield from _reviews(hook.get("admissionReviewVersions") or [], f"{here}.admissionReviewVersions")
        yield from one_of(hook.get("reinvocationPolicy"), ("IfNeeded", "Never"), f"{here}.reinvocationPolicy", needed=False)
        yield from _conditions(hook.get("matchConditions") or [], f"{here}.matchConditions")
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)


def _reviews(versions: list[str], path: str) -> Errors:
    if not versions:
        yield required(path, "must specify one of v1, v1beta1")
    elif not any(each in _REVIEWS for each in versions):
        yield invalid(path, versions, "must include at least one of v1, v1beta1")
    for index, each in enumerate(versions):
        if each in versions[:index]:
            yield invalid(f"{path}[{index}]", each, "duplicate version")
        yield from wrong(names.dns1035_label, each, f"{path}[{index}]")


def _rule(rule: Tree, path: str) -> Errors:
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


def _client(client: Tree, path: str) -> Errors:
    url: str | None = client.get("url")
    service: Any = client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
        return
    if url is not None:
        if not url.startswith("https://"):
            yield invalid(f"{path}.url", url, "'https' is the only allowed URL scheme; desired format: https://host[/path]")
        return
    for key in ("name", "namespace"):
        if not service.get(key):
            yield required(f"{path}.service.{key}", f"service {key} is required")
    if service.get("path") and not service["path"].startswith("/"):
        yield invalid(f"{path}.service.path", service["path"], "must start with a '/'")
    if service.get("port") is not None:
        yield from port_number(service["port"], f"{path}.service.port")


def _conditions(conditions: list[Tree], path: str) -> Errors:
    if len(conditions) > 64:
        yield invalid(path, len(conditions), "must have at most 64 items")
    seen: set[str] = set()
    for index, each in enumerate(conditions):
        here, name = f"{path}[{index}]", each.get("name", "")
        if name:
            yield from wrong(names.qualified_name, name, f"{here}.name")
        else:
            yield required(f"{here}.name")
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        if not each.get("expression", "").strip():
            yield required(f"{here}.expression")
        else:
            yield from _compiles(each["expression"], f"{here}.expression")


def _compiles(expression: str, path: str) -> Errors:
    """Refuse an expression that is no CEL, or names what a webhook or policy does not know."""
    # Imported here: CEL is not needed to start a server.
    from kubemini.machinery.cel import CelCompileError, Program
    from kubemini.server.policies.conditions import SCOPE

    try:
        Program.compile(expression, SCOPE)
    except CelCompileError as problem:
        yield invalid(path, expression, f"compilation failed: {problem}")


# ------------------------------------------------------------------------------------------------------ policies


def policy(part: str) -> Callable[[Tree], Errors]:
    """Return the rule of admission policies; `part` is ``validations`` or ``mutations``."""

    def check(obj: Tree) -> Errors:
        spec = obj.get("spec") or {}
        yield from one_of(spec.get("failurePolicy"), _FAILURES, "spec.failurePolicy")
        constraints = spec.get("matchConstraints")
        if constraints is None:
            yield required("spec.matchConstraints")
        else:
            if not constraints.get("resourceRules"):
                yield required("spec.matchConstraints.resourceRules")
            for index, rule in enumerate(constraints.get("resourceRules") or ()):
                yield from _rule(rule, f"spec.matchConstraints.resourceRules[{index}]")
        yield from _conditions(spec.get("matchConditions") or [], "spec.matchConditions")
        if not spec.get(part) and not spec.get("auditAnnotations"):
            both = "" if part == "mutations" else ": validations or auditAnnotations must be specified"
            yield required(f"spec.{part}", f"{part} must contain at least one item" if not both else both[2:])
        for index, each in enumerate(spec.get("variables") or ()):
            yield from _compiles(each.get("expression", ""), f"spec.variables[{index}].expression")
        yield from _validations(spec.get("validations") or ())

    return check


def _validations(entries: Any) -> Errors:
    for index, each in enumerate(entries):
        here = f"spec.validations[{index}]"
        if not each.get("expression", "").strip():
            yield required(f"{here}.expression", "expression is not specified")
        else:
            yield from _compiles(each["expression"], f"{here}.expression")
        if each.get("messageExpression"):
            yield from _compiles(each["messageExpression"], f"{here}.messageExpression")
        message = each.get("message", "")
        if message and not message.strip():
            yield invalid(f"{here}.message", message, "message must be non-empty if specified")
        elif "\n" in message.strip():
            yield invalid(f"{here}.message", message, "message must not contain line breaks")
        reasons = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
        if each.get("reason") not in (None, *reasons):
            yield not_supported(f"{here}.reason", each["reason"], reasons)


def policy_binding(obj: Tree) -> Errors:
    """Check a ValidatingAdmissionPolicyBinding."""
    spec = obj.get("spec") or {}
    if not spec.get("policyName"):
        yield required("spec.policyName")
    else:
        yield from wrong(names.dns1123_subdomain, spec["policyName"], "spec.policyName")
    reference = spec.get("paramRef")
    if reference is not None:
        if bool(reference.get("name")) == (reference.get("selector") is not None):
            if reference.get("name"):
                yield forbidden("spec.paramRef.name", "name and selector are mutually exclusive")
            else:
                yield required("spec.paramRef", "one of name or selector must be specified")
        if reference.get("parameterNotFoundAction") is None:
            yield required("spec.paramRef.parameterNotFoundAction")
    actions = spec.get("validationActions")
    if obj.get("kind") != "ValidatingAdmissionPolicyBinding":
        return
    if not actions:
        yield required("spec.validationActions")
    for index, each in enumerate(actions or ()):
        if each not in ("Audit", "Deny", "Warn"):
            yield not_supported(f"spec.validationActions[{index}]", each, ("Audit", "Deny", "Warn"))
    if "Deny" in (actions or ()) and "Warn" in (actions or ()):
        yield invalid(
            "spec.validationActions",
            actions,
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)",
        )


# ------------------------------------------------------------------------------------------------------ API services, flow control


def api_service(obj: Tree) -> Errors:
    """Check an APIService."""
    name, spec = obj["metadata"].get("name", ""), obj.get("spec") or {}
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if name != wanted:
        yield invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{wanted}"')
    if not spec.get("version"):
        yield required("spec.version")
    if not 0 < spec.get("groupPriorityMinimum", 0) <= 20000:
        yield invalid("spec.groupPriorityMinimum", spec.get("groupPriorityMinimum", 0), "must be positive and less than 20000")
    if not 0 < spec.get("versionPriority", 0) <= 1000:
        yield invalid("spec.versionPriority", spec.get("versionPriority", 0), "must be positive and less than 1000")
    service = spec.get("service")
    if service is None:
        if spec.get("caBundle"):
            yield invalid("spec.caBundle", f"{len(spec['caBundle'])} bytes", "local APIServices may not have a caBundle")
        if spec.get("insecureSkipTLSVerify"):
            yield invalid("spec.insecureSkipTLSVerify", True, "local APIServices may not have insecureSkipTLSVerify")
        return
    for key in ("namespace", "name"):
        if not service.get(key):
            yield required(f"spec.service.{key}")
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        yield invalid("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


def flow_schema(obj: Tree) -> Errors:
    """Check a FlowSchema."""
    spec = obj.get("spec") or {}
    if not 1 <= spec.get("matchingPrecedence", 0) <= 10000:
        yield invalid("spec.matchingPrecedence", spec.get("matchingPrecedence", 0), "must be a value between 1 and 10000")
    if not (spec.get("priorityLevelConfiguration") or {}).get("name"):
        yield required("spec.priorityLevelConfiguration.name", "must reference a priority level")


def priority_level(obj: Tree) -> Errors:
    """Check a PriorityLevelConfiguration."""
    spec = obj.get("spec") or {}
    kind = spec.get("type", "")
    if kind not in ("Exempt", "Limited"):
        yield not_supported("spec.type", kind, ("Exempt", "Limited"))
    if kind == "Limited" and spec.get("limited") is None:
        yield required("spec.limited", "must not be empty when type is Limited")
