"""The legacy form of endpoints: subsets of addresses that share all their ports. Mirrors ``pkg/api/v1/endpoints`` and the limits of the endpoint controller."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from kubemini.api.trees import Tree
from kubemini.controllers.endpoints import pods as view
from kubemini.controllers.endpoints.planning import Ports
from kubemini.controllers.endpoints.services import Member

CAPACITY = 1000
"""Addresses that one Endpoints object holds; the rest is left out."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A pod as an address of a Service."""

    address: Tree
    order: tuple[int, str]
    """(address as a number, uid): how addresses are sorted, and what makes two the same."""
    ready: bool
    ports: Ports


def offer(service: Tree, member: Member) -> Offer | None:
    """Return a pod's address in a Service's first family; None where it has none, or is going and only ready ones count."""
    publish = bool(service["spec"].get("publishNotReadyAddresses"))
    if member.terminating and not publish:
        return None
    pod = member.pod
    found = view.addresses(pod, view.families(service)[0])
    if not found:
        return None
    address: Tree = {"ip": found[0]}
    if named := view.hostname(pod, service):
        address["hostname"] = named
    address["nodeName"] = pod["spec"].get("nodeName", "")
    address["targetRef"] = view.target(pod)
    ports: list[tuple[str, str, int, str | None]] = []
    for port in service["spec"].get("ports") or ():
        number = view.target_port(pod, port)
        if number is not None:
            ports.append((port.get("name", ""), port.get("protocol", "TCP"), number, port.get("appProtocol")))
    if not ports and service["spec"].get("ports"):
        return None
    return Offer(address, (view.number_of(found[0]), pod["metadata"]["uid"]), publish or member.ready, tuple(ports))


def subsets(given: Iterable[Offer]) -> list[Tree]:
    """Return the subsets: ports that are offered by the same addresses, equally ready, stand together; addresses are sorted by number."""
    offers: dict[tuple[str, str, int, str | None] | None, list[Offer]] = {}
    for each in sorted(given, key=lambda each: each.order):
        for port in each.ports or (None,):
            offers.setdefault(port, []).append(each)
    groups: dict[tuple[tuple[tuple[int, str], bool], ...], list[tuple[str, str, int, str | None] | None]] = {}
    for port, offering in offers.items():
        groups.setdefault(tuple((each.order, each.ready) for each in offering), []).append(port)
    found: list[Tree] = []
    for ports in groups.values():
        offering = offers[ports[0]]
        subset: Tree = {}
        for name, ready in (("addresses", True), ("notReadyAddresses", False)):
            listed = [each.address for each in offering if each.ready is ready]
            if listed:
                subset[name] = listed
        shown = [_port(port) for port in sorted((port for port in ports if port is not None), key=lambda port: (port[0], port[1], port[2]))]
        if shown:
            subset["ports"] = shown
        found.append(subset)
    return found


def _port(port: tuple[str, str, int, str | None]) -> Tree:
    name, protocol, number, application = port
    shown: Tree = {"name": name} if name else {}
    shown |= {"port": number, "protocol": protocol}
    if application is not None:
        shown["appProtocol"] = application
    return shown


def truncated(found: list[Tree]) -> list[Tree] | None:
    """Return subsets cut to `CAPACITY` addresses, ready ones before the others, each subset in proportion; None when they are few enough."""
    ready = sum(len(subset.get("addresses", ())) for subset in found)
    unready = sum(len(subset.get("notReadyAddresses", ())) for subset in found)
    if ready + unready <= CAPACITY:
        return None
    only_ready = ready > CAPACITY
    room = CAPACITY if only_ready else CAPACITY - ready
    name, total, left = ("addresses", ready, room) if only_ready else ("notReadyAddresses", unready, room)
    cut: list[Tree] = []
    for subset in found:
        listed = subset.get(name, [])
        share = min(ceil(len(listed) / total * room), left) if total else 0
        kept = {key: value for key, value in subset.items() if key not in (name, "notReadyAddresses" if only_ready else name)}
        if listed[:share]:
            kept = {name: listed[:share], **kept} if only_ready else {**kept, name: listed[:share]}
        left -= len(listed[:share])
        if kept.get("addresses") or kept.get("notReadyAddresses"):
            cut.append(kept)
    return cut
