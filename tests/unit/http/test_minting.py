"""Certificates of a server, made here or by another process."""

from __future__ import annotations

import ssl
import subprocess
from subprocess import PIPE, Popen
from typing import Any

import pytest
from cryptography import x509

from kubemini.server.http.minting import Minting, mint, tls_hosts


def names(pem: str) -> list[str]:
    """Return what a certificate is for."""
    found = x509.load_pem_x509_certificate(pem.encode()).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(each.value) for each in found]


@pytest.mark.parametrize("make", [mint, lambda hosts: Minting(hosts).minted()], ids=["here", "elsewhere"])
def test_a_server_is_known_by_its_host_and_the_usual_names(make: Any) -> None:
    """Wherever they were made: named once each, and under the authority that comes with them."""
    minted = make(["node.example.com", "localhost"])
    assert names(minted.chain) == ["node.example.com", "localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default.svc"]
    ssl.create_default_context(cadata=minted.authority)
    issuer = x509.load_pem_x509_certificate(minted.chain.encode()).issuer
    assert issuer == x509.load_pem_x509_certificate(minted.authority.encode()).subject


def test_where_no_process_can_make_them_they_are_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that fails costs time and nothing else."""
    monkeypatch.setattr(subprocess, "Popen", lambda command, **options: Popen(["false"], stdout=PIPE))
    assert "node.example.com" in names(Minting(["node.example.com"]).minted().chain)


@pytest.mark.parametrize("host,named", [("127.0.0.1", ["127.0.0.1"]), ("0.0.0.0", []), ("::", []), ("box.lan", ["box.lan"])])
def test_a_server_on_every_address_is_named_by_none(host: str, named: list[str]) -> None:
    """There is no certificate for an address that stands for all."""
    assert tls_hosts(host) == named
