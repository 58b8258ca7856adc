"""Fills in Secrets of type ``kubernetes.io/service-account-token``, and deletes those whose account is gone. Mirrors the tokens controller (1.36).

Upstream's tokens of this kind never expire; ours are bound to their Secret and hold as long as a token request allows, 136 years.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from kubemini.api.resources import SECRETS, SERVICE_ACCOUNTS
from kubemini.api.trees import Tree
from kubemini.machinery.errors import Conflict, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
LONGEST: Final = 2**32
"""How long the tokens hold, in seconds: the most that can be asked for."""


class TokensController(Controller):
    """Keys are Secrets."""

    name = "serviceaccount-token"
    component = "token-controller"

    def __init__(self, certificate: str) -> None:
        super().__init__()
        self._certificate = _encoded(certificate)

    def setup(self, ctx: Context) -> None:
        """Follow the Secrets and the accounts that they are for."""
        self._ctx = ctx
        self._secrets = ctx.informer(SECRETS)
        self._accounts = ctx.informer(SERVICE_ACCOUNTS)
        self._secrets.add_index("account", account_of)
        self._secrets.on_change(self._on_secret)
        self._accounts.on_change(self._on_account)

    def _on_secret(self, old: Tree | None, new: Tree | None) -> None:
        if new is not None and account_of(new):
            self.queue.add(key_of(new))

    def _on_account(self, old: Tree | None, new: Tree | None) -> None:
        account = new if new is not None else old
        if account is not None:
            for secret in self._secrets.by_index("account", key_of(account)):
                self.queue.add(key_of(secret))

    async def reconcile(self, key: str) -> float | None:
        """Fill in one Secret, or delete it."""
        namespace, _, name = key.partition("/")
        secret = self._secrets.get(name, namespace)
        if secret is None or not account_of(secret) or "deletionTimestamp" in secret["metadata"]:
            return None
        meta = secret["metadata"]
        annotations = meta["annotations"]
        account = self._accounts.get(annotations[ACCOUNT], namespace)
        try:
            if account is None or annotations.get(ACCOUNT_UID, account["metadata"]["uid"]) != account["metadata"]["uid"]:
                # The cache may be late
                if await self._missing(annotations, namespace):
                    await self._ctx.client.delete(SECRETS, name, namespace=namespace, uid=meta["uid"])
                return None
            filled = await self._filled(secret, account)
            if filled != secret:
                await self._ctx.client.update(SECRETS, filled)
        except (Conflict, NotFound):
            # Changed or deleted meanwhile: the change brings us back
            return None
        return None

    async def _missing(self, annotations: Tree, namespace: str) -> bool:
        try:
            live = await self._ctx.client.get(SERVICE_ACCOUNTS, annotations[ACCOUNT], namespace)
        except NotFound:
            return True
        uid: str = live["metadata"]["uid"]
        return bool(annotations.get(ACCOUNT_UID, uid) != uid)

    async def _filled(self, secret: Tree, account: Tree) -> Tree:
        meta, data = secret["metadata"], dict(secret.get("data") or {})
        if self._certificate:
            data["ca.crt"] = self._certificate
        data["namespace"] = _encoded(meta["namespace"])
        if not data.get("token"):
            bound = {"apiVersion": "v1", "kind": "Secret", "name": meta["name"], "uid": meta["uid"]}
            spec = {"spec": {"expirationSeconds": LONGEST, "boundObjectRef": bound}}
            answer = await self._ctx.client.act(SERVICE_ACCOUNTS, account["metadata"]["name"], "token", spec, namespace=meta["namespace"])
            data["token"] = _encoded(answer["status"]["token"])
        annotations = {**meta["annotations"], ACCOUNT_UID: account["metadata"]["uid"]}
        return {**secret, "metadata": {**meta, "annotations": annotations}, "data": data}


def account_of(secret: Tree) -> tuple[str, ...]:
    """Return the key of the account that a Secret holds a token of, nothing for other Secrets."""
    name = (secret["metadata"].get("annotations") or {}).get(ACCOUNT)
    return (f"{secret['metadata']['namespace']}/{name}",) if secret.get("type") == TYPE and name else ()


def _encoded(text: str) -> str:
    return b64encode(text.encode()).decode()
