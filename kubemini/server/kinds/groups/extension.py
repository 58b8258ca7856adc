"""Webhooks of admissionregistration.k8s.io, apiregistration.k8s.io and flowcontrol: what extends and guards the API."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import duplicate, invalid, not_supported, required
from kubemini.server.kinds.core.formats import Errors, one_of, port_number, wrong
from kubemini.server.kinds.groups.policies import FAILURES, MATCHES, conditions, rule_errors

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
            yield from rule_errors(rule, f"{here}.rules[{at}]")
        yield from one_of(hook.get("failurePolicy"), FAILURES, f"{here}.failurePolicy", needed=False)
        yield from one_of(hook.get("matchPolicy"), MATCHES, f"{here}.matchPolicy", needed=False)
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
        yield from conditions(hook.get("matchConditions") or [], f"{here}.matchConditions")
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
