"""Who asks: the administrator's token, service account tokens, nobody; and whom they speak for (impersonation).

Mirrors apiserver's authenticators and its impersonation filter (1.36). There is no password and no client certificate: the kubeconfig that the
server writes holds one token, and whoever knows it is an administrator.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from urllib.parse import unquote

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Unauthorized
from kubemini.server.http.authorization import refused
from kubemini.server.kinds.groups.authorizing import Attributes
from kubemini.server.options import ADMIN, Caller
from kubemini.server.strategy import Reader
from kubemini.server.subresources.token import ISSUER, Identity, TokenIssuer

ANONYMOUS: Final = "system:anonymous"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"

_ACCOUNT: Final = "system:serviceaccount:"
_EXTRA: Final = "impersonate-extra-"
_AUTHENTICATION: Final = "authentication.k8s.io"
_CREDENTIAL: Final = "authentication.kubernetes.io/"
_REMEMBERED = 256
"""Callers and tokens that are kept; the rest is worked out again."""

Allowed = Callable[[Caller, Attributes], bool]


class Authenticator:
    """Tells who sends a request. Without a `token` whoever brings no credentials is the administrator (plain HTTP on loopback)."""

    def __init__(self, token: str = "", *, issuer: TokenIssuer | None = None, reader: Reader | None = None) -> None:
        self._token = token
        self._issuer = issuer
        self._reader = reader
        self._admins: dict[str, Caller] = {}
        self._identities: dict[str, Identity] = {}

    def caller(self, headers: Mapping[str, str], allowed: Allowed) -> Caller:
        """Return who asks, after impersonation, which `allowed` has to agree to. Raise `Unauthorized`, `BadRequest`, `Forbidden`."""
        agent = headers.get("User-Agent", "")
        caller = self._authenticated(headers.get("Authorization", ""), agent)
        if any(name[0] in "iI" and name[:12].lower() == "impersonate-" for name in headers):
            return _impersonated(caller, headers, allowed)
        return caller

    def _authenticated(self, authorization: str, agent: str) -> Caller:
        scheme, _, credentials = authorization.partition(" ")
        token = credentials.strip() if scheme.lower() == "bearer" else ""
        if not token:
            return self._admin(agent) if not self._token else Caller(ANONYMOUS, (UNAUTHENTICATED,), agent)
        if self._token and hmac.compare_digest(token.encode(), self._token.encode()):
            return self._admin(agent)
        if token.count(".") == 2:
            return self._account(token, agent)
        if self._token:
            raise Unauthorized("Unauthorized")
        return self._admin(agent)

    def _admin(self, agent: str) -> Caller:
        found = self._admins.get(agent)
        if found is None:
            if len(self._admins) >= _REMEMBERED:
                self._admins.clear()
            found = self._admins[agent] = Caller(user=ADMIN.user, groups=ADMIN.groups, agent=agent)
        return found

    def _account(self, token: str, agent: str) -> Caller:
        identity = self.verified(token)
        if identity is None or ISSUER not in identity.audiences:
            raise Unauthorized("Unauthorized")
        extra = tuple(sorted((key, tuple(values)) for key, values in extra_of(identity.claims).items()))
        return Caller(identity.user, identity.groups, agent, extra, identity.uid)

    def verified(self, token: str) -> Identity | None:
        """Return who a service account's token speaks for; None where it is not ours, has expired, or what it is bound to is gone."""
        if self._issuer is None:
            return None
        identity = self._identities.get(token)
        if identity is None:
            identity = self._issuer.verify(token)
            if identity is None:
                return None
            if len(self._identities) >= _REMEMBERED:
                self._identities.clear()
            self._identities[token] = identity
        elif not self._issuer.valid_now(identity.claims):
            return None
        return identity if self._reader is None or _still_bound(identity.claims, self._reader) else None

    def review(self, token: str) -> Tree | None:
        """Answer a TokenReview: the user that a token speaks for, and under ``audiences`` for whom it was issued; None for a bad token."""
        if self._token and hmac.compare_digest(token.encode(), self._token.encode()):
            return {"username": ADMIN.user, "groups": list(ADMIN.groups), "audiences": [ISSUER]}
        identity = self.verified(token) if token.count(".") == 2 else None
        if identity is None:
            return None
        user: Tree = {"username": identity.user, "uid": identity.uid, "groups": list(identity.groups)}
        return {**user, "extra": extra_of(identity.claims), "audiences": list(identity.audiences)}


