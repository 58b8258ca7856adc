"""Rules of a pod spec as a whole, for pods and for templates of pods.

Validation is a hot path: ten thousand pods of one template differ in a few scalars only. So a spec that was found
valid is remembered by the identity of its subtrees, and only what usually differs from pod to pod (node, host names,
node selector) is looked at again. Mirrors ``pkg/apis/core/validation`` (1.36), order of the errors included.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, required
from kubemini.machinery.memo import by_identity
from kubemini.server.kinds.core import pod_containers as containers
from kubemini.server.kinds.core import pod_resources, pod_scheduling, pod_security
from kubemini.server.kinds.core.formats import Errors, ip, one_of, search_path, wrong
from kubemini.server.kinds.core.internal_pod import RESOURCE_CLAIM
from kubemini.server.kinds.core.pod_containers import Surroundings
from kubemini.server.kinds.core.pod_volumes import volumes

_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
MIRROR = "kubernetes.io/config.mirror"
_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"

_VALID: dict[tuple[Any, ...], Tree] = {}
_VALID_LIMIT = 8192


def validate_pod_spec(spec: Tree, path: str = "spec", *, pod_name: str = "", pod: bool = True) -> list[FieldError]:
    """Return the broken rules of a pod spec.

    `pod` is False for the spec of a template, where some rules are laxer; `pod_name` is the name of the pod where it has
    one. Costs a few microseconds for a spec that shares its subtrees with one that was valid.
    """
    key = _key(spec, pod)
    if key in _VALID and _is_plain(spec) and not _named_claims(spec):
        return []
    errors = list(_all(spec, path, pod_name, pod))
    if not errors:
        if len(_VALID) >= _VALID_LIMIT:
            for old in list(_VALID)[: _VALID_LIMIT // 2]:
                del _VALID[old]
        _VALID[key] = spec  # keeps the subtrees alive, so that their ids are not reused
    return errors


def validate_pod_template(template: Tree | None, path: str = "spec.template") -> list[FieldError]:
    """Return the broken rules of a PodTemplateSpec at `path` (what the template's owner asks of it is the owner's own affair)."""
    template = template or {}
    metadata: Tree = template.get("metadata") or {}
    spec: Tree = template.get("spec") or {}
    errors = labels.validate_labels(metadata.get("labels"), f"{path}.labels")
    errors += _annotation_names(metadata.get("annotations"), f"{path}.annotations")
    errors += pod_annotations(metadata.get("annotations"), spec, f"{path}.annotations")
    errors += validate_pod_spec(spec, f"{path}.spec", pod=False)
    if spec.get("ephemeralContainers"):
        errors.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return errors


_TREES = (
    "containers", "initContainers", "volumes", "tolerations", "affinity", "topologySpreadConstraints", "securityContext", "ephemeralContainers",
    "schedulingGates", "resourceClaims", "resources", "imagePullSecrets", "readinessGates", "dnsConfig", "hostAliases", "overhead", "os",
)  # fmt: skip
_SCALARS = (
    "restartPolicy", "dnsPolicy", "terminationGracePeriodSeconds", "activeDeadlineSeconds", "hostNetwork", "hostPID", "hostIPC", "hostUsers",
    "shareProcessNamespace", "serviceAccountName", "priorityClassName", "runtimeClassName", "preemptionPolicy", "hostnameOverride",
    "setHostnameAsFQDN",
)  # fmt: skip


def _key(spec: Tree, pod: bool) -> tuple[Any, ...]:
    """Return what a spec's verdict depends on: identities of subtrees, values of scalars, without what `_is_plain` looks at."""
    get = spec.get
    return (pod, *map(id, map(get, _TREES)), *map(get, _SCALARS))


def _is_plain(spec: Tree) -> bool:
    """Tell that what differs between the pods of one template is in order."""
    get = spec.get
    chosen, node, host, domain = get("nodeSelector"), get("nodeName"), get("hostname"), get("subdomain")
    return (
        (not node or _is_subdomain(node))
        and (not host or names.dns1123_label(host) is None)
        and (not domain or _is_label(domain))
        and (not chosen or _is_selector(chosen))
    )


@lru_cache(maxsize=4096)
def _is_subdomain(name: str) -> bool:
    return names.dns1123_subdomain(name) is None


@lru_cache(maxsize=4096)
def _is_label(name: str) -> bool:
    return names.dns1123_label(name) is None


@by_identity()
def _is_selector(chosen: Tree) -> bool:
    return not labels.validate_labels(chosen, "")


def _named_claims(spec: Tree) -> bool:
    """Tell whether the name of the pod matters: generic ephemeral volumes make claims that are named after it."""
    volumes = spec.get("volumes")
    return bool(volumes) and _has_ephemeral(volumes)


