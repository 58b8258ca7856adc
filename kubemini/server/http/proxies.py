"""Ways into pods: port-forward and the proxies of pods, services and nodes. Nothing listens in a simulated pod, and the answers say so at once.

A proxy answers what a real cluster answers when nothing listens on the port: 503 with the refused connection.
"""

from __future__ import annotations

from aiohttp import web

from kubemini.api.trees import Tree, get_in
from kubemini.machinery.errors import BadRequest, ServerError, ServiceUnavailable
from kubemini.server.http.app import Facade
from kubemini.server.http.resources import Asked
from kubemini.server.requests import ApiServer


def install(facade: Facade) -> None:
    """Serve them."""
    server = facade.server

    async def forward(asked: Asked) -> web.StreamResponse:
        pod = server.live(asked.served.kind, asked.namespace, asked.where.name).obj
        if not pod["spec"].get("nodeName"):
            raise BadRequest(f"pod {asked.where.name} does not have a host assigned")
        if "Upgrade" not in asked.headers:
            raise BadRequest("Upgrade request required")
        raise ServerError(f"port-forward is not simulated: no process of pod {asked.where.name} listens on a port")

    async def pod_proxy(asked: Asked) -> web.StreamResponse:
        name, port = _split(asked.where.name)
        pod = server.live(asked.served.kind, asked.namespace, name).obj
        raise _refused(get_in(pod, "status", "podIP") or "", port or _first_port(pod))

    async def service_proxy(asked: Asked) -> web.StreamResponse:
        name, port = _split(asked.where.name)
        service = server.live(asked.served.kind, asked.namespace, name).obj
        raise _service_refused(server, service, port)

    async def node_proxy(asked: Asked) -> web.StreamResponse:
        name, port = _split(asked.where.name)
        node = server.live(asked.served.kind, "", name).obj
        addresses: list[Tree] = get_in(node, "status", "addresses") or []
        address = next((each["address"] for each in addresses if each["type"] == "InternalIP"), name)
        raise _refused(address, port or str(get_in(node, "status", "daemonEndpoints", "kubeletEndpoint", "Port") or 10250))

    facade.specials["pods", "portforward"] = forward
    facade.specials["pods", "proxy"] = pod_proxy
    facade.specials["services", "proxy"] = service_proxy
    facade.specials["nodes", "proxy"] = node_proxy


def _split(name: str) -> tuple[str, str]:
    """Return name and port of ``[SCHEME:]NAME[:PORT]``. Raise `BadRequest`."""
    parts = name.split(":")
    if len(parts) > 3:
        raise BadRequest(f'invalid pod, service or node request "{name}"')
    if len(parts) == 3:
        parts = parts[1:]
    return parts[0], parts[1] if len(parts) == 2 else ""


def _first_port(pod: Tree) -> str:
    return next((str(port["containerPort"]) for container in pod["spec"]["containers"] for port in container.get("ports") or ()), "80")


def _refused(address: str, port: str) -> ServiceUnavailable:
    return ServiceUnavailable(f"error trying to reach service: dial tcp {address}:{port}: connect: connection refused")


def _service_refused(server: ApiServer, service: Tree, port: str) -> ServiceUnavailable:
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    ports: list[Tree] = service["spec"].get("ports") or []
    chosen = next((each for each in ports if not port or port in (each.get("name"), str(each["port"]))), None)
    if chosen is None:
        return ServiceUnavailable(f'no service port "{port}" found for service "{name}"')
    for endpoints in server.reader.list("endpointslices.discovery.k8s.io", namespace):
        if (endpoints["metadata"].get("labels") or {}).get("kubernetes.io/service-name") != name:
            continue
        target = next((each["port"] for each in endpoints.get("ports") or () if each.get("name", "") == chosen.get("name", "")), chosen["port"])
        for endpoint in endpoints.get("endpoints") or ():
            if (endpoint.get("conditions") or {}).get("ready", True):
                return _refused(endpoint["addresses"][0], str(target))
    return ServiceUnavailable(f'no endpoints available for service "{name}"')