def extra_of(claims: Tree) -> dict[str, list[str]]:
    """Return the extra of a service account's token: the token's own id, and the pod and node that it is bound to."""
    ties: Tree = claims.get("kubernetes.io") or {}
    extra = {f"{_CREDENTIAL}credential-id": [f"JTI={claims.get('jti', '')}"]}
    for kind in ("node", "pod"):
        tie: Tree = ties.get(kind) or {}
        for field in ("name", "uid"):
            if tie.get(field):
                extra[f"{_CREDENTIAL}{kind}-{field}"] = [tie[field]]
    return extra


def _still_bound(claims: Tree, reader: Reader) -> bool:
    ties: Tree = claims.get("kubernetes.io") or {}
    namespace = ties.get("namespace", "")
    for field, plural in (("serviceaccount", "serviceaccounts"), ("pod", "pods"), ("secret", "secrets")):
        tie = ties.get(field)
        if tie is None:
            continue
        found = reader.get(plural, namespace, tie.get("name", ""))
        if found is None or found["metadata"]["uid"] != tie.get("uid"):
            return False
    return True


# ------------------------------------------------------------------------------------------------ impersonation


def _impersonated(caller: Caller, headers: Mapping[str, str], allowed: Allowed) -> Caller:
    user = headers.get("Impersonate-User", "")
    uid = headers.get("Impersonate-Uid", "")
    groups = _all(headers, "Impersonate-Group")
    extra: dict[str, list[str]] = {}
    for name in dict.fromkeys(each.lower() for each in headers):
        if name.startswith(_EXTRA):
            extra[unquote(name.removeprefix(_EXTRA))] = _all(headers, name)
    if not user:
        if not (uid or groups or extra):
            return caller
        raise BadRequest(f"requested uid {uid!r}, groups {groups} and extra {extra} without impersonating a user name")
    for wanted in _requests(user, uid, groups, extra):
        if not allowed(caller, wanted):
            raise refused(caller.user, wanted)
    return Caller(user, _groups_of(user, groups), caller.agent, tuple(sorted((key, tuple(values)) for key, values in extra.items())), uid)


def _all(headers: Mapping[str, str], name: str) -> list[str]:
    many: Callable[[str, list[str]], Iterable[str]] | None = getattr(headers, "getall", None)
    return list(many(name, [])) if many is not None else [headers[name]] if name in headers else []


def _requests(user: str, uid: str, groups: list[str], extra: Mapping[str, list[str]]) -> list[Attributes]:
    """Return what the caller has to be allowed to impersonate."""
    namespace, account = _account_of(user)
    if account:
        wanted = [Attributes("impersonate", "", "serviceaccounts", name=account, namespace=namespace)]
    else:
        wanted = [Attributes("impersonate", "", "users", name=user)]
    wanted += [Attributes("impersonate", "", "groups", name=group) for group in groups]
    wanted += [Attributes("impersonate", _AUTHENTICATION, "userextras", key, value) for key, values in extra.items() for value in values]
    if uid:
        wanted.append(Attributes("impersonate", _AUTHENTICATION, "uids", name=uid))
    return wanted


def _account_of(user: str) -> tuple[str, str]:
    namespace, _, name = user.removeprefix(_ACCOUNT).partition(":") if user.startswith(_ACCOUNT) else ("", "", "")
    return namespace, name


def _groups_of(user: str, groups: list[str]) -> tuple[str, ...]:
    namespace, account = _account_of(user)
    if account and not groups:
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    if user == ANONYMOUS:
        return tuple(groups) if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    return tuple(groups) if AUTHENTICATED in groups or UNAUTHENTICATED in groups else (*groups, AUTHENTICATED)
