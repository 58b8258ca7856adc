"""Answers from the live objects: Services and EndpointSlices, as CoreDNS's kubernetes plugin reads them (DNS-based service discovery 1.1).

A lookup reads the store at its current revision, so a name is never older than the EndpointSlices are.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kubemini.api.trees import Tree

DOMAIN = "cluster.local"
TTL = 5
SPECIFICATION = "1.1.0"
"""The version of DNS-based service discovery that the zone keeps to, which ``dns-version`` tells."""
ALIASES = 8
"""How many ExternalName Services are followed one to another."""
SERVICE_NAME = "kubernetes.io/service-name"


class Reader(Protocol):
    """Reads objects by storage name."""

    def get(self, resource: str, namespace: str, name: str) -> Tree | None:
        """Return an object, or None."""
        ...

    def list(self, resource: str, namespace: str = "") -> Sequence[Tree]:
        """Return the objects of a resource, of one namespace if given."""
        ...


@dataclass(frozen=True, slots=True)
class Record:
    """One resource record: `type` is A, AAAA, SRV, PTR, CNAME or TXT; `value` an address, a name or a text, for SRV "port target"."""

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a lookup came to. `exists` tells NODATA (the name exists, but not with this type) from NXDOMAIN."""

    records: tuple[Record, ...] = ()
    exists: bool = False


_NONE = Answer()
_MADE_LABEL = re.compile(r"\d+(?:-\d+){3}")