@by_identity()
def _has_ephemeral(volumes: list[Tree]) -> bool:
    return any(each.get("ephemeral") is not None for each in volumes)


def _all(spec: Tree, path: str, pod_name: str, pod: bool) -> Errors:
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is None:
        yield required(f"{path}.terminationGracePeriodSeconds")
    known, errors = volumes(spec.get("volumes") or [], f"{path}.volumes", pod_name, pod=pod)
    yield from errors
    claims = spec.get("resourceClaims") or []
    yield from _resource_claims(claims, f"{path}.resourceClaims")
    around = Surroundings(
        volumes=known,
        claims=tuple(each["name"] for each in claims if each.get("name")),
        grace=grace,
        restart_policy=spec.get("restartPolicy", ""),
        host_users=spec.get("hostUsers") is not False,
        pod=pod,
    )
    yield from _containers(spec, path, around)
    yield from _scalars_and_scheduling(spec, path)
    if pod:
        yield from _only_of_pods(spec, path)


def _containers(spec: Tree, path: str, around: Surroundings) -> Errors:
    regulars, inits = spec.get("containers") or [], spec.get("initContainers") or []
    yield from containers.regular(regulars, f"{path}.containers", around)
    yield from containers.init(inits, regulars, f"{path}.initContainers", around)
    yield from containers.ephemeral(spec.get("ephemeralContainers") or [], regulars, inits, f"{path}.ephemeralContainers", around)
    yield from pod_resources.pod_level(spec, f"{path}.resources")
    if spec.get("hostNetwork"):
        for index, container in enumerate(regulars):
            for at, port in enumerate(container.get("ports") or ()):
                host, own = port.get("hostPort", 0), port.get("containerPort", 0)
                if (around.pod or host) and host != own:
                    here = f"{path}.containers[{index}].ports[{at}].hostPort"
                    yield invalid(here, host, "must match `containerPort` when `hostNetwork` is true")


def _scalars_and_scheduling(spec: Tree, path: str) -> Errors:
    yield from one_of(spec.get("restartPolicy"), _RESTART_POLICIES, f"{path}.restartPolicy")
    yield from one_of(spec.get("dnsPolicy"), _DNS_POLICIES, f"{path}.dnsPolicy")
    yield from labels.validate_labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    yield from pod_security.pod_security(spec, f"{path}.securityContext")
    yield from pod_scheduling.affinity(spec.get("affinity"), f"{path}.affinity")
    yield from _dns(spec, f"{path}.dnsConfig")
    for index, gate in enumerate(spec.get("readinessGates") or ()):
        yield from wrong(names.qualified_name, gate.get("conditionType", ""), f"{path}.readinessGates[{index}].conditionType")
    yield from pod_scheduling.scheduling_gates(spec.get("schedulingGates"), f"{path}.schedulingGates")
    yield from pod_scheduling.spread_constraints(spec.get("topologySpreadConstraints"), f"{path}.topologySpreadConstraints")
    yield from pod_security.host_users(spec, path)
    for key in ("serviceAccountName", "nodeName"):
        if spec.get(key):
            yield from wrong(names.dns1123_subdomain, spec[key], f"{path}.{key}")
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2147483647:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, names.between_text(1, 2147483647))
    for key in ("hostname", "subdomain"):
        if spec.get(key):
            yield from wrong(names.dns1123_label, spec[key], f"{path}.{key}")
    yield from _hostname_override(spec, path)
    yield from pod_scheduling.tolerations(spec.get("tolerations"), f"{path}.tolerations")
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        here = f"{path}.hostAliases[{index}]"
        yield from ip(alias.get("ip", ""), f"{here}.ip")
        for at, host in enumerate(alias.get("hostnames") or ()):
            yield from wrong(names.dns1123_subdomain, host, f"{here}.hostnames[{at}]")
    for key in ("priorityClassName", "runtimeClassName"):
        if spec.get(key):
            yield from wrong(names.dns1123_subdomain, spec[key], f"{path}.{key}")
    if spec.get("preemptionPolicy") is not None:
        yield from one_of(spec["preemptionPolicy"], ("PreemptLowerPriority", "Never"), f"{path}.preemptionPolicy")
    if spec.get("overhead"):
        yield from pod_resources.requirements({"limits": spec["overhead"]}, f"{path}.overhead", ())
    yield from pod_security.operating_system(spec, path)


