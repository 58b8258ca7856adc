"""networking.k8s.io and storage.k8s.io: network policies, storage classes."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names
from kubemini.machinery.errors import duplicate, forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, IPNetwork, cidr, parsed_cidr, port_number, same, wrong
from kubemini.server.kinds.core.network_warnings import address_warnings
from kubemini.server.kinds.core.pod_containers import PROTOCOLS
from kubemini.server.kinds.core.pod_volumes import csi_driver_name
from kubemini.server.kinds.core.pod_warnings import OLD_NODE_LABELS
from kubemini.server.kinds.core.volume_warnings import label_warnings


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
        return
    for index, kind in enumerate(types):
        if kind not in ("Egress", "Ingress"):
            yield not_supported(f"spec.policyTypes[{index}]", kind, ("Ingress", "Egress"))


def _policy_port(port: Tree, path: str) -> Errors:
    if port.get("protocol") not in (None, *PROTOCOLS):
        yield not_supported(f"{path}.protocol", port["protocol"], PROTOCOLS)
    number, end = port.get("port"), port.get("endPort")
    if isinstance(number, str):
        if end is not None:
            yield invalid(f"{path}.endPort", end, "may not be specified when `port` is non-numeric")
        yield from wrong(names.port_name, number, f"{path}.port")
    elif number is not None:
        yield from port_number(number, f"{path}.port")
        if end is not None:
            if end < number:
                # The value that is named is the port's
                yield invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
            yield from port_number(end, f"{path}.endPort")
    elif end is not None:
        yield invalid(f"{path}.endPort", end, "may not be specified when `port` is not specified")


def _peer(peer: Tree, path: str) -> Errors:
    found = [key for key in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(key) is not None]
    for key in ("podSelector", "namespaceSelector"):
        if peer.get(key) is not None:
            yield from labels.validate_label_selector(peer[key], f"{path}.{key}")
    if peer.get("ipBlock") is not None:
        yield from _ip_block(peer["ipBlock"], f"{path}.ipBlock")
    if not found:
        yield required(path, "must specify a peer")
    elif "ipBlock" in found and len(found) > 1:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def _ip_block(block: Tree, path: str) -> Errors:
    if not block.get("cidr"):
        yield required(f"{path}.cidr")
        return
    yield from cidr(block["cidr"], f"{path}.cidr")
    whole = parsed_cidr(block["cidr"])
    if whole is None:
        return
    for index, each in enumerate(block.get("except") or ()):
        yield from cidr(each, f"{path}.except[{index}]")
        part = parsed_cidr(each)
        if part is not None and not _strictly_within(part, whole):
            yield invalid(f"{path}.except[{index}]", each, "must be a strict subset of `cidr`")


def _strictly_within(part: IPNetwork, whole: IPNetwork) -> bool:
    return part.version == whole.version and part.network_address in whole and part.prefixlen > whole.prefixlen


def network_policy_warnings(obj: Tree) -> Iterator[str]:
    """Name the ranges that are written in an odd way."""
    spec = obj.get("spec") or {}
    for key, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(key) or ()):
            for at, peer in enumerate(rule.get(peers) or ()):
                block, path = peer.get("ipBlock"), f"spec.{key}[{index}].{peers}[{at}].ipBlock"
                if block is not None:
                    yield from address_warnings(block["cidr"], f"{path}.cidr", "CIDR value")
                    for place, each in enumerate(block.get("except") or ()):
                        yield from address_warnings(each, f"{path}.except[{place}]", "CIDR value")


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


# ------------------------------------------------------------------------------------------------------ old names of node labels


def storage_class_warnings(obj: Tree) -> Iterator[str]:
    """Name the old labels of nodes among the topologies."""
    for index, topology in enumerate(obj.get("allowedTopologies") or ()):
        for at, each in enumerate(topology.get("matchLabelExpressions") or ()):
            if (advice := OLD_NODE_LABELS.get(each.get("key", ""))) is not None:
                yield f"allowedTopologies[{index}].matchLabelExpressions[{at}].key: {advice}"


def runtime_class_warnings(obj: Tree) -> Iterator[str]:
    """Name the old labels of nodes that the class selects by."""
    for key in (obj.get("scheduling") or {}).get("nodeSelector") or ():
        if (advice := OLD_NODE_LABELS.get(key)) is not None:
            yield f"scheduling.nodeSelector: {advice}"


def capacity_warnings(obj: Tree) -> Iterator[str]:
    """Name the old labels of nodes that a CSIStorageCapacity is for."""
    yield from label_warnings(obj.get("nodeTopology"), "nodeTopology")
