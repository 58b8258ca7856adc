"""What a pod is to a Service: whether it is an endpoint, at which addresses and ports, and how ready."""

from __future__ import annotations

import ipaddress

from kubemini.api.trees import Tree

TERMINAL = ("Succeeded", "Failed")


def readiness(pod: Tree) -> Tree | None:
    """Return condition Ready."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "Ready":
            found: Tree = condition
            return found
    return None


def is_ready(pod: Tree) -> bool:
    """Tell whether condition Ready is True."""
    condition = readiness(pod)
    return condition is not None and condition["status"] == "True"


def is_member(pod: Tree) -> bool:
    """Tell whether a pod that a selector takes is an endpoint: it has an address and has not ended."""
    status = pod.get("status") or {}
    return bool(status.get("podIPs")) and status.get("phase") not in TERMINAL


def differs(old: Tree, new: Tree) -> bool:
    """Tell whether a pod that was and is an endpoint changed in what endpoints show. Name, uid and node do not change while it has an address."""
    before, after = old.get("status") or {}, new.get("status") or {}
    return (
        ("deletionTimestamp" in old["metadata"]) != ("deletionTimestamp" in new["metadata"])
        or (before is not after and (is_ready(old) != is_ready(new) or before.get("podIPs") != after.get("podIPs")))
        or old["metadata"]["uid"] != new["metadata"]["uid"]
        or (old["spec"] is not new["spec"] and any(old["spec"].get(name) != new["spec"].get(name) for name in ("hostname", "subdomain")))
    )


def hostname(pod: Tree, service: Tree) -> str:
    """Return the name under which DNS knows the pod below the Service, or ""."""
    spec = pod["spec"]
    named = spec.get("hostname")
    return named if named and spec.get("subdomain") == service["metadata"]["name"] else ""


def target(pod: Tree) -> Tree:
    """Return the reference by which an endpoint names its pod."""
    meta = pod["metadata"]
    return {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}


def family_of(address: str) -> str:
    """Return ``IPv4`` or ``IPv6``."""
    return "IPv6" if ":" in address else "IPv4"


def addresses(pod: Tree, family: str) -> list[str]:
    """Return a pod's addresses of one family in canonical form."""
    found = [each["ip"] for each in pod["status"].get("podIPs") or () if family_of(each["ip"]) == family]
    return [str(ipaddress.ip_address(each)) for each in found] if family == "IPv6" else found


def target_port(pod: Tree, port: Tree) -> int | None:
    """Return the number behind a Service port in one pod: a name is looked up in its containers and sidecars; None when no container has it."""
    wanted = port.get("targetPort", port["port"])
    if isinstance(wanted, int):
        return wanted
    protocol = port.get("protocol", "TCP")
    spec = pod["spec"]
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    for container in (*spec["containers"], *sidecars):
        for each in container.get("ports") or ():
            if each.get("name") == wanted and each.get("protocol", "TCP") == protocol:
                number: int = each["containerPort"]
                return number
    return None


def number_of(address: str) -> int:
    """Return an address as the number by which addresses are sorted."""
    if ":" in address:
        return int(ipaddress.ip_address(address))
    a, b, c, d = address.split(".")
    return (int(a) << 24) + (int(b) << 16) + (int(c) << 8) + int(d)


def families(service: Tree) -> list[str]:
    """Return the address families of a Service."""
    return service["spec"].get("ipFamilies") or ["IPv4"]


def headless(service: Tree) -> bool:
    """Tell whether a Service has no address of its own."""
    return service["spec"].get("clusterIP") in (None, "", "None")


def selects(service: Tree) -> bool:
    """Tell whether the controllers keep endpoints for a Service: it has a selector and stands for no outside name."""
    return bool(service["spec"].get("selector")) and service["spec"].get("type") != "ExternalName"
