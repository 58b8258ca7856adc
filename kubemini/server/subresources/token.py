"""``serviceaccounts/token``: TokenRequest. Mirrors ``TokenREST`` of ``pkg/registry/core/serviceaccount/storage`` (1.36).

Tokens are real JWTs (ES256) that `TokenIssuer.verify` accepts until they expire. The key is drawn from the environment's
random source, and signatures follow from key and text alone, so a simulation repeats them byte for byte.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Conflict, FieldError, Invalid, NotFound, invalid
from kubemini.runtime.env import Env, to_stamp
from kubemini.server.options import Outcome, WriteOptions
from kubemini.server.registry import Served
from kubemini.server.strategy import Reader
from kubemini.server.subresources.answers import admitted
from kubemini.server.subresources.base import ActionSubresource
from kubemini.server.verbs import Verbs

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
"""The issuer of all tokens, and the audience of those that name none."""
DEFAULT_SECONDS: Final = 3600
MIN_SECONDS: Final = 600
MAX_SECONDS: Final = 2**32
_P256_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_BOUND_KINDS: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


class TokenSubresource(ActionSubresource):
    """Issues tokens for service accounts."""

    name = "token"

    def __init__(self, issuer: TokenIssuer) -> None:
        self.issuer = issuer

    async def act(self, api: Verbs, served: Served, namespace: str, name: str, body: Tree, options: WriteOptions) -> Outcome:
        """Issue a token. Raise `NotFound`, `Invalid`, `BadRequest`, `Conflict`."""
        meta: Tree = body.get("metadata") or {}
        for field, wanted in (("name", name), ("namespace", namespace)):
            if meta.get(field) and meta[field] != wanted:
                text = f"must match the service account {field} if specified"
                raise Invalid.of("TokenRequest", "authentication.k8s.io", name, [invalid(f"metadata.{field}", meta[field], text)])
        account = api.live(served.kind, namespace, name).obj
        now = api.env.now()
        request = prepared(body, account, to_stamp(now))
        request = await admitted(api, served.kind, namespace, name, self.name, request, options)
        bound = bound_objects(request["spec"].get("boundObjectRef"), namespace, name, api.reader)
        spec = request["spec"]
        claims = token_claims(account, bound, spec["audiences"], int(now), spec["expirationSeconds"], api.env.uid())
        status = {"token": self.issuer.sign(claims), "expirationTimestamp": to_stamp(now + spec["expirationSeconds"])}
        return Outcome({**request, "status": status}, None, 201)


# ------------------------------------------------------------------------------------------------ the request


def prepared(body: Tree, account: Tree, stamp: str) -> Tree:
    """Return a TokenRequest with everything filled in but its status. Raise `Conflict`, `Invalid`."""
    meta: Tree = body.get("metadata") or {}
    known = account["metadata"]
    if meta.get("uid") and meta["uid"] != known["uid"]:
        why = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account ({known['uid']})"
        raise Conflict.of("TokenRequest", "authentication.k8s.io", known["name"], why)
    given: Tree = body.get("spec") or {}
    spec = {key: value for key, value in given.items() if value is not None}
    spec["audiences"] = spec.get("audiences") or [ISSUER]
    spec["expirationSeconds"] = spec.get("expirationSeconds", DEFAULT_SECONDS)
    problems = _lifetime(spec["expirationSeconds"])
    if problems:
        raise Invalid.of("TokenRequest", "authentication.k8s.io", "", problems)
    metadata = {**meta, "name": known["name"], "namespace": known["namespace"], "uid": known["uid"], "creationTimestamp": stamp}
    return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "metadata": metadata, "spec": spec}


def _lifetime(seconds: Any) -> list[FieldError]:
    if not isinstance(seconds, int) or isinstance(seconds, bool):
        raise BadRequest(
            'TokenRequest in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal into Go struct field '
            "TokenRequestSpec.spec.expirationSeconds of type int64"
        )
    if seconds < MIN_SECONDS:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")]
    if seconds > MAX_SECONDS:
        return [invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


def bound_objects(reference: Tree | None, namespace: str, account: str, reader: Reader) -> dict[str, Tree]:
    """Return the objects that a token is bound to, by the names of their claims; a pod brings its node. Raise `NotFound`, `BadRequest`, `Conflict`."""
    if reference is None:
        return {}
    api_version, kind, name = reference.get("apiVersion") or "", reference.get("kind") or "", reference.get("name") or ""
    group, _, version = api_version.rpartition("/")
    plural = _BOUND_KINDS.get(kind) if not group else None
    if plural is None:
        raise BadRequest(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = reader.get(plural, "" if kind == "Node" else namespace, name)
    if found is None:
        raise NotFound.of(plural, "", name)
    bound = {kind.lower(): found}
    if kind == "Pod":
        spec: Tree = found.get("spec") or {}
        if spec.get("serviceAccountName") != account:
            raise BadRequest(f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.')
        if spec.get("nodeName"):
            # A node that is gone is still named, without a uid.
            bound["node"] = reader.get("nodes", "", spec["nodeName"]) or {"metadata": {"name": spec["nodeName"]}}
    uid = reference.get("uid")
    if uid and uid != found["metadata"]["uid"]:
        why = f"the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        raise Conflict.of(kind, "", name, why)
    return bound


def token_claims(account: Tree, bound: dict[str, Tree], audiences: list[str], now: int, seconds: int, identifier: str) -> Tree:
    """Return the claims of a token, in the order of their names."""
    meta = account["metadata"]
    ties: Tree = {"namespace": meta["namespace"], **{key: _reference(each) for key, each in bound.items()}, "serviceaccount": _reference(account)}
    return {
        "aud": audiences,
        "exp": now + seconds,
        "iat": now,
        "iss": ISSUER,
        "jti": identifier,
        "kubernetes.io": {key: ties[key] for key in sorted(ties)},
        "nbf": now,
        "sub": f"system:serviceaccount:{meta['namespace']}:{meta['name']}",
    }


def _reference(obj: Tree) -> Tree:
    meta = obj["metadata"]
    return {key: meta[key] for key in ("name", "uid") if meta.get(key)}


# ------------------------------------------------------------------------------------------------ the token


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a token speaks for."""

    user: str
    uid: str
    groups: tuple[str, ...]
    audiences: tuple[str, ...]
    claims: Tree


