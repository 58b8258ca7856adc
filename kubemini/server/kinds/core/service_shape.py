"""What the type of a Service implies: which fields it needs, which defaults they have, which are dropped with a change of type.

Mirrors ``SetDefaults_Service`` and ``pkg/registry/core/service/strategy.go`` and ``storage.go`` (1.36).
"""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree

HEADLESS = "None"
AFFINITY_SECONDS = 10800


def needs_cluster_ip(spec: Tree) -> bool:
    """Tell whether the type has an address of its own."""
    return spec.get("type") in ("ClusterIP", "NodePort", "LoadBalancer")


def needs_node_port(spec: Tree) -> bool:
    """Tell whether the type opens ports on nodes."""
    return spec.get("type") == "NodePort" or (spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts", True))


def needs_health_check(spec: Tree) -> bool:
    """Tell whether a load balancer asks nodes whether they serve."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def externally_accessible(spec: Tree) -> bool:
    """Tell whether traffic comes from outside the cluster."""
    return spec.get("type") in ("LoadBalancer", "NodePort") or (spec.get("type") == "ClusterIP" and bool(spec.get("externalIPs")))


def is_headless(spec: Tree) -> bool:
    """Tell whether a Service has no address on purpose."""
    return spec.get("clusterIPs") == [HEADLESS]


def default_service(spec: Tree) -> Tree:
    """Return the spec with the defaults that follow from other fields."""
    changes: Tree = {}
    if not spec.get("type"):
        changes["type"] = "ClusterIP"
    if not spec.get("sessionAffinity"):
        changes["sessionAffinity"] = "None"
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        client = config.get("clientIP") or {}
        if client.get("timeoutSeconds") is None:
            changes["sessionAffinityConfig"] = {**config, "clientIP": {**client, "timeoutSeconds": AFFINITY_SECONDS}}
    ports = spec.get("ports") or []
    if any(not each.get("targetPort") for each in ports):
        changes["ports"] = [each if each.get("targetPort") else {**each, "targetPort": each.get("port", 0)} for each in ports]
    whole = {**spec, **changes}
    if externally_accessible(whole) and not spec.get("externalTrafficPolicy"):
        changes["externalTrafficPolicy"] = "Cluster"
    if needs_cluster_ip(whole) and not spec.get("internalTrafficPolicy"):
        changes["internalTrafficPolicy"] = "Cluster"
    if whole["type"] == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is None:
        changes["allocateLoadBalancerNodePorts"] = True
    return {**spec, **changes} if changes else spec


def synced_addresses(new: Tree, old: Tree | None) -> Tree:
    """Return the spec with ``clusterIP`` and ``clusterIPs`` brought in step, whichever of the two the client wrote."""
    one, many = new.get("clusterIP", ""), new.get("clusterIPs") or []
    if old is None:
        return {**new, "clusterIPs": [one]} if one and not many else new
    old_one, old_many = old.get("clusterIP", ""), old.get("clusterIPs") or []
    if one != old_one and many == old_many:
        if not one:
            return _without(new, "clusterIP", "clusterIPs")
        return {**new, "clusterIPs": [one, *many[1:]]}
    if one and not many:
        return {**new, "clusterIPs": [one]}
    return new


def kept_allocations(new: Tree, old: Tree) -> Tree:
    """Return the spec with addresses and ports that the client left out of an update put back."""
    changes: Tree = {}
    if needs_cluster_ip(old) and needs_cluster_ip(new):
        if not new.get("clusterIP") and old.get("clusterIP"):
            changes["clusterIP"] = old["clusterIP"]
        if not new.get("clusterIPs") and changes.get("clusterIP", new.get("clusterIP")) == old.get("clusterIP") and old.get("clusterIPs"):
            changes["clusterIPs"] = old["clusterIPs"]
    if needs_node_port(old) and needs_node_port(new):
        used = {_port_key(each): each["nodePort"] for each in old.get("ports") or () if each.get("nodePort")}
        ports = new.get("ports") or []
        taken = {each["nodePort"] for each in ports if each.get("nodePort")}
        if any(not each.get("nodePort") and used.get(_port_key(each), 0) not in (0, *taken) for each in ports):
            changes["ports"] = [_with_node_port(each, used, taken) for each in ports]
    if needs_health_check(old) and needs_health_check(new) and not new.get("healthCheckNodePort"):
        changes["healthCheckNodePort"] = old.get("healthCheckNodePort")
    return {**new, **changes} if changes else new


def _port_key(port: Tree) -> tuple[str, int]:
    return port.get("protocol", "TCP"), port.get("port", 0)


def _with_node_port(port: Tree, used: dict[tuple[str, int], int], taken: set[int]) -> Tree:
    known = used.get(_port_key(port), 0)
    return port if port.get("nodePort") or not known or known in taken else {**port, "nodePort": known}


def without_leftovers(new: Tree, old: Tree) -> Tree:
    """Return the spec without what belongs to its former type and was not touched by the client."""
    gone: list[str] = []
    changes: Tree = {}

    def left(needs: Any, *keys: str) -> None:
        if needs(old) and not needs(new):
            gone.extend(key for key in keys if new.get(key) == old.get(key))

    left(needs_cluster_ip, "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")
    left(needs_health_check, "healthCheckNodePort")
    left(_is_balancer, "allocateLoadBalancerNodePorts", "loadBalancerClass")
    left(externally_accessible, "externalTrafficPolicy")
    if needs_node_port(old) and not needs_node_port(new) and _node_ports(old) == _node_ports(new):
        changes["ports"] = [_without(each, "nodePort") for each in new.get("ports") or ()]
    return {**_without(new, *gone), **changes}


def _is_balancer(spec: Tree) -> bool:
    return spec.get("type") == "LoadBalancer"


def _node_ports(spec: Tree) -> set[int]:
    return {each["nodePort"] for each in spec.get("ports") or () if each.get("nodePort")}


def _without(tree: Tree, *keys: str) -> Tree:
    return {key: value for key, value in tree.items() if key not in keys} if any(key in tree for key in keys) else tree
