"""Whether a certificate and a key in PEM belong together, told in the words of Go's TLS library."""

from __future__ import annotations

import re
from base64 import b64decode

_BLOCK = re.compile(rb"-----BEGIN ([^\n-]*)-----\n(.*?)-----END \1-----", re.DOTALL)


def _blocks(pem: bytes) -> list[tuple[str, bytes]]:
    """Return the type and contents of the PEM blocks."""
    found: list[tuple[str, bytes]] = []
    for label, body in _BLOCK.findall(pem.replace(b"\r\n", b"\n")):
        try:
            found.append((label.decode(), b64decode(body.split(b"\n\n", 1)[-1].replace(b"\n", b""), validate=True)))
        except ValueError:
            continue
    return found


def pair_fault(certificate: bytes, key: bytes) -> str | None:
    """Return why a server could not use the pair; None when it could."""
    blocks = _blocks(certificate)
    chain = [body for label, body in blocks if label == "CERTIFICATE"]
    if not chain:
        return _no_certificate([label for label, _ in blocks])
    keys = _blocks(key)
    private = next((body for label, body in keys if label == "PRIVATE KEY" or label.endswith(" PRIVATE KEY")), None)
    if private is None:
        return _no_key([label for label, _ in keys])
    return _mismatch(chain[0], private)


def _mismatch(certificate: bytes, key: bytes) -> str | None:
    # Slow to load, and few Secrets are key pairs
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key
    from cryptography.x509 import load_der_x509_certificate

    try:
        wanted = load_der_x509_certificate(certificate).public_key()
    except ValueError:
        return "x509: malformed certificate"
    try:
        found = load_der_private_key(key, None).public_key()
    except (ValueError, TypeError):
        return "tls: failed to parse private key"
    if type(found) is not type(wanted):
        return "tls: private key type does not match public key type"
    one, other = (each.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo) for each in (found, wanted))
    return None if one == other else "tls: private key does not match public key"


def _no_certificate(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in certificate input"
    if len(skipped) == 1 and skipped[0].endswith("PRIVATE KEY"):
        return "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"
    return f'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [{" ".join(skipped)}]'


def _no_key(skipped: list[str]) -> str:
    if not skipped:
        return "tls: failed to find any PEM data in key input"
    if skipped == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    rule = 'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input'
    return f"{rule} after skipping PEM blocks of the following types: [{' '.join(skipped)}]"