class TokenIssuer:
    """Signs and verifies the tokens of one cluster. The key is made when it is first needed."""

    def __init__(self, env: Env) -> None:
        self._env = env
        self._key: EllipticCurvePrivateKey | None = None

    def sign(self, claims: Tree) -> str:
        """Return the claims as a signed JWT."""
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        head = {"alg": "ES256", "kid": self.key_id, "typ": "JWT"}
        text = f"{_encoded(orjson.dumps(head))}.{_encoded(orjson.dumps(claims))}"
        signature = self.key.sign(text.encode(), ECDSA(SHA256(), deterministic_signing=True))
        r, s = decode_dss_signature(signature)
        return f"{text}.{_encoded(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}"

    def verify(self, token: str) -> Identity | None:
        """Return who a token speaks for, or None for a token that is not ours, or has expired. Whether what it is bound to still exists is the caller's to ask."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA
        from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
        from cryptography.hazmat.primitives.hashes import SHA256

        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            raw, claims = _decoded(parts[2]), orjson.loads(_decoded(parts[1]))
            signature = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            self.key.public_key().verify(signature, f"{parts[0]}.{parts[1]}".encode(), ECDSA(SHA256()))
        except (ValueError, InvalidSignature):
            return None
        if not isinstance(claims, dict) or not self.valid_now(claims):
            return None
        ties: Tree = claims.get("kubernetes.io") or {}
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{ties.get('namespace', '')}", "system:authenticated")
        return Identity(claims["sub"], (ties.get("serviceaccount") or {}).get("uid", ""), groups, tuple(claims.get("aud") or ()), claims)

    def valid_now(self, claims: Tree) -> bool:
        """Tell whether a token with these claims holds at this time."""
        return bool(claims.get("nbf", 0) <= self._env.now() < claims.get("exp", 0))

    @property
    def key(self) -> EllipticCurvePrivateKey:
        """The private key."""
        if self._key is None:
            from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

            self._key = derive_private_key(self._env.random.randrange(1, _P256_ORDER), SECP256R1())
        return self._key

    @property
    def key_id(self) -> str:
        """The name of the key in the head of a token."""
        return self.public_jwk["kid"]

    @property
    def public_jwk(self) -> dict[str, str]:
        """The public key as a JSON web key (``/openid/v1/jwks``)."""
        from hashlib import sha256

        numbers = self.key.public_key().public_numbers()
        x, y = numbers.x.to_bytes(32, "big"), numbers.y.to_bytes(32, "big")
        return {
            "use": "sig",
            "kty": "EC",
            "kid": _encoded(sha256(x + y).digest()),
            "crv": "P-256",
            "alg": "ES256",
            "x": _encoded(x),
            "y": _encoded(y),
        }


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(str(error)) from None
