"""networking.k8s.io and storage.k8s.io: network policies, ingresses, storage classes."""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import duplicate, forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, cidr, port_number, port_or_name, same, wrong
from kubemini.server.kinds.core.pod_containers import PROTOCOLS
from kubemini.server.kinds.core.pod_volumes import csi_driver_name


def network_policy(obj: Tree) -> Errors:
    """Check a NetworkPolicy."""
    spec = obj.get("spec") or {}
    yield from labels.validate_label_selector(spec.get("podSelector"), "spec.podSelector")
    for key, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(key) or ()):
            here = f"spec.{key}[{index}]"
            for at, port in enumerate(rule.get("ports") or ()):
                yield from _policy_port(port, f"{here}.ports[{at}]")
            for at, peer in enumerate(rule.get(peers) or ()):
                yield from _peer(peer, f"{here}.{peers}[{at}]")
    types = spec.get("policyTypes") or []
    if len(types) > 2:
        yield invalid("spec.policyTypes", types, "may not specify more than two policyTypes")
    for index, kind in enumerate(types):
        if kind not in ("Egress", "Ingress"):
            yield not_supported(f"spec.policyTypes[{index}]", kind, ("Egress", "Ingress"))


def _policy_port(port: Tree, path: str) -> Errors:
    if port.get("protocol") not in (None, *PROTOCOLS):
        yield not_supported(f"{path}.protocol", port["protocol"], PROTOCOLS)
    number, end = port.get("port"), port.get("endPort")
    if number is not None:
        yield from port_or_name(number, f"{path}.port")
    if end is not None:
        if number is None:
            yield required(f"{path}.port", "must be specified when `endPort` is specified")
        elif isinstance(number, str):
            yield invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        elif end < number:
            yield invalid(f"{path}.endPort", end, "must be greater than or equal to `port`")
        yield from port_number(end, f"{path}.endPort")


def _peer(peer: Tree, path: str) -> Errors:
    found = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    for key in ("podSelector", "namespaceSelector"):
        if peer.get(key) is not None:
            yield from labels.validate_label_selector(peer[key], f"{path}.{key}")
    if peer.get("ipBlock") is not None:
        if peer["ipBlock"].get("cidr"):
            yield from cidr(peer["ipBlock"]["cidr"], f"{path}.ipBlock.cidr")
        else:
            yield required(f"{path}.ipBlock.cidr")
        for index, each in enumerate(peer["ipBlock"].get("except") or ()):
            yield from cidr(each, f"{path}.ipBlock.except[{index}]")
    if not found:
        yield required(path, "must specify a peer")
    elif "ipBlock" in found and len(found) > 1:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def ingress(obj: Tree) -> Errors:
    """Check an Ingress."""
    spec = obj.get("spec") or {}
    if not spec.get("rules") and spec.get("defaultBackend") is None:
        yield invalid("spec", spec.get("rules"), "either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend") is not None:
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")
    for index, rule in enumerate(spec.get("rules") or ()):
        here, host = f"spec.rules[{index}]", rule.get("host", "")
        if host:
            yield from wrong(names.wildcard_subdomain if "*" in host else names.dns1123_subdomain, host, f"{here}.host")
        paths: Any = (rule.get("http") or {}).get("paths")
        if rule.get("http") is not None and not paths:
            yield required(f"{here}.http.paths")
        for at, each in enumerate(paths or ()):
            there, kind, path = f"{here}.http.paths[{at}]", each.get("pathType"), each.get("path", "")
            if kind is None:
                yield required(f"{there}.pathType", "pathType must be specified")
            elif kind not in ("Exact", "ImplementationSpecific", "Prefix"):
                yield not_supported(f"{there}.pathType", kind, ("Exact", "ImplementationSpecific", "Prefix"))
            elif not path.startswith("/") and (path or kind != "ImplementationSpecific"):
                yield invalid(f"{there}.path", path, "must be an absolute path")
            yield from _backend(each.get("backend") or {}, f"{there}.backend")
    if spec.get("ingressClassName") is not None:
        yield from wrong(names.dns1123_subdomain, spec["ingressClassName"], "spec.ingressClassName")


