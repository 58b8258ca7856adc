"""The webhooks of users: MutatingWebhookConfiguration and ValidatingWebhookConfiguration, called over HTTPS.

Order and texts as upstream's (``apiserver/pkg/admission/plugin/webhook``, 1.36): mutating ones one after the other by name of their configuration, those that ask
for it once more when a later one changed the object; validating ones at once. There is no cluster network: a webhook behind a Service can be reached only where
the Service has an external name; any other Service refuses the connection, which the webhook's failure policy judges.
"""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, InternalError
from kubemini.server.admission import AdmissionRequest, AsyncAdmission
from kubemini.server.policies.matching import Matcher
from kubemini.server.policies.review import request_attributes, shown
from kubemini.server.registry import Served
from kubemini.server.strategy import Reader
from kubemini.store import Store

MUTATING: Final = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
VALIDATING: Final = "validatingwebhookconfigurations.admissionregistration.k8s.io"
DEFAULT_TIMEOUT: Final = 10


class Denied(ApiStatus):
    """A webhook says no, with the code and reason that it chose."""

    def __init__(self, name: str, status: Tree) -> None:
        message = status.get("message") or status.get("reason")
        text = f"denied the request: {message}" if message else "denied the request without explanation"
        super().__init__(f'admission webhook "{name}" {text}', details=status.get("details"))
        self.code = max(int(status.get("code") or 0), 400)
        self.reason = status.get("reason") or ("Forbidden" if self.code == 403 else "")


class _CallFailed(Exception):
    """A webhook could not be asked, or gave no answer."""


@dataclass(frozen=True, slots=True)
class _Hook:
    """One webhook, ready to be asked."""

    tree: Tree
    matcher: Matcher

    @property
    def name(self) -> str:
        return str(self.tree["name"])

    @property
    def tolerant(self) -> bool:
        return self.tree.get("failurePolicy") == "Ignore"

    @property
    def timeout(self) -> int:
        return int(self.tree.get("timeoutSeconds") or DEFAULT_TIMEOUT)


