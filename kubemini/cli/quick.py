"""A quicker start of a process that is all kubemini's own."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from contextlib import contextmanager

_AUTHORITIES = ("SSL_CERT_FILE", "SSL_CERT_DIR")


@contextmanager
def without_authorities() -> Generator[None]:
    """While this holds, TLS contexts trust nobody by default.

    aiohttp's client makes such contexts as it is imported, and reads every certificate authority of the machine for them: some 40 ms and 2 MiB. Nothing here uses them:
    calls of webhooks make their own when they are due.
    """
    before = {name: os.environ.get(name) for name in _AUTHORITIES}
    os.environ.update(dict.fromkeys(_AUTHORITIES, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def without_collections() -> Generator[None]:
    """While this holds, nobody looks for garbage: what is imported and built at the start stays, and looking takes a tenth of it."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
