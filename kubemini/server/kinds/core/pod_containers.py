"""Rules of the containers of a pod: names, images, ports, environment, mounts, probes, handlers, restart policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import duplicate, forbidden, invalid, not_found, not_supported, required, too_many
from kubemini.machinery.pod_requests import is_sidecar
from kubemini.server.kinds.core.formats import Errors, at_least_zero, one_of, port_number, port_or_name, wrong
from kubemini.server.kinds.core.pod_environment import environment
from kubemini.server.kinds.core.pod_mounts import devices, mounts
from kubemini.server.kinds.core.pod_resources import requirements
from kubemini.server.kinds.core.pod_security import container_security

PROTOCOLS = ("SCTP", "TCP", "UDP")
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_RESTARTS = ("Always", "Never", "OnFailure")
_NOT_IN_EPHEMERAL = ("ports", "livenessProbe", "readinessProbe", "startupProbe", "lifecycle", "resizePolicy", "restartPolicyRules")
_NOT_EPHEMERAL = "cannot be set for an Ephemeral Container"
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the rules of a container need to know of the rest of the pod spec."""

    volumes: Mapping[str, Tree] = field(default_factory=dict)
    claims: tuple[str, ...] = ()
    grace: int | None = None
    restart_policy: str = "Always"
    host_users: bool = True
    pod: bool = True
    """Whether this is a pod and not a template of one."""


def regular(containers: list[Tree], path: str, around: Surroundings) -> Errors:
    """Check the containers proper."""
    if not containers:
        yield required(path)
        return
    seen: set[str] = set()
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        yield from _common(container, here, around)
        name = container.get("name", "")
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        yield from _lifecycle(container, here, around)
        yield from _probes(container, here, around)
        yield from _restart_rules(container, here)
    yield from _host_port_conflicts(containers, path)


def init(containers: list[Tree], others: list[Tree], path: str, around: Surroundings) -> Errors:
    """Check init containers and sidecars; `others` are the containers proper."""
    seen = {each.get("name", "") for each in others}
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        yield from _common(container, here, around)
        name = container.get("name", "")
        yield from _restart_rules(container, here)
        if name in seen:
            yield duplicate(f"{here}.name", name)
        elif name:
            seen.add(name)
        yield from _host_port_conflicts([container], path)
        if is_sidecar(container):
            yield from _lifecycle(container, here, around)
            yield from _probes(container, here, around)
        else:
            for key in ("lifecycle", *_PROBES):
                if container.get(key) is not None:
                    yield forbidden(f"{here}.{key}", "may not be set for init containers without restartPolicy=Always")


def ephemeral(containers: list[Tree], regulars: list[Tree], inits: list[Tree], path: str, around: Surroundings) -> Errors:
    """Check ephemeral containers."""
    targets = {each.get("name", "") for each in (*regulars, *inits)}
    seen = set(targets)
    for index, container in enumerate(containers):
        here = f"{path}[{index}]"
        yield from _common(container, here, around)
        yield from trimmed_image(container, here)
        name, target = container.get("name", ""), container.get("targetContainerName", "")
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        if target and target not in targets:
            yield not_found(f"{here}.targetContainerName", target)
        for key in _NOT_IN_EPHEMERAL:
            if container.get(key):
                yield forbidden(f"{here}.{key}", _NOT_EPHEMERAL)
        if container.get("resources"):
            yield forbidden(f"{here}.resources", _NOT_EPHEMERAL)
        for at, mount in enumerate(container.get("volumeMounts") or ()):
            for key in ("subPath", "subPathExpr"):
                if mount.get(key):
                    yield forbidden(f"{here}.volumeMounts[{at}].{key}", _NOT_EPHEMERAL)


def trimmed_image(container: Tree, path: str) -> Errors:
    """Refuse blanks around an image (pods only, templates may have them)."""
    image = container.get("image", "")
    if image != image.strip():
        yield invalid(f"{path}.image", image, "must not have leading or trailing whitespace")


def _common(container: Tree, path: str, around: Surroundings) -> Errors:
    name = container.get("name", "")
    if name:
        yield from wrong(names.dns1123_label, name, f"{path}.name")
    else:
        yield required(f"{path}.name")
    if not container.get("image"):
        yield required(f"{path}.image")
    yield from one_of(container.get("terminationMessagePolicy"), ("File", "FallbackToLogsOnError"), f"{path}.terminationMessagePolicy")
    yield from ports(container.get("ports") or (), f"{path}.ports")
    yield from environment(container, path)
    yield from mounts(container, around.volumes, f"{path}.volumeMounts")
    yield from devices(container, around.volumes, f"{path}.volumeDevices")
    yield from one_of(container.get("imagePullPolicy"), PULL_POLICIES, f"{path}.imagePullPolicy")
    if container.get("resources"):
        yield from requirements(container["resources"], f"{path}.resources", around.claims)
    yield from _resize_policy(container.get("resizePolicy") or (), f"{path}.resizePolicy", around.restart_policy)
    if container.get("securityContext"):
        yield from container_security(container["securityContext"], f"{path}.securityContext", around.host_users)


