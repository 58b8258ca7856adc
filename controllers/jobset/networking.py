"""How the pods of a JobSet find each other: one headless Service, host names under its name, the coordinator's address."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.api.wellknown import jobset as names
from kubemini.runtime.keys import owner_reference


def dns_enabled(spec: Tree) -> bool:
    """Tell whether pods get host names. A JobSet whose network was removed by an update has none."""
    return bool((spec.get("network") or {}).get("enableDNSHostnames"))


def subdomain(spec: Tree, name: str) -> str:
    """Return the name of the Service and of the pods' subdomain: the JobSet's `name` unless the spec has another."""
    return (spec.get("network") or {}).get("subdomain") or name


def coordinator(spec: Tree, name: str) -> str:
    """Return the address of the coordinator pod, "" where the spec of the JobSet `name` has none."""
    found = spec.get("coordinator")
    if not found:
        return ""
    pod = f"{name}-{found['replicatedJob']}-{found.get('jobIndex', 0)}-{found.get('podIndex', 0)}"
    return f"{pod}.{subdomain(spec, name)}"


def service(js: Tree) -> Tree:
    """Return the headless Service that selects all pods of a JobSet."""
    meta, spec = js["metadata"], js["spec"]
    published = (spec.get("network") or {}).get("publishNotReadyAddresses")
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": subdomain(spec, meta["name"]), "namespace": meta["namespace"], "ownerReferences": [owner_reference(js)]},
        "spec": {
            "clusterIP": "None",
            "selector": {names.NAME: meta["name"]},
            "publishNotReadyAddresses": True if published is None else published,
        },
    }
