"""A DNS server of the zone, over UDP and TCP on the event loop (wire format by dnslib)."""

from __future__ import annotations

import asyncio
from typing import Any

from dnslib import AAAA, CNAME, PTR, QTYPE, RCODE, RR, SOA, SRV, TXT, A, DNSRecord

from kubemini.dns.zone import TTL, Record, Zone
from kubemini.machinery.errors import ConfigError

UDP_LIMIT = 512
"""Bytes of an answer over UDP without EDNS; a longer one is truncated, and the client asks again over TCP."""

_SHAPES: dict[str, Any] = {
    "A": A,
    "AAAA": AAAA,
    "PTR": PTR,
    "CNAME": CNAME,
    "TXT": TXT,
}


class DnsServer:
    """Answers A, AAAA, SRV, PTR, CNAME and TXT questions of one zone; anything outside of it is refused."""

    def __init__(self, zone: Zone, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self.zone = zone
        self.host = host
        self.port = port
        self._udp: asyncio.DatagramTransport | None = None
        self._tcp: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen on UDP and TCP. Raise `ConfigError` when the port cannot be had."""
        loop = asyncio.get_running_loop()
        try:
            self._tcp = await asyncio.start_server(self._serve, self.host, self.port)
            self.port = self._tcp.sockets[0].getsockname()[1]
            self._udp, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(self), local_addr=(self.host, self.port))
        except OSError as problem:
            await self.stop()
            raise ConfigError(
                f"--dns {self.port}: cannot listen on {self.host}:{self.port}: {problem.strerror or problem}; choose another port"
            ) from None

    async def stop(self) -> None:
        """Stop listening."""
        if self._udp is not None:
            self._udp.close()
            self._udp = None
        if self._tcp is not None:
            self._tcp.close()
            await self._tcp.wait_closed()
            self._tcp = None

    def answer(self, query: bytes, *, limit: int = 0) -> bytes | None:
        """Return the answer to a query in wire format, None for bytes that are no query; longer than `limit` it is truncated (0 = no limit)."""
        try:
            request = DNSRecord.parse(query)
        except Exception:  # noqa: BLE001  dnslib raises many kinds for bytes that are no DNS
            return None
        if request.header.qr or not request.questions:
            return None
        reply = request.reply(ra=0, aa=1)
        name = str(request.q.qname).lower()
        type_ = QTYPE.get(request.q.qtype)
        if not self._ours(name):
            reply.header.rcode = RCODE.REFUSED
            reply.header.aa = 0
            return bytes(reply.pack())
        found = self.zone.lookup(name, type_)
        if not found.exists:
            reply.header.rcode = RCODE.NXDOMAIN
        services = sum(record.type == "SRV" for record in found.records)
        for record in found.records:
            reply.add_answer(_resource(record, services))
        for target in dict.fromkeys(record.value.split(" ")[1] for record in found.records if record.type == "SRV"):
            # Who asks for a port asks for its address next
            for of_target in (each for kind in ("A", "AAAA") for each in self.zone.lookup(target, kind).records):
                reply.add_ar(_resource(of_target))
        if not found.records:
            reply.add_auth(self._authority())
        data = bytes(reply.pack())
        if limit and len(data) > max(limit, _edns_size(request)):
            data = bytes(reply.truncate().pack())
        return data

    def _ours(self, name: str) -> bool:
        bare = name.rstrip(".")
        return bare == self.zone.domain or bare.endswith((f".{self.zone.domain}", ".in-addr.arpa", ".ip6.arpa"))

    def _authority(self) -> RR:
        domain = f"{self.zone.domain}."
        return RR(domain, QTYPE.SOA, rdata=SOA(f"ns.dns.{domain}", f"hostmaster.{domain}", (1, 7200, 1800, 86400, TTL)), ttl=TTL)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(2), "big")
                reply = self.answer(await reader.readexactly(length))
                if reply is None:
                    break
                writer.write(len(reply).to_bytes(2, "big") + reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


class _Datagrams(asyncio.DatagramProtocol):
    """UDP questions."""

    def __init__(self, server: DnsServer) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        reply = self._server.answer(data, limit=UDP_LIMIT)
        if reply is not None and self._transport is not None:
            self._transport.sendto(reply, addr)


def _resource(record: Record, services: int = 1) -> RR:
    """Return a record in wire format; one of several `services` of a port has its share of the weight."""
    if record.type == "SRV":
        port, target = record.value.split(" ")
        return RR(record.name, QTYPE.SRV, rdata=SRV(0, 100 // services, int(port), target), ttl=TTL)
    return RR(record.name, getattr(QTYPE, record.type), rdata=_SHAPES[record.type](record.value), ttl=TTL)


def _edns_size(request: DNSRecord) -> int:
    for extra in request.ar:
        if extra.rtype == QTYPE.OPT:
            return int(extra.rclass)
    return UDP_LIMIT