class Zone:
    """The cluster's zone over one reader."""

    def __init__(self, reader: Reader, domain: str = DOMAIN) -> None:
        self._reader = reader
        self.domain = domain

    # ------------------------------------------------------------------ lookups

    def lookup(self, name: str, type_: str) -> Answer:
        """Return the answer for a fully qualified name (a last dot may be missing; case does not matter)."""
        qualified = name.rstrip(".").lower()
        if qualified.endswith((".in-addr.arpa", ".ip6.arpa")):
            return self._reverse(qualified, type_)
        suffix = f".{self.domain}"
        if not qualified.endswith(suffix):
            return Answer(exists=qualified == self.domain)
        labels = qualified[: -len(suffix)].split(".")
        if labels == ["dns-version"]:
            return Answer((Record(qualified, "TXT", SPECIFICATION),) if type_ == "TXT" else (), exists=True)
        if labels[-1] not in ("svc", "pod") or len(labels) == 1:
            return Answer(exists=labels in (["svc"], ["pod"]))
        if self._reader.get("namespaces", "", labels[-2]) is None:
            return _NONE
        if len(labels) == 2:
            return Answer(exists=True)
        if labels[-1] == "pod":
            return self._pod(qualified, labels[0], type_) if len(labels) == 3 else _NONE
        *host, service_name, namespace, _ = labels
        service = self._reader.get("services", namespace, service_name)
        if service is None:
            return _NONE
        if len(host) == 2 and host[0].startswith("_") and host[1].startswith("_"):
            return self._srv(qualified, service, host[0][1:], host[1][1:], type_)
        if not host:
            return self._service(qualified, service, type_)
        if len(host) == 1:
            return self._host(qualified, service, host[0], type_)
        return _NONE

    def resolve(self, name: str, *, namespace: str = "default") -> list[str]:
        """Return the addresses of a name as a pod in `namespace` would find them through its search path (ndots 5); [] where it does not resolve."""
        return self.find(name, namespace)[1]

    def find(self, name: str, namespace: str) -> tuple[str, list[str]]:
        """Return the full name under which a pod in `namespace` finds a name, and its addresses; the name itself and [] where it does not resolve."""
        candidates = [f"{name}.{namespace}.svc.{self.domain}", f"{name}.svc.{self.domain}", f"{name}.{self.domain}"]
        absolute = name.endswith(".")
        if absolute:
            candidates = [name]
        elif name.count(".") >= 5:
            candidates.insert(0, name)
        else:
            candidates.append(name)
        for candidate in candidates:
            found = [record.value for type_ in ("A", "AAAA") for record in self.lookup(candidate, type_).records if record.type == type_]
            if found:
                return candidate.rstrip("."), found
        return name, []

    # ------------------------------------------------------------------ services

    def _service(self, name: str, service: Tree, type_: str) -> Answer:
        spec = service["spec"]
        if spec.get("type") == "ExternalName":
            return Answer(tuple(self._alias(name, spec, type_)), exists=True)
        if spec.get("clusterIP") != "None":
            return Answer(tuple(_addresses(name, spec.get("clusterIPs") or [spec.get("clusterIP", "")], type_)), exists=True)
        addresses = [address for endpoint in self._endpoints(service) for address in endpoint["addresses"]]
        if not addresses:
            return _NONE
        return Answer(tuple(_addresses(name, addresses, type_)), exists=True)

    def _alias(self, name: str, spec: Tree, type_: str) -> Iterator[Record]:
        """Yield where an ExternalName Service points, and what is found there where that is in this zone."""
        for _ in range(ALIASES):
            target: str = spec.get("externalName", "").rstrip(".").lower()
            yield Record(name, "CNAME", f"{target}.")
            if type_ not in ("A", "AAAA") or not target.endswith(f".{self.domain}"):
                return
            *host, service_name, namespace, kind = target[: -len(self.domain) - 1].split(".") if target.count(".") >= 4 else ["", "", "", ""]
            service = self._reader.get("services", namespace, service_name) if kind == "svc" and not host else None
            if service is None or service["spec"].get("type") != "ExternalName":
                yield from self.lookup(target, type_).records
                return
            name, spec = target, service["spec"]

    def _host(self, name: str, service: Tree, host: str, type_: str) -> Answer:
        if service["spec"].get("clusterIP") != "None":
            return _NONE
        addresses = [address for endpoint in self._endpoints(service) for address in endpoint["addresses"] if host in _labels_of(endpoint, address)]
        return Answer(tuple(_addresses(name, addresses, type_)), exists=True) if addresses else _NONE

    def _srv(self, name: str, service: Tree, port_name: str, protocol: str, type_: str) -> Answer:
        meta = service["metadata"]
        base = f"{meta['name']}.{meta['namespace']}.svc.{self.domain}."
        records: list[Record] = []
        if service["spec"].get("clusterIP") != "None":
            for port in service["spec"].get("ports") or ():
                if port.get("name") == port_name and port.get("protocol", "TCP").lower() == protocol:
                    records.append(Record(name, "SRV", f"{port['port']} {base}"))
        else:
            for slice_ in self._slices(service):
                for port in slice_.get("ports") or ():
                    if port.get("name") == port_name and port.get("protocol", "TCP").lower() == protocol:
                        records += [
                            Record(name, "SRV", f"{port['port']} {_labels_of(endpoint, address)[0]}.{base}")
                            for endpoint in _ready(slice_)
                            for address in endpoint["addresses"]
                        ]
        if not records:
            return _NONE
        return Answer(tuple(dict.fromkeys(records)) if type_ == "SRV" else (), exists=True)

    def _pod(self, name: str, label: str, type_: str) -> Answer:
        if not _MADE_LABEL.fullmatch(label):
            return _NONE
        address = label.replace("-", ".")
        try:
            ipaddress.ip_address(address)
        except ValueError:
            return _NONE
        return Answer(tuple(_addresses(name, [address], type_)), exists=True)

    def _reverse(self, name: str, type_: str) -> Answer:
        address = _reversed_address(name)
        if address is None:
            return _NONE
        records = [Record(name, "PTR", target) for target in self._names_of(address)]
        if not records:
            return _NONE
        return Answer(tuple(records) if type_ == "PTR" else (), exists=True)

    def _names_of(self, address: str) -> Iterator[str]:
        for service in self._reader.list("services"):
            meta, spec = service["metadata"], service["spec"]
            base = f"{meta['name']}.{meta['namespace']}.svc.{self.domain}."
            if spec.get("clusterIP") != "None":
                if address in (spec.get("clusterIPs") or [spec.get("clusterIP")]):
                    yield base
                continue
            for endpoint in self._endpoints(service):
                if address in endpoint["addresses"]:
                    yield f"{_labels_of(endpoint, address)[0]}.{base}"

    # ------------------------------------------------------------------ endpoints

    def _slices(self, service: Tree) -> Iterator[Tree]:
        meta = service["metadata"]
        for slice_ in self._reader.list("endpointslices.discovery.k8s.io", meta["namespace"]):
            if (slice_["metadata"].get("labels") or {}).get(SERVICE_NAME) == meta["name"]:
                yield slice_

    def _endpoints(self, service: Tree) -> Iterator[Tree]:
        for slice_ in self._slices(service):
            yield from _ready(slice_)


def _ready(slice_: Tree) -> Iterator[Tree]:
    """Iterate over the endpoints that are published: ready, or of unknown readiness."""
    for endpoint in slice_.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready") is not False:
            yield endpoint


def _labels_of(endpoint: Tree, address: str) -> tuple[str, ...]:
    """Return the labels an endpoint answers to: its hostname, else its address with dashes."""
    hostname = endpoint.get("hostname")
    return (hostname,) if hostname else (address.replace(".", "-").replace(":", "-"),)


def _addresses(name: str, addresses: Sequence[str], type_: str) -> Iterator[Record]:
    for address in dict.fromkeys(addresses):
        kind = "AAAA" if ":" in address else "A"
        if kind == type_:
            yield Record(name, kind, address)


def _reversed_address(name: str) -> str | None:
    labels, _, _ = name.rpartition(".arpa")[0].rpartition(".")
    parts = labels.split(".")[::-1]
    try:
        if name.endswith(".in-addr.arpa"):
            return str(ipaddress.IPv4Address(".".join(parts)))
        nibbles = "".join(parts)
        return str(ipaddress.IPv6Address(":".join(nibbles[at : at + 4] for at in range(0, 32, 4))))
    except ValueError:
        return None
