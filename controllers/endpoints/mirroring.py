"""Slices for Endpoints written by hand: Services without a selector whose Endpoints somebody keeps are seen by readers of slices, too."""

from __future__ import annotations

import contextlib
import ipaddress

from kubemini.api.resources import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names
from kubemini.controllers.endpoints.legacy import LEADER_ELECTION
from kubemini.controllers.endpoints.planning import Identity, Plan, Ports, identity, ports_key
from kubemini.controllers.endpoints.slices import managed_by, service_key
from kubemini.controllers.endpoints.written import Written
from kubemini.machinery.errors import Forbidden, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of, owner_reference

MANAGER = "endpointslicemirroring-controller.k8s.io"
SKIP = "endpointslice.kubernetes.io/skip-mirror"
"""Label on Endpoints: ``true`` keeps them from being mirrored."""
SUBSET_LIMIT = 1000
"""Addresses of one subset that are mirrored (--mirroring-max-endpoints-per-subset)."""
CHANGED_SLICE_DELAY = 1.0


class MirroringController(Controller):
    """Keys are Endpoints objects."""

    name = "endpointslicemirroring"
    measured_as = "endpoint_slice_mirroring"
    component = "endpoint-slice-mirroring-controller"

    def setup(self, ctx: Context) -> None:
        """Follow Endpoints, their Services and the mirroring slices."""
        self._ctx = ctx
        self._endpoints = ctx.informer(ENDPOINTS)
        self._services = ctx.informer(SERVICES)
        self._slices = ctx.informer(ENDPOINT_SLICES)
        self._slices.add_index("service", lambda slice_: (service_key(slice_),))
        self._written = Written(self._slices, service_key)
        self._endpoints.on_change(self._on_endpoints)
        self._services.on_change(self._on_service)
        self._slices.on_change(self._on_slice)

    def _on_endpoints(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is not None and any(each is not None and _mirrored(each) for each in (old, new)):
            self.queue.add(key_of(obj))

    def _on_service(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if obj is None:
            return
        selects = bool(obj["spec"].get("selector"))
        if ((old is None or new is None) and not selects) or (old is not None and new is not None and bool(old["spec"].get("selector")) != selects):
            self.queue.add(key_of(obj))

    def _on_slice(self, old: Tree | None, new: Tree | None) -> None:
        obj = new if new is not None else old
        if (
            obj is None
            or (new is not None and self._written.own(new))
            or not any(each is not None and managed_by(each, MANAGER) for each in (old, new))
        ):
            return
        if key := service_key(obj):
            self.queue.add_after(key, CHANGED_SLICE_DELAY)

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Write what differs in the slices that mirror one Endpoints object."""
        endpoints = self._endpoints.get_key(key)
        service = self._services.get_key(key)
        slices = self._written.merged(key, [each for each in self._slices.by_index("service", key) if managed_by(each, MANAGER)])
        if endpoints is None or not _mirrored(endpoints) or service is None or service["spec"].get("selector"):
            await self._write(Plan(delete=slices))
            return None
        await self._write(self._plan(endpoints, slices))
        return None

    def _plan(self, endpoints: Tree, slices: list[Tree]) -> Plan:
        wanted = self._wanted(endpoints)
        meta = endpoints["metadata"]
        labels = {**(meta.get("labels") or {}), names.SERVICE_NAME: meta["name"], names.MANAGED_BY_SLICE: MANAGER}
        left_out = (names.LAST_CHANGE_TRIGGER, names.LAST_APPLIED)
        annotations = {name: value for name, value in (meta.get("annotations") or {}).items() if name not in left_out}
        found = Plan()
        by_key: dict[tuple[str, Ports], list[Tree]] = {}
        for each in slices:
            by_key.setdefault((each["addressType"], ports_key(each.get("ports"))), []).append(each)
        for (family, ports), listed in wanted.items():
            existing = by_key.pop((family, ports), [])
            found.delete += existing[1:]
            about: Tree = {"labels": labels, "ownerReferences": [owner_reference({**endpoints, "apiVersion": "v1", "kind": "Endpoints"})]}
            if annotations:
                about["annotations"] = annotations
            new: Tree = {
                "apiVersion": ENDPOINT_SLICES.api_version,
                "kind": ENDPOINT_SLICES.kind,
                "addressType": family,
                "endpoints": list(listed.values()),
                "ports": [_port(port) for port in ports],
            }
            if not existing:
                found.create.append({**new, "metadata": {"generateName": f"{meta['name']}-", "namespace": meta["namespace"], **about}})
                continue
            before = existing[0]
            same = {identity(each): each for each in before.get("endpoints") or ()}
            kept = before["metadata"]
            if same != listed or kept.get("labels") != labels or (kept.get("annotations") or {}) != annotations:
                found.update.append({**new, "metadata": {**{name: value for name, value in kept.items() if name != "annotations"}, **about}})
        for each_group in by_key.values():
            found.delete += each_group
        while found.create and found.delete and found.delete[-1]["addressType"] == found.create[-1]["addressType"]:
            new, old = found.create.pop(), found.delete.pop()
            about = {name: value for name, value in new["metadata"].items() if name != "generateName"}
            found.update.append({**new, "metadata": {**{name: value for name, value in old["metadata"].items() if name != "annotations"}, **about}})
        return found

    def _wanted(self, endpoints: Tree) -> dict[tuple[str, Ports], dict[Identity, Tree]]:
        found: dict[tuple[str, Ports], dict[Identity, Tree]] = {}
        bad = skipped = 0
        for subset in endpoints.get("subsets") or ():
            ports = ports_key(subset.get("ports"))
            taken = 0
            listed = [(each, True) for each in subset.get("addresses") or ()] + [(each, False) for each in subset.get("notReadyAddresses") or ()]
            for address, ready in listed:
                if taken >= SUBSET_LIMIT:
                    break
                try:
                    ip = ipaddress.ip_address(address["ip"])
                except ValueError:
                    bad += 1
                    continue
                taken += 1
                endpoint = _endpoint(address, str(ip), ready=ready)
                found.setdefault((f"IPv{ip.version}", ports), {})[identity(endpoint)] = endpoint
            skipped += len(listed) - taken
        if bad:
            text = f"Skipped {bad} invalid IP addresses when mirroring to EndpointSlices"
            self._ctx.recorder.event(endpoints, "Warning", "InvalidIPAddress", text)
        if skipped > bad:
            text = f"A max of {SUBSET_LIMIT} addresses can be mirrored to EndpointSlices per Endpoints subset. {skipped} addresses were skipped"
            self._ctx.recorder.event(endpoints, "Warning", "TooManyAddressesToMirror", text)
        return found

    async def _write(self, found: Plan) -> None:
        client, written = self._ctx.client, self._written
        for slice_ in found.create:
            try:
                written.put(await client.create(ENDPOINT_SLICES, slice_))
            except Forbidden as refused:
                if refused.has_cause("NamespaceTerminating"):
                    return
                raise
        for slice_ in found.update:
            written.put(await client.update(ENDPOINT_SLICES, slice_))
        for slice_ in found.delete:
            meta = slice_["metadata"]
            with contextlib.suppress(NotFound):
                await client.delete(ENDPOINT_SLICES, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
            written.drop(slice_)


def _mirrored(endpoints: Tree) -> bool:
    meta = endpoints["metadata"]
    return (meta.get("labels") or {}).get(SKIP) != "true" and LEADER_ELECTION not in (meta.get("annotations") or {})


def _endpoint(address: Tree, ip: str, *, ready: bool) -> Tree:
    endpoint: Tree = {"addresses": [ip], "conditions": {"ready": ready}}
    for name in ("hostname", "targetRef", "nodeName"):
        if address.get(name):
            endpoint[name] = address[name]
    return endpoint


def _port(port: tuple[str, str, int, str | None]) -> Tree:
    name, protocol, number, application = port
    shown: Tree = {"name": name, "protocol": protocol, "port": number}
    if application is not None:
        shown["appProtocol"] = application
    return shown
