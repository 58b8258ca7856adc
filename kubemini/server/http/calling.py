"""Calling webhooks over HTTPS: the client's half, and the texts of what can go wrong (``apiserver/pkg/util/webhook``, 1.36)."""

from __future__ import annotations

import ssl
from base64 import b64decode
from typing import Final
from urllib.parse import urlsplit

import aiohttp
import orjson

from kubemini.api.trees import Tree
from kubemini.server.strategy import Reader

DEFAULT_TIMEOUT: Final = 10
"""Seconds that a webhook may take which says nothing else."""


class CallFailed(Exception):
    """A webhook could not be asked, or gave no answer."""


class Caller:
    """Sends reviews. Connections are kept."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def close(self) -> None:
        """Close every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def call(self, hook: Tree, request: Tree) -> Tree:
        """Return the response part of a webhook's answer. Raise `CallFailed`."""
        seconds = int(hook.get("timeoutSeconds") or DEFAULT_TIMEOUT)
        client: Tree = hook.get("clientConfig") or {}
        version = next((each for each in hook.get("admissionReviewVersions") or () if each in ("v1", "v1beta1")), "v1")
        kind = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}"}
        url = f"{self._url(client)}?timeout={seconds}s"
        head = f'failed to call webhook: Post "{url}": '
        try:
            body = await self._post(url, orjson.dumps({**kind, "request": request}), self._context(client.get("caBundle") or ""), seconds)
            review = orjson.loads(body)
            response = review["response"]
            if response["uid"] != request["uid"]:
                raise CallFailed(f'received invalid webhook response: expected response.uid="{request["uid"]}", got "{response["uid"]}"')
        except TimeoutError:
            raise CallFailed(f"{head}context deadline exceeded") from None
        except aiohttp.ClientConnectorCertificateError as problem:
            raise CallFailed(f"{head}tls: failed to verify certificate: x509: {problem.certificate_error}") from None
        except (aiohttp.ClientError, OSError) as problem:
            raise CallFailed(f"{head}{_why(problem, url)}") from None
        except (ValueError, KeyError, TypeError):
            raise CallFailed("failed to call webhook: received invalid webhook response: the answer is no AdmissionReview with a response") from None
        return dict(response)

    async def _post(self, url: str, body: bytes, context: ssl.SSLContext, seconds: int) -> bytes:
        session = self._session
        if session is None:
            session = self._session = aiohttp.ClientSession()
        timeout = aiohttp.ClientTimeout(total=seconds)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        async with session.post(url, data=body, ssl=context, timeout=timeout, headers=headers) as answer:
            if answer.status != 200:
                raise CallFailed(f"failed to call webhook: an error on the server ({answer.reason}) has prevented the request from succeeding")
            return await answer.read()

    def _url(self, client: Tree) -> str:
        """Return where a webhook is. Raise `CallFailed`."""
        if client.get("url"):
            return str(client["url"])
        service: Tree = client.get("service") or {}
        name, namespace, port = service.get("name", ""), service.get("namespace", ""), service.get("port") or 443
        found = self._reader.get("services", namespace, name)
        if found is None:
            raise CallFailed(f'failed to call webhook: service "{name}" not found')
        external = found["spec"].get("externalName")
        if external:
            return f"https://{external}:{port}{service.get('path') or ''}"
        url = f"https://{name}.{namespace}.svc:{port}{service.get('path') or ''}"
        address = found["spec"].get("clusterIP") or name
        raise CallFailed(f'failed to call webhook: Post "{url}": dial tcp {address}:{port}: connect: connection refused')

    def _context(self, bundle: str) -> ssl.SSLContext:
        """Return the trust of a CA bundle, kept for the next call. Raise `CallFailed`."""
        found = self._contexts.get(bundle)
        if found is None:
            try:
                found = ssl.create_default_context(cadata=b64decode(bundle).decode() if bundle else None)
            except (ValueError, ssl.SSLError) as problem:
                raise CallFailed(f"failed to call webhook: unable to load root certificates: {problem}") from None
            self._contexts[bundle] = found
        return found


def _why(problem: Exception, url: str) -> str:
    cause = getattr(problem, "os_error", problem)
    if isinstance(cause, ConnectionRefusedError):
        where = urlsplit(url)
        return f"dial tcp {where.hostname}:{where.port or 443}: connect: connection refused"
    return str(problem) or type(problem).__name__