def _only_of_pods(spec: Tree, path: str) -> Errors:
    """Check what is tolerated in templates."""
    if not spec.get("serviceAccountName"):
        for index, volume in enumerate(spec.get("volumes") or ()):
            for at, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
                if source.get("serviceAccountToken") is not None:
                    here = f"{path}.volumes[{index}].projected.sources[{at}].serviceAccountToken"
                    yield forbidden(here, "must not be specified when serviceAccountName is not set")
    for key in ("containers", "initContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            yield from containers.trimmed_image(container, f"{path}.{key}[{index}]")


def _resource_claims(entries: list[Tree], path: str) -> Errors:
    seen: set[str] = set()
    for index, claim in enumerate(entries):
        here, name = f"{path}[{index}]", claim.get("name", "")
        if not name:
            yield required(f"{here}.name")
        elif name in seen:
            yield duplicate(f"{here}.name", name)
        else:
            yield from wrong(names.dns1123_label, name, f"{here}.name")
        seen.add(name)
        direct, template = claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")
        if direct is not None and template is not None:
            yield invalid(here, RESOURCE_CLAIM.shown(claim), "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
        if direct is None and template is None:
            yield invalid(here, RESOURCE_CLAIM.shown(claim), "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for key in ("resourceClaimName", "resourceClaimTemplateName"):
            if claim.get(key) is not None:
                yield from wrong(names.dns1123_subdomain, claim[key], f"{here}.{key}")


def _hostname_override(spec: Tree, path: str) -> Errors:
    override = spec.get("hostnameOverride")
    if override is None:
        return
    yield from wrong(names.dns1123_subdomain, override, f"{path}.hostnameOverride")
    if len(override) > 64:
        yield invalid(f"{path}.hostnameOverride", override, "must be no more than 64 characters")
    if spec.get("setHostnameAsFQDN"):
        yield forbidden(f"{path}.hostnameOverride", "may not be specified when `setHostnameAsFQDN` is true")
    if spec.get("hostNetwork"):
        yield forbidden(f"{path}.hostnameOverride", "may not be specified when `hostNetwork` is true")


def _dns(spec: Tree, path: str) -> Errors:
    config = spec.get("dnsConfig")
    if spec.get("dnsPolicy") == "None":
        if config is None:
            yield required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not config.get("nameservers"):
            yield required(f"{path}.nameservers", "must provide at least one DNS nameserver when `dnsPolicy` is None")
            return
    servers, searches = (config or {}).get("nameservers") or [], (config or {}).get("searches") or []
    if len(servers) > 3:
        yield invalid(f"{path}.nameservers", servers, "must not have more than 3 nameservers")
    for index, server in enumerate(servers):
        yield from ip(server, f"{path}.nameservers[{index}]")
    if len(searches) > 32:
        yield invalid(f"{path}.searches", searches, "must not have more than 32 search paths")
    if len(" ".join(searches)) > 2048:
        yield invalid(f"{path}.searches", searches, "must not have more than 2048 characters (including spaces) in the search list")
    for index, search in enumerate(searches):
        if search != ".":
            yield from wrong(search_path, search.removesuffix("."), f"{path}.searches[{index}]")
    for index, option in enumerate((config or {}).get("options") or ()):
        if not option.get("name"):
            yield required(f"{path}.options[{index}]", "must not be empty")


# ------------------------------------------------------------------------------------------------------ annotations


def _annotation_names(annotations: Mapping[str, str] | None, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for key, value in (annotations or {}).items():
        errors += wrong(names.qualified_name, key.lower(), path)
        size += len(key) + len(value)
    return errors


def pod_annotations(annotations: Mapping[str, str] | None, spec: Tree, path: str) -> list[FieldError]:
    """Return what is wrong with the annotations that mean something to a pod."""
    if not annotations:
        return []
    errors: list[FieldError] = []
    if MIRROR in annotations and not spec.get("nodeName"):
        errors.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], "must set spec.nodeName if mirror pod annotation is set"))
    cost = annotations.get(DELETION_COST)
    if cost is not None and not _is_deletion_cost(cost):
        errors.append(invalid(f"{path}[{DELETION_COST}]", cost, "must be a 32bit integer"))
    if _APP_ARMOR not in "\n".join(annotations):
        return errors
    for key, value in annotations.items():
        if key.startswith(_APP_ARMOR):
            container = key.removeprefix(_APP_ARMOR)
            if not any(each.get("name") == container for part in ("containers", "initContainers") for each in spec.get(part) or ()):
                errors.append(invalid(f"{path}[{key}]", container, "container not found"))
            if value not in ("", "runtime/default", "unconfined") and not value.startswith("localhost/"):
                errors.append(invalid(f"{path}[{key}]", value, f'invalid AppArmor profile name: "{value}"'))
    return errors


def _is_deletion_cost(text: str) -> bool:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()) or (len(digits) > 1 and digits[0] == "0"):
        return False
    return -2147483648 <= int(text) <= 2147483647