def _backend(backend: Tree, path: str) -> Errors:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield invalid(path, "", "cannot set both resource and service backends")
    elif service is None and resource is None:
        yield required(path, "resource or service backend is required")
    if service is None:
        return
    if service.get("name"):
        yield from wrong(names.dns1035_label, service["name"], f"{path}.service.name")
    else:
        yield required(f"{path}.service.name")
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        yield invalid(f"{path}.service.port", port.get("number"), "cannot set both port name & port number")
    elif port.get("name"):
        yield from wrong(names.port_name, port["name"], f"{path}.service.port.name")
    elif port.get("number"):
        yield from port_number(port["number"], f"{path}.service.port.number")
    else:
        yield required(f"{path}.service.port", "port name or number is required")


def ingress_class(obj: Tree) -> Errors:
    """Check an IngressClass."""
    controller = (obj.get("spec") or {}).get("controller", "")
    yield from names.domain_prefixed_path("spec.controller", controller)


def ingress_class_change(new: Tree, old: Tree) -> Errors:
    """The controller stays."""
    now, before = (new.get("spec") or {}).get("controller"), (old.get("spec") or {}).get("controller")
    if now != before:
        yield invalid("spec.controller", now, IMMUTABLE)


# ------------------------------------------------------------------------------------------------------ storage classes


def storage_class(obj: Tree) -> Errors:
    """Check a StorageClass."""
    provisioner = obj.get("provisioner", "")
    if not provisioner:
        yield required("provisioner")
    else:
        yield from wrong(names.qualified_name, provisioner.lower(), "provisioner")
    for key in obj.get("parameters") or ():
        if not key:
            yield invalid("parameters", key, "field must not be empty.")
    if obj.get("reclaimPolicy") not in (None, "Delete", "Retain"):
        yield not_supported("reclaimPolicy", obj["reclaimPolicy"], ("Delete", "Retain"))
    if obj.get("volumeBindingMode") not in (None, "Immediate", "WaitForFirstConsumer"):
        yield not_supported("volumeBindingMode", obj["volumeBindingMode"], ("Immediate", "WaitForFirstConsumer"))


def storage_class_change(new: Tree, old: Tree) -> Errors:
    """What a class stands for stays."""
    for key in ("parameters", "provisioner", "reclaimPolicy"):
        if not same(new.get(key), old.get(key)):
            yield forbidden(key, f"updates to {key} are forbidden.")
    if new.get("volumeBindingMode") != old.get("volumeBindingMode"):
        yield invalid("volumeBindingMode", new.get("volumeBindingMode"), IMMUTABLE)


def csi_driver(obj: Tree) -> Errors:
    """Check a CSIDriver."""
    yield from csi_driver_name(obj["metadata"].get("name", ""), "metadata.name")


def csi_node(obj: Tree) -> Errors:
    """Check a CSINode."""
    seen: set[str] = set()
    for index, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
        here, name = f"spec.drivers[{index}]", driver.get("name", "")
        yield from csi_driver_name(name, f"{here}.name")
        if name in seen:
            yield duplicate(f"{here}.name", name)
        seen.add(name)
        if not driver.get("nodeID"):
            yield required(f"{here}.nodeID")


def attachment_change(new: Tree, old: Tree) -> Errors:
    """The spec of a VolumeAttachment stays."""
    if not same(new.get("spec"), old.get("spec")):
        yield invalid("spec", new.get("spec"), IMMUTABLE)


def attributes_class_change(new: Tree, old: Tree) -> Errors:
    """What a VolumeAttributesClass stands for stays."""
    if new.get("driverName") != old.get("driverName"):
        yield forbidden("driverName", "updates to driverName are forbidden.")
    if not same(new.get("parameters"), old.get("parameters")):
        yield forbidden("parameters", "updates to parameters are forbidden.")
