"""The rules of ConfigMaps and Secrets: keys, sizes, typed secrets, immutability."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, forbidden, invalid, required, too_long
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, wrong
from kubemini.server.kinds.core.key_pairs import pair_fault
from kubemini.server.kinds.tables import CONFIG_MAP, SECRET
from kubemini.server.strategy import Strategy, WriteContext

MAX_BYTES: Final = 1024 * 1024
_FROZEN = "field is immutable when `immutable` is set"
ACCOUNT_NAME = "kubernetes.io/service-account.name"


def _decoded_length(text: str) -> int:
    """Return how many bytes a base64 text stands for."""
    return len(text) * 3 // 4 - text[-2:].count("=")


def _frozen(new: Tree, old: Tree, *keys: str) -> Errors:
    """Refuse changes of an object that was made immutable."""
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield forbidden("immutable", _FROZEN)
    for key in keys:
        if (new.get(key) or {}) != (old.get(key) or {}):
            yield forbidden(key, _FROZEN)


class ConfigMapStrategy(Strategy):
    """ConfigMaps."""

    metadata_again = "after"
    table = CONFIG_MAP

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check keys and size."""
        return list(_config_map(obj))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check immutability, keys and size."""
        return [*_frozen(new, old, "data", "binaryData"), *_config_map(new)]


def _config_map(obj: Tree) -> Errors:
    data: Mapping[str, str] = obj.get("data") or {}
    binary: Mapping[str, str] = obj.get("binaryData") or {}
    size = 0
    for key, value in data.items():
        yield from wrong(names.config_map_key, key, f"data[{key}]")
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += len(value.encode()) if not value.isascii() else len(value)
    for key, value in binary.items():
        yield from wrong(names.config_map_key, key, f"binaryData[{key}]")
        size += _decoded_length(value)
    if size > MAX_BYTES:
        yield too_long("[]", MAX_BYTES)


# ------------------------------------------------------------------------------------------------------ secrets


def _type(secret: Tree) -> str:
    return str(secret.get("type") or "")


SECRET_FIELDS = {"type": _type}


class SecretStrategy(Strategy):
    """Secrets. ``stringData`` is written into ``data`` and never stored."""

    metadata_again = "after"
    table = SECRET
    fields = SECRET_FIELDS

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Write ``stringData`` into ``data``."""
        texts = obj.get("stringData")
        if texts is None:
            return obj
        data = {**(obj.get("data") or {}), **{key: b64encode(value.encode()).decode() for key, value in texts.items()}}
        fresh = {key: value for key, value in obj.items() if key != "stringData"}
        return {**fresh, "data": data} if data else fresh

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check keys, size, and what the type asks for."""
        return list(_secret(obj))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check that the type stays, immutability, and the rest."""
        errors = [] if _type(new) == _type(old) else [invalid("type", _type(new), IMMUTABLE)]
        return [*errors, *_frozen(new, old, "data"), *_secret(new)]

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Say what is wrong with the key pair of a TLS Secret."""
        if _type(new) != "kubernetes.io/tls":
            return []
        data: Tree = new.get("data") or {}
        fault = pair_fault(*(b64decode(data.get(key) or "") for key in ("tls.crt", "tls.key")))
        return [] if fault is None else [fault]


def _secret(obj: Tree) -> Errors:
    data: Mapping[str, str] = obj.get("data") or {}
    size = 0
    for key, value in data.items():
        yield from wrong(names.config_map_key, key, f"data[{key}]")
        size += _decoded_length(value)
    if size > MAX_BYTES:
        yield too_long("data", MAX_BYTES)
    yield from _typed(obj, data)


def _typed(obj: Tree, data: Mapping[str, str]) -> Errors:
    """Check what the type of a Secret asks for."""
    match _type(obj):
        case "kubernetes.io/service-account-token":
            if not (obj["metadata"].get("annotations") or {}).get(ACCOUNT_NAME):
                yield required(f"metadata.annotations[{ACCOUNT_NAME}]")
        case "kubernetes.io/dockercfg":
            yield from _json(data, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            yield from _json(data, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                yield required("data[username]")
                yield required("data[password]")
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                yield required("data[ssh-privatekey]")
        case "kubernetes.io/tls":
            for key in ("tls.crt", "tls.key"):
                if key not in data:
                    yield required(f"data[{key}]")
        case _:
            pass


def _json(data: Mapping[str, str], key: str) -> Errors:
    if key not in data:
        yield required(f"data[{key}]")
        return
    problem = _json_problem(b64decode(data[key]))
    if problem:
        yield invalid(f"data[{key}]", "<secret contents redacted>", problem)


def _json_problem(raw: bytes) -> str:
    """Return what Go's JSON decoder says of a text that is no object; "" for an object."""
    if not raw:
        return "unexpected end of JSON input"
    try:
        value: Any = orjson.loads(raw)
    except ValueError:
        first = raw.lstrip()[:1].decode(errors="replace")
        return f"invalid character '{first}' looking for beginning of value"
    if isinstance(value, dict) or value is None:
        return ""
    kind = "array" if isinstance(value, list) else "string" if isinstance(value, str) else "bool" if isinstance(value, bool) else "number"
    return f"json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
