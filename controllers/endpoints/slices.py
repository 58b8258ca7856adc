"""The EndpointSlice loop: one reconcile brings the slices of one Service in line with its pods."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from kubemini.api.resources import ENDPOINT_SLICES, NODES
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.endpoints import pods as view
from kubemini.controllers.endpoints.metrics import Metrics
from kubemini.controllers.endpoints.planning import Identity, Plan, Ports, identity, plan, ports_key
from kubemini.controllers.endpoints.services import Member, Members, Reader, Services
from kubemini.controllers.endpoints.topology import DISABLED, Topology, is_auto, is_ready, shares, without_hints
from kubemini.controllers.endpoints.triggers import Triggers
from kubemini.controllers.endpoints.written import Written
from kubemini.machinery.errors import ApiStatus, Forbidden, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import owner_reference

MANAGER = "endpointslice-controller.k8s.io"
RETRIES = 15
"""How often a Service is tried again while a pod's node is missing."""
CHANGED_SLICE_DELAY = 1.0
"""Seconds after which a slice that somebody else changed is put right."""
_RESERVED = (names.SERVICE_NAME, names.MANAGED_BY_SLICE, names.HEADLESS)
_NEAR = ("PreferClose", "PreferSameZone", "PreferSameNode")


@dataclass(frozen=True, slots=True)
class Made:
    """What a pod was made into, for one family of addresses."""

    member: Member
    node: Tree | None
    ports: Ports
    endpoint: Tree
    identity: Identity


Memo = dict[str, dict[str, Made]]
"""By family, then by pod."""


def service_key(slice_: Tree) -> str:
    """Return the key of the Service that a slice belongs to; "" for none."""
    name = (slice_["metadata"].get("labels") or {}).get(names.SERVICE_NAME)
    return f"{slice_['metadata']['namespace']}/{name}" if name else ""


def managed_by(slice_: Tree, manager: str) -> bool:
    """Tell whether a slice is kept by a controller."""
    return (slice_["metadata"].get("labels") or {}).get(names.MANAGED_BY_SLICE) == manager