def ports(entries: Any, path: str) -> Errors:
    """Check the ports of a container."""
    seen: set[str] = set()
    for index, port in enumerate(entries):
        here, name = f"{path}[{index}]", port.get("name", "")
        if name:
            if names.port_name(name) is not None:
                yield from wrong(names.port_name, name, f"{here}.name")
            elif name in seen:
                yield duplicate(f"{here}.name", name)
            seen.add(name)
        number = port.get("containerPort", 0)
        if number == 0:
            yield required(f"{here}.containerPort")
        else:
            yield from port_number(number, f"{here}.containerPort")
        if port.get("hostPort"):
            yield from port_number(port["hostPort"], f"{here}.hostPort")
        yield from one_of(port.get("protocol"), PROTOCOLS, f"{here}.protocol")


def _host_port_conflicts(containers: list[Tree], path: str) -> Errors:
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for at, port in enumerate(container.get("ports") or ()):
            if port.get("hostPort"):
                key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
                if key in seen:
                    yield duplicate(f"{path}[{index}].ports[{at}].hostPort", key)
                seen.add(key)


# ------------------------------------------------------------------------------------------------------ handlers and probes


def _lifecycle(container: Tree, path: str, around: Surroundings) -> Errors:
    lifecycle: Tree = container.get("lifecycle") or {}
    for key in ("postStart", "preStop"):
        if lifecycle.get(key) is not None:
            yield from _handler(lifecycle[key], f"{path}.lifecycle.{key}", around.grace)


def _probes(container: Tree, path: str, around: Surroundings) -> Errors:
    for key in _PROBES:
        probe = container.get(key)
        if probe is None:
            continue
        here = f"{path}.{key}"
        yield from _handler(probe, here, around.grace)
        for number in ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"):
            yield from at_least_zero(probe.get(number), f"{here}.{number}")
        grace = probe.get("terminationGracePeriodSeconds")
        if grace is not None and grace <= 0:
            yield invalid(f"{here}.terminationGracePeriodSeconds", grace, "must be greater than 0")
        if key != "readinessProbe":
            if probe.get("successThreshold", 1) != 1:
                yield invalid(f"{here}.successThreshold", probe["successThreshold"], "must be 1")
        elif grace is not None:
            yield invalid(f"{here}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")


def _handler(handler: Tree, path: str, grace: int | None) -> Errors:
    found = [key for key in ("exec", "httpGet", "tcpSocket", "grpc", "sleep") if handler.get(key) is not None]
    if not found:
        yield required(path, "must specify a handler type")
        return
    action, here = handler[found[0]], f"{path}.{found[0]}"
    match found[0]:
        case "exec":
            if not action.get("command"):
                yield required(f"{here}.command")
        case "httpGet":
            if not action.get("path", "/"):
                yield required(f"{here}.path")
            yield from port_or_name(action.get("port", 0), f"{here}.port")
            if action.get("scheme", "HTTP") not in ("HTTP", "HTTPS"):
                yield not_supported(f"{here}.scheme", action["scheme"], ("HTTP", "HTTPS"))
            for header in action.get("httpHeaders") or ():
                yield from wrong(names.http_header_name, header.get("name", ""), f"{here}.httpHeaders")
        case "sleep":
            seconds = action.get("seconds", 0)
            if grace is not None and not 0 <= seconds <= grace:
                yield invalid(here, seconds, f"must be non-negative and less than terminationGracePeriodSeconds ({grace})")
        case _:
            yield from port_or_name(action.get("port", 0), f"{here}.port")
    for key in found[1:]:
        yield forbidden(f"{path}.{key}", "may not specify more than 1 handler type")


# ------------------------------------------------------------------------------------------------------ restarts


def _restart_rules(container: Tree, path: str) -> Errors:
    """Check the restart policy of one container and its rules by exit code (ContainerRestartRules)."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is not None and policy not in _RESTARTS:
        yield not_supported(f"{path}.restartPolicy", policy, _RESTARTS)
    if rules and policy is None:
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    if len(rules) > 20:
        yield too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        here = f"{path}.restartPolicyRules[{index}]"
        if rule.get("action") not in ("Restart", "RestartAllContainers"):
            yield not_supported(f"{here}.action", rule.get("action", ""), ("Restart", "RestartAllContainers"))
        codes = rule.get("exitCodes")
        if codes is None:
            yield required(f"{here}.exitCodes", "must be specified")
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            yield not_supported(f"{here}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn"))
        if len(codes.get("values") or ()) > 255:
            yield too_many(f"{here}.exitCodes.values", len(codes["values"]), 255)


def _resize_policy(entries: Any, path: str, restart_policy: str) -> Errors:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        resource, policy = entry.get("resourceName", ""), entry.get("restartPolicy", "")
        if resource in seen:
            yield duplicate(f"{path}[{index}]", resource)
        seen.add(resource)
        yield from one_of(resource, ("cpu", "memory"), path)
        yield from one_of(policy, ("NotRequired", "RestartContainer"), path)
        if restart_policy == "Never" and policy != "NotRequired":
            yield invalid(path, policy, "must be 'NotRequired' when `restartPolicy` is 'Never'")
