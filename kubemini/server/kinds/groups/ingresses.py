"""networking.k8s.io: ingresses and their classes."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_supported, required, too_long
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, ip, not_address, port_number, wrong
from kubemini.server.kinds.groups.plain import PlainStrategy
from kubemini.server.kinds.tables import INGRESS
from kubemini.server.strategy import WriteContext

_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_NOT_IN_PATHS = ("//", "/./", "/../", "%2f", "%2F")
_NOT_AT_ENDS = ("/..", "/.")


class IngressStrategy(PlainStrategy):
    """Ingresses. What an old annotation says is looked at when one is made."""

    def __init__(self) -> None:
        super().__init__(table=INGRESS, check=_ingress, status_check=_status, status={"loadBalancer": {}}, generation=True)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the spec, and that two names of a class are one."""
        found = list(_ingress(obj))
        annotation, name = (obj["metadata"].get("annotations") or {}).get(_CLASS), (obj.get("spec") or {}).get("ingressClassName")
        if annotation is not None and name is not None and annotation != name:
            found.append(invalid(f"annotations.{_CLASS}", annotation, "must match `ingressClassName` when both are specified"))
        return found

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Name the old annotation of a new ingress."""
        old_style = _CLASS in (new["metadata"].get("annotations") or {}) and (new.get("spec") or {}).get("ingressClassName") is None
        return [f"annotation \"{_CLASS}\" is deprecated, please use 'spec.ingressClassName' instead"] if old is None and old_style else []


def _ingress(obj: Tree) -> Errors:
    spec: Tree = obj.get("spec") or {}
    rules, backend = spec.get("rules"), spec.get("defaultBackend")
    if not rules and backend is None:
        yield invalid("spec", rules, "either `defaultBackend` or `rules` must be specified")
    if backend is not None:
        yield from _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules or ()):
        here, host = f"spec.rules[{index}]", rule.get("host", "")
        if host:
            yield from not_address(host, f"{here}.host")
            yield from _host(host, f"{here}.host")
        if rule.get("http") is not None:
            paths = rule["http"].get("paths")
            if not paths:
                yield required(f"{here}.http.paths")
            for at, each in enumerate(paths or ()):
                yield from _path(each, f"{here}.http.paths[{at}]")
    for index, each in enumerate(spec.get("tls") or ()):
        for at, host in enumerate(each.get("hosts") or ()):
            yield from _host(host, f"spec.tls[{index}].hosts[{at}]")
        if each.get("secretName"):
            yield from wrong(names.dns1123_subdomain, each["secretName"], f"spec.tls[{index}].secretName")
    if spec.get("ingressClassName") is not None:
        yield from wrong(names.dns1123_subdomain, spec["ingressClassName"], "spec.ingressClassName")


def _host(host: str, path: str) -> Errors:
    yield from wrong(names.wildcard_subdomain if "*" in host else names.dns1123_subdomain, host, path)


def _path(each: Tree, here: str) -> Errors:
    kind, path = each.get("pathType"), each.get("path", "")
    if kind is None:
        yield required(f"{here}.pathType", "pathType must be specified")
        return
    if kind not in _PATH_TYPES:
        yield not_supported(f"{here}.pathType", kind, _PATH_TYPES)
    elif not path.startswith("/") and (path or kind != "ImplementationSpecific"):
        yield invalid(f"{here}.path", path, "must be an absolute path")
    if kind in ("Exact", "Prefix"):
        for part in _NOT_IN_PATHS:
            if part in path:
                yield invalid(f"{here}.path", path, f"must not contain '{part}'")
        for end in _NOT_AT_ENDS:
            if path.endswith(end):
                yield invalid(f"{here}.path", path, f"cannot end with '{end}'")
    yield from _backend(each.get("backend") or {}, f"{here}.backend")


def _backend(backend: Tree, path: str) -> Errors:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif resource is not None:
        yield from _reference(resource, f"{path}.resource")
    elif service is not None:
        if service.get("name"):
            yield from wrong(names.dns1123_label, service["name"], f"{path}.service.name")
        else:
            yield required(f"{path}.service.name")
        yield from _port(service.get("port") or {}, path)
    else:
        yield invalid(path, "", "resource or service backend is required")


def _port(port: Tree, path: str) -> Errors:
    """Check the port of a backend; what is wrong with both of its forms is said of the backend."""
    name, number = port.get("name"), port.get("number")
    if name and number:
        yield invalid(path, "", "cannot set both port name & port number")
    elif name:
        yield from wrong(names.port_name, name, f"{path}.service.port.name")
    elif number:
        yield from port_number(number, f"{path}.service.port.number")
    else:
        yield required(path, "port name or number is required")


def _reference(reference: Tree, path: str) -> Errors:
    if reference.get("apiGroup") is not None:
        yield from wrong(names.dns1123_subdomain, reference["apiGroup"], f"{path}.apiGroup")
    for key in ("kind", "name"):
        if reference.get(key):
            yield from wrong(names.path_segment, reference[key], f"{path}.{key}")
        else:
            yield required(f"{path}.{key}", f"{key} is required")


def _status(obj: Tree) -> Errors:
    for index, each in enumerate(((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()):
        here = f"status.loadBalancer.ingress[{index}]"
        if each.get("ip"):
            yield from ip(each["ip"], f"{here}.ip")
        if each.get("hostname"):
            yield from wrong(names.dns1123_subdomain, each["hostname"], f"{here}.hostname")
            yield from not_address(each["hostname"], f"{here}.hostname")


# ------------------------------------------------------------------------------------------------------ classes


def ingress_class(obj: Tree) -> Errors:
    """Check an IngressClass."""
    spec: Tree = obj.get("spec") or {}
    controller = spec.get("controller", "")
    if len(controller.encode()) > 250:
        yield too_long("spec.controller", 250)
    yield from names.domain_prefixed_path("spec.controller", controller)
    parameters = spec.get("parameters")
    if parameters is not None:
        yield from _parameters(parameters, "spec.parameters")


def _parameters(parameters: Tree, path: str) -> Errors:
    yield from _reference(parameters, path)
    scope, namespace = parameters.get("scope"), parameters.get("namespace")
    if scope is None:
        yield required(f"{path}.scope")
    elif scope not in ("Cluster", "Namespace"):
        yield not_supported(f"{path}.scope", scope, ("Cluster", "Namespace"))
    elif scope == "Cluster" and namespace is not None:
        yield forbidden(f"{path}.namespace", "`parameters.scope` is set to 'Cluster'")
    elif scope == "Namespace" and namespace is None:
        yield required(f"{path}.namespace", "`parameters.scope` is set to 'Namespace'")
    elif scope == "Namespace":
        yield from wrong(names.dns1123_label, namespace or "", f"{path}.namespace")


def ingress_class_update(new: Tree, old: Tree) -> Errors:
    """The controller stays."""
    now, before = (new.get("spec") or {}).get("controller"), (old.get("spec") or {}).get("controller")
    if now != before:
        yield invalid("spec.controller", now, IMMUTABLE)
    yield from ingress_class(new)