class EndpointSliceController(Controller):
    """Keys are Services."""

    name = "endpointslice"
    measured_as = "endpoint_slice"
    component = "endpoint-slice-controller"

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services

    def setup(self, ctx: Context) -> None:
        """Follow Services, their pods and slices."""
        self._ctx = ctx
        self._nodes = ctx.informer(NODES)
        self._slices = ctx.informer(ENDPOINT_SLICES)
        self._slices.add_index("service", lambda slice_: (service_key(slice_),))
        self._written = Written(self._slices, service_key)
        self._triggers = Triggers()
        self._endpoints: dict[str, tuple[Tree, bool, Memo]] = {}
        """Service → (its spec, whether it has hints by proportion, what was made of each of its pods)."""
        self._topology = Topology()
        self._metrics = Metrics()
        self.families = self._metrics.all()
        self._slices.on_change(self._on_slice)
        self._nodes.on_change(self._on_node)
        self._services.attach(ctx, Reader(self.queue, self._triggers))

    def _on_slice(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None or (new is not None and self._written.own(new)):
            return
        if managed_by(obj, MANAGER) or (old is not None and managed_by(old, MANAGER)):
            for key in dict.fromkeys(service_key(each) for each in (old, new) if each is not None):
                if key:
                    self.queue.add_after(key, CHANGED_SLICE_DELAY)

    def _on_node(self, old: Tree | None, new: Tree | None) -> None:
        """Hints by proportion may not fit any more when nodes come, go, turn ready or change their zone."""
        if old is not None and new is not None and is_ready(old) == is_ready(new) and _zone_of(old) == _zone_of(new):
            return
        for key in self._topology.overloaded(shares(self._nodes.list())) if self._topology.any else ():
            self.queue.add(key)

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Write what differs in the slices of one Service."""
        try:
            await self._sync(key)
        except ApiStatus:
            self._metrics.syncs.inc("error")
            raise
        self._metrics.syncs.inc("success")
        return None

    async def _sync(self, key: str) -> None:
        service = self._services.get(key)
        if service is None or not view.selects(service):
            if service is None:
                # Its slices go with it: they are owned by it
                self._endpoints.pop(key, None)
                self._metrics.forget(key)
                for family in ("IPv4", "IPv6"):
                    self._topology.forget(key, family)
            return
        members = self._services.members(key)
        cached = [each for each in self._slices.by_index("service", key) if managed_by(each, MANAGER)]
        slices = self._written.merged(key, cached)
        trigger = self._triggers.since_last(service)
        families = view.families(service)
        found = Plan(delete=[each for each in slices if each["addressType"] not in families])
        memo = self._endpoints.get(key)
        auto = is_auto(service)
        known: Memo = memo[2] if memo is not None and memo[0] is service["spec"] and memo[1] == auto else {}
        now: Memo = {}
        self._endpoints[key] = (service["spec"], auto, now)
        near = "" if auto or (told_by := service["spec"].get("trafficDistribution")) not in _NEAR else told_by
        changed: list[int] = []
        said: list[tuple[str, str, str]] = []
        for family in families:
            of_family = [each for each in slices if each["addressType"] == family]
            if auto:
                step = self._plan(service, members, [without_hints(each) for each in of_family], family, known, now)
                told = self._topology.hint(key, family, step, of_family, shares(self._nodes.list()))
                said += [told] if told is not None else []
            else:
                step = self._plan(service, members, of_family, family, known, now)
                if self._topology.forget(key, family):
                    said.append(("Warning", DISABLED, f"Topology Aware Hints has been disabled, addressType: {family}"))
            self._metrics.planned(key, step, near)
            changed.append(len(step.create) + len(step.update) + len(step.delete))
            found.create += step.create
            found.update += step.update
            found.delete += step.delete
        try:
            await self._write(service, found, trigger)
        except ApiStatus as refused:
            self._say_failed(service, refused.message)
            raise
        for number in changed:
            self._metrics.written(number, near, auto=auto)
        for event in said:
            self._ctx.recorder.event(service, *event)
        strays = self._strays(service, members)
        if strays:
            self._say_failed(service, strays)
            if self.queue.num_requeues(key) < RETRIES:
                raise NotFound(strays)

    def _say_failed(self, service: Tree, why: str) -> None:
        meta = service["metadata"]
        text = f"Error updating Endpoint Slices for Service {meta['namespace']}/{meta['name']}: {why}"
        self._ctx.recorder.event(service, "Warning", "FailedToUpdateEndpointSlices", text)

    def _plan(self, service: Tree, members: Members, slices: Sequence[Tree], family: str, known: Memo, now: Memo) -> Plan:
        wanted: dict[Ports, dict[Identity, Tree]] = {}
        ports: dict[Ports, list[Tree]] = {}
        for made in self._endpoints_of(service, members, family, known, now):
            if made.ports not in ports:
                ports[made.ports], wanted[made.ports] = _port_list(made.ports), {}
            if made.endpoint["addresses"]:
                wanted[made.ports][made.identity] = made.endpoint
        meta = service["metadata"]
        labels = {name: value for name, value in (meta.get("labels") or {}).items() if name not in _RESERVED}
        if view.headless(service):
            labels[names.HEADLESS] = ""
        labels |= {names.SERVICE_NAME: meta["name"], names.MANAGED_BY_SLICE: MANAGER}
        skeleton: Tree = {
            "apiVersion": ENDPOINT_SLICES.api_version,
            "kind": ENDPOINT_SLICES.kind,
            "metadata": {
                "generateName": f"{meta['name']}-",
                "namespace": meta["namespace"],
                "labels": labels,
                "ownerReferences": [owner_reference({**service, "apiVersion": "v1", "kind": "Service"})],
            },
            "addressType": family,
            "endpoints": [],
            "ports": [],
        }
        return plan(slices, wanted, ports, owner_uid=meta["uid"], skeleton=skeleton, labels=labels)

    # ------------------------------------------------------------------ endpoints

    def _endpoints_of(self, service: Tree, members: Members, family: str, known: Memo, now: Memo) -> Iterable[Made]:
        """Return what the pods are made into, each as long as it is unchanged the very same, without those whose node is missing."""
        publish = bool(service["spec"].get("publishNotReadyAddresses"))
        nodes, before, found = self._nodes.objects, known.get(family, {}), now.setdefault(family, {})
        for name, member in members.items():
            node = nodes.get(member.pod["spec"].get("nodeName", ""))
            made = before.get(name)
            if made is None or made.member is not member or made.node is not node:
                if node is None and not publish:
                    continue
                endpoint = self._made(service, member, family, _zone_of(node) if node is not None else "", publish=publish)
                made = Made(member, node, ports_key(self._ports(service, member.pod)), endpoint, identity(endpoint))
            found[name] = made
        return found.values()

    def _strays(self, service: Tree, members: Members) -> str:
        """Return what is wrong with pods whose node does not exist, "" where that is none."""
        if service["spec"].get("publishNotReadyAddresses"):
            return ""
        meta, nodes = service["metadata"], self._nodes.objects
        found = [
            f"skipping Pod {member.pod['metadata']['name']} for Service {meta['namespace']}/{meta['name']}: Node {member.pod['spec'].get('nodeName', '')} Not Found"
            for member in members.values()
            if member.pod["spec"].get("nodeName", "") not in nodes
        ]
        return found[0] if len(found) == 1 else f"[{', '.join(found)}]" if found else ""

    @staticmethod
    def _ports(service: Tree, pod: Tree) -> list[Tree]:
        found: list[Tree] = []
        for port in service["spec"].get("ports") or ():
            number = view.target_port(pod, port)
            if number is not None:
                found.append(
                    {
                        **{name: port[name] for name in ("appProtocol",) if name in port},
                        "name": port.get("name", ""),
                        "protocol": port.get("protocol", "TCP"),
                        "port": number,
                    }
                )
        return found

    @staticmethod
    def _made(service: Tree, member: Member, family: str, zone: str, *, publish: bool) -> Tree:
        pod = member.pod
        ready = publish or (member.ready and not member.terminating)
        endpoint: Tree = {
            "addresses": view.addresses(pod, family),
            "conditions": _CONDITIONS[ready, member.ready, member.terminating],
        }
        if named := view.hostname(pod, service):
            endpoint["hostname"] = named
        endpoint["targetRef"] = view.target(pod)
        if node := pod["spec"].get("nodeName"):
            endpoint["nodeName"] = node
        if zone:
            endpoint["zone"] = zone
        near = service["spec"].get("trafficDistribution")
        if ready and near in _NEAR and not is_auto(service):
            hints: Tree = {"forZones": [{"name": zone}]} if zone else {}
            if near == "PreferSameNode" and node:
                hints["forNodes"] = [{"name": node}]
            if hints:
                endpoint["hints"] = hints
        return endpoint

    # ------------------------------------------------------------------ writing

    async def _write(self, service: Tree, found: Plan, trigger: str) -> None:
        client, written = self._ctx.client, self._written
        if "deletionTimestamp" not in service["metadata"]:
            for slice_ in found.create:
                try:
                    written.put(await client.create(ENDPOINT_SLICES, _stamped(slice_, trigger), canonical=True))
                    self._metrics.changes.inc("create")
                except Forbidden as refused:
                    if refused.has_cause("NamespaceTerminating"):
                        return
                    raise
        for slice_ in found.update:
            written.put(await client.update(ENDPOINT_SLICES, _stamped(slice_, trigger), canonical=True))
            self._metrics.changes.inc("update")
        for slice_ in found.delete:
            meta = slice_["metadata"]
            with contextlib.suppress(NotFound):
                await client.delete(ENDPOINT_SLICES, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
            written.drop(slice_)
            self._metrics.changes.inc("delete")


_CONDITIONS: dict[tuple[bool, ...], Tree] = {
    each: dict(zip(("ready", "serving", "terminating"), each, strict=True)) for each in product((False, True), repeat=3)
}
"""All there are, so that the endpoints of all pods share them."""


def _zone_of(node: Tree) -> str:
    zone: str = (node["metadata"].get("labels") or {}).get(names.ZONE, "")
    return zone


def _port_list(ports: Ports) -> list[Tree]:
    found: list[Tree] = []
    for name, protocol, number, application in ports:
        port: Tree = {"name": name, "protocol": protocol, "port": number}
        if application is not None:
            port["appProtocol"] = application
        found.append(port)
    return found


def _stamped(slice_: Tree, trigger: str) -> Tree:
    meta = slice_["metadata"]
    annotations = {name: value for name, value in (meta.get("annotations") or {}).items() if name != names.LAST_CHANGE_TRIGGER}
    if trigger:
        annotations[names.LAST_CHANGE_TRIGGER] = trigger
    kept = {name: value for name, value in meta.items() if name != "annotations"}
    # Go shows empty lists of these as null
    lists = {name: slice_.get(name) or None for name in ("endpoints", "ports")}
    return {**slice_, **lists, "metadata": {**kept, "annotations": annotations} if annotations else kept}