class UserWebhooks(AsyncAdmission):
    """The webhooks of one cluster."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._mutating = _Hooks(store, MUTATING)
        self._validating = _Hooks(store, VALIDATING)
        self._caller = _Caller(reader)

    async def close(self) -> None:
        """Give connections back."""
        await self._caller.close()

    def matches(self, request: AdmissionRequest) -> bool:
        """Tell whether any webhook may want to hear of a write."""
        return any(each.matcher.served(request) is not None for hooks in (self._mutating, self._validating) for each in hooks.all())

    async def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Ask the mutating webhooks; return the object as they leave it. Raise `Denied`, `InternalError`."""
        if request.obj is None:
            return None
        before = request.obj
        hooks = self._mutating.all()
        changed_at = [-1] * len(hooks)
        for index, hook in enumerate(hooks):
            if await self._mutated(hook, request):
                changed_at[index] = index
        last = max(changed_at, default=-1)
        for index, hook in enumerate(hooks):
            if index < last and hook.tree.get("reinvocationPolicy") == "IfNeeded":
                await self._mutated(hook, request)
        return None if request.obj is before else request.obj

    async def _mutated(self, hook: _Hook, request: AdmissionRequest) -> bool:
        # Imported here: only clusters with webhooks need it
        from kubemini.machinery.jsonpatch import json_patch

        served = hook.matcher.served(request)
        if served is None:
            return False
        response = await self._ask(hook, served, request, mutating=True)
        if response is None or not response.get("patch"):
            return False
        try:
            patched: Any = json_patch(shown(request.obj, served) or {}, orjson.loads(b64decode(response["patch"])))
            decoded = served.version.codec.decode(patched, validation="Ignore")
        except (ApiStatus, ValueError, Base64Error) as problem:
            raise InternalError(f"Internal error occurred: {problem}") from None
        new = served.to_storage({**decoded.tree, "apiVersion": served.api_version})
        if new == request.obj:
            return False
        request.obj = new
        return True

    async def validate(self, request: AdmissionRequest) -> None:
        """Ask the validating webhooks. Raise `Denied`, `InternalError`: of several refusals, the first by name."""
        concerned = [(hook, served) for hook in self._validating.all() if (served := hook.matcher.served(request)) is not None]
        answers = await asyncio.gather(*(self._ask(hook, served, request) for hook, served in concerned), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    async def _ask(self, hook: _Hook, served: Served, request: AdmissionRequest, *, mutating: bool = False) -> Tree | None:
        """Return a webhook's consent, None where it is not asked or its failure is ignored. Raise `Denied`, `InternalError`."""
        from kubemini.server.policies.conditions import ConditionFailed, conditions_hold
        from kubemini.server.policies.scopes import permissions

        uid = request.ctx.env.uid()
        attributes = request_attributes(request, served, uid)
        obj, old = shown(request.obj, served), shown(request.old, served)
        try:
            scope = {"object": obj, "oldObject": old, "request": attributes, "namespaceObject": None, **permissions(request, attributes)}
            if not conditions_hold(hook.tree.get("matchConditions") or (), scope):
                return None
            response = await self._caller.call(hook, {**attributes, "object": obj, "oldObject": old}, mutating=mutating)
        except (_CallFailed, ConditionFailed) as problem:
            if hook.tolerant:
                return None
            raise InternalError(f'Internal error occurred: failed calling webhook "{hook.name}": {problem}') from None
        request.warnings += response.get("warnings") or ()
        if not response.get("allowed"):
            raise Denied(hook.name, response.get("status") or {})
        return response


class _Hooks:
    """The webhooks of one kind of configuration, in the order in which they are called; read anew when a configuration changes."""

    def __init__(self, store: Store, table: str) -> None:
        self._table = store.table(table)
        self._seen = self._table.log.end
        self._hooks: list[_Hook] = []
        self._read()

    def all(self) -> Sequence[_Hook]:
        """Return them."""
        if self._seen != self._table.log.end:
            self._seen = self._table.log.end
            self._read()
        return self._hooks

    def _read(self) -> None:
        self._hooks = [_Hook(tree, _matcher(tree)) for record in self._table.values() for tree in record.obj.get("webhooks") or ()]


def _matcher(hook: Tree) -> Matcher:
    return Matcher(
        rules=hook.get("rules") or (),
        namespaces=hook.get("namespaceSelector"),
        objects=hook.get("objectSelector"),
        exact=hook.get("matchPolicy") == "Exact",
    )


class _Caller:
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

    async def call(self, hook: _Hook, request: Tree, *, mutating: bool) -> Tree:
        """Return the response part of a webhook's answer. Raise `_CallFailed`."""
        client: Tree = hook.tree.get("clientConfig") or {}
        version = next((each for each in hook.tree.get("admissionReviewVersions") or () if each in ("v1", "v1beta1")), "v1")
        kind = {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}"}
        url = f"{self._url(client)}?timeout={hook.timeout}s"
        head = f'failed to call webhook: Post "{url}": '
        try:
            body = await self._post(url, orjson.dumps({**kind, "request": request}), self._context(client.get("caBundle") or ""), hook.timeout)
            review = dict(orjson.loads(body))
            problem = "" if version == "v1beta1" else _fault(review, request["uid"], mutating=mutating)
            if problem:
                raise _CallFailed(f"received invalid webhook response: {problem}")
            response: Tree = dict(review["response"])
        except TimeoutError:
            raise _CallFailed(f"{head}context deadline exceeded") from None
        except aiohttp.ClientConnectorCertificateError as problem:
            raise _CallFailed(f"{head}tls: failed to verify certificate: x509: {problem.certificate_error}") from None
        except (aiohttp.ClientError, OSError) as problem:
            raise _CallFailed(f"{head}{_why(problem, url)}") from None
        except (ValueError, KeyError, TypeError):
            raise _CallFailed("failed to call webhook: received invalid webhook response: the answer is no AdmissionReview with a response") from None
        return response

    async def _post(self, url: str, body: bytes, context: ssl.SSLContext, seconds: int) -> bytes:
        session = self._session
        if session is None:
            session = self._session = aiohttp.ClientSession()
        timeout = aiohttp.ClientTimeout(total=seconds)
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        async with session.post(url, data=body, ssl=context, timeout=timeout, headers=headers) as answer:
            if answer.status != 200:
                raise _CallFailed(f"failed to call webhook: an error on the server ({answer.reason}) has prevented the request from succeeding")
            return await answer.read()

    def _url(self, client: Tree) -> str:
        """Return where a webhook is. Raise `_CallFailed`."""
        if client.get("url"):
            return str(client["url"])
        service: Tree = client.get("service") or {}
        name, namespace, port = service.get("name", ""), service.get("namespace", ""), service.get("port") or 443
        found = self._reader.get("services", namespace, name)
        if found is None:
            raise _CallFailed(f'failed to call webhook: service "{name}" not found')
        external = found["spec"].get("externalName")
        if external:
            return f"https://{external}:{port}{service.get('path') or ''}"
        url = f"https://{name}.{namespace}.svc:{port}{service.get('path') or ''}"
        address = found["spec"].get("clusterIP") or name
        raise _CallFailed(f'failed to call webhook: Post "{url}": dial tcp {address}:{port}: connect: connection refused')

    def _context(self, bundle: str) -> ssl.SSLContext:
        """Return the trust of a CA bundle, kept for the next call. Raise `_CallFailed`."""
        found = self._contexts.get(bundle)
        if found is None:
            try:
                found = ssl.create_default_context(cadata=b64decode(bundle).decode() if bundle else None)
            except (ValueError, ssl.SSLError) as problem:
                raise _CallFailed(f"failed to call webhook: unable to load root certificates: {problem}") from None
            self._contexts[bundle] = found
        return found


def _fault(review: Tree, uid: str, *, mutating: bool) -> str:
    """Return what is wrong with a webhook's answer of v1, "" where it is fine."""
    response: Any = review.get("response")
    if not isinstance(response, dict):
        return "webhook response was absent"
    if response.get("uid") != uid:
        return f'expected response.uid="{uid}", got "{response.get("uid", "")}"'
    group, _, version = str(review.get("apiVersion") or "").rpartition("/")
    if (group, version, review.get("kind")) != ("admission.k8s.io", "v1", "AdmissionReview"):
        return f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {group}/{version}, Kind={review.get('kind', '')}"
    patch, type_ = response.get("patch"), response.get("patchType")
    if not mutating:
        extra = "patch" if patch else "patchType" if type_ is not None else ""
        return f"validating webhook may not return response.{extra}" if extra else ""
    if patch and type_ is None:
        return "webhook returned response.patch but not response.patchType"
    if type_ is not None and not patch:
        return "webhook returned response.patchType but not response.patch"
    return f'webhook returned invalid response.patchType of "{type_}"' if type_ == "" else ""


def _why(problem: Exception, url: str) -> str:
    cause = getattr(problem, "os_error", problem)
    if isinstance(cause, ConnectionRefusedError):
        where = urlsplit(url)
        return f"dial tcp {where.hostname}:{where.port or 443}: connect: connection refused"
    return str(problem) or type(problem).__name__
