"""Fresh certificates: an authority of one process, and what a server under it shows.

The library that makes them weighs 9 MiB and 40 ms. A command of its own may have another process make them meanwhile (`Minting`); in a test process it is loaded once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

EVERYWHERE = ("localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc")


class Minted(NamedTuple):
    """PEM texts of an authority, and of a server's chain and key."""

    authority: str
    chain: str
    key: str


def tls_hosts(host: str) -> list[str]:
    """Return what a certificate must name beside this machine's own names, for a server that listens on `host`."""
    return [] if host in ("0.0.0.0", "::") else [host]  # noqa: S104


def mint(hosts: Sequence[str]) -> Minted:
    """Make a certificate authority and a server certificate for `hosts` and the names that every API server has."""
    import trustme

    authority = trustme.CA()
    issued = authority.issue_cert(*dict.fromkeys([*hosts, *EVERYWHERE]))
    chain = b"".join(each.bytes() for each in issued.cert_chain_pems)
    return Minted(authority.cert_pem.bytes().decode(), chain.decode(), issued.private_key_pem.bytes().decode())


class Minting:
    """Another process that makes certificates while this one does something else."""

    def __init__(self, hosts: Sequence[str]) -> None:
        self._hosts = hosts
        self._process = subprocess.Popen([sys.executable, "-P", "-m", __name__, *hosts], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603

    def minted(self) -> Minted:
        """Wait for them; where that process failed they are made here."""
        out, _ = self._process.communicate()
        return Minted(*json.loads(out)) if self._process.returncode == 0 else mint(self._hosts)


if __name__ == "__main__":
    json.dump(mint(sys.argv[1:]), sys.stdout)
