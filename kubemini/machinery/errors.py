"""The error tree of the API: every leaf renders the exact Kubernetes ``Status`` that a real API server answers.

    KubeminiError
      ApiStatus                 anything that an HTTP client sees as a Status; code, reason, details
        BadRequest 400, Unauthorized 401, Forbidden 403, NotFound 404, MethodNotAllowed 405, NotAcceptable 406
        Conflict 409 (AlreadyExists, FieldConflict), Expired 410, TooLarge 413, UnsupportedMediaType 415
        Invalid 422, TooManyRequests 429, InternalError 500, ServerError 500 (empty reason), Timeout 504, ServiceUnavailable 503
      ConfigError               wrong flags, files or arguments given to kubemini itself
      DeterminismError          a seam was bypassed (wall clock, mutation of a shared tree, ...)

Field errors are plain values (`FieldError`), collected in lists by validation and wrapped once by `Invalid.of`.
Mirrors apimachinery's ``pkg/api/errors`` and ``pkg/util/validation/field``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import orjson

from kubemini.machinery.gotext import go_escaped, quoted


class KubeminiError(Exception):
    """Root of every error that kubemini raises on purpose."""


class ConfigError(KubeminiError):
    """A flag, file or argument given to kubemini is wrong; the message says which and how to mend it."""


class DeterminismError(KubeminiError):
    """Code went round a seam that determinism stands on (clock, chance, ids, immutability of trees)."""


# ----------------------------------------------------------------------------------------------- field errors


@dataclass(frozen=True, slots=True)
class FieldError:
    """One violated rule of one field: `reason` is the cause's reason, `body` the text behind ``path: ``."""

    reason: str
    field: str
    body: str

    def __str__(self) -> str:
        return f"{self.field}: {self.body}"

    def cause(self) -> dict[str, str]:
        """Return the entry of ``details.causes``."""
        return {"reason": self.reason, "message": self.body, "field": self.field}


def shown(value: Any) -> str:
    r"""Return a value as field errors print it: strings quoted, booleans and numbers bare, the rest as Go's JSON, nil as null.

    >>> print(shown(["a && b"]), shown("a && b"))
    ["a \u0026\u0026 b"] "a && b"
    """
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict | list | bool) or value is None:
        return go_escaped(orjson.dumps(value).decode())
    return str(value)


def required(field: str, detail: str = "") -> FieldError:
    """Return ``Required value[: detail]``."""
    return FieldError("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")


def invalid(field: str, value: Any, detail: str = "") -> FieldError:
    """Return ``Invalid value: VALUE: detail``."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {shown(value)}: {detail}" if detail else f"Invalid value: {shown(value)}")


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return ``Unsupported value: VALUE: supported values: "A", "B"``; a set is listed sorted, a sequence in its own order (both occur upstream)."""
    names = sorted(supported) if isinstance(supported, set | frozenset) else supported
    listed = ", ".join(f'"{each}"' for each in names)
    return FieldError("FieldValueNotSupported", field, f"Unsupported value: {shown(value)}: supported values: {listed}")


def invalid_omitted(field: str, detail: str) -> FieldError:
    """Return ``Invalid value: detail`` of a rule that does not show the value."""
    return FieldError("FieldValueInvalid", field, f"Invalid value: {detail}")


def duplicate(field: str, value: Any) -> FieldError:
    """Return ``Duplicate value: VALUE``."""
    return FieldError("FieldValueDuplicate", field, f"Duplicate value: {shown(value)}")


def not_found(field: str, value: Any) -> FieldError:
    """Return ``Not found: VALUE``."""
    return FieldError("FieldValueNotFound", field, f"Not found: {shown(value)}")


def forbidden(field: str, detail: str) -> FieldError:
    """Return ``Forbidden: detail``."""
    return FieldError("FieldValueForbidden", field, f"Forbidden: {detail}")


def too_long(field: str, limit: int) -> FieldError:
    """Return ``Too long: may not be more than LIMIT bytes``."""
    return FieldError("FieldValueTooLong", field, f"Too long: may not be more than {limit} bytes")


def too_many(field: str, actual: int, limit: int) -> FieldError:
    """Return ``Too many: ACTUAL: must have at most LIMIT items``."""
    return FieldError("FieldValueTooMany", field, f"Too many: {actual}: must have at most {limit} item{'' if limit == 1 else 's'}")


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return ``Invalid value: VALUE: detail`` with the cause reason of a wrong type."""
    return FieldError("FieldValueTypeInvalid", field, f"Invalid value: {shown(value)}: {detail}")


# ----------------------------------------------------------------------------------------------- statuses


class ApiStatus(KubeminiError):
    """A failure in Kubernetes' own form. `code` is the HTTP status, `reason` the machine-readable word."""

    code = 500
    reason = ""

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})
        self.metadata = dict(metadata or {})
        self.warnings: list[str] = []
        """What the request had been warned of when it failed."""

    def warned(self, warnings: Iterable[str]) -> Self:
        """Put warnings before those that it has."""
        self.warnings[:0] = warnings
        return self

    @property
    def retry_after(self) -> int | None:
        """Seconds to wait before a retry, mirrored in the ``Retry-After`` header; None without one."""
        return self.details.get("retryAfterSeconds") or None

    def has_cause(self, reason: str) -> bool:
        """Tell whether the details name a cause, such as ``NamespaceTerminating``."""
        return any(cause.get("reason") == reason for cause in self.details.get("causes") or ())

    def to_status(self) -> dict[str, Any]:
        """Return the ``Status`` object."""
        status: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": self.metadata, "status": "Failure", "message": self.message}
        if self.reason:
            status["reason"] = self.reason
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status


def qualified(plural: str, group: str) -> str:
    """Return ``plural.group``, or the bare plural for the core group."""
    return f"{plural}.{group}" if group else plural


def _about(plural: str, group: str, name: str) -> dict[str, Any]:
    details = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = plural
    return details


class BadRequest(ApiStatus):
    """400: the request itself is malformed."""

    code, reason = 400, "BadRequest"


class Unauthorized(ApiStatus):
    """401: no or wrong credentials."""

    code, reason = 401, "Unauthorized"


class Forbidden(ApiStatus):
    """403: authorization or admission says no."""

    code, reason = 403, "Forbidden"

    @classmethod
    def of(cls, plural: str, group: str, name: str, why: str, *, causes: Sequence[Mapping[str, str]] = ()) -> Forbidden:
        """Return an admission refusal: ``pods "x" is forbidden: WHY``."""
        details = _about(plural, group, name)
        if causes:
            details["causes"] = list(causes)
        head = f'{qualified(plural, group)} "{name}"' if name else qualified(plural, group)
        return cls(f"{head} is forbidden: {why}", details=details)


class NotFound(ApiStatus):
    """404: no such object, kind or path."""

    code, reason = 404, "NotFound"

    @classmethod
    def of(cls, plural: str, group: str, name: str) -> NotFound:
        """Return ``pods "x" not found``."""
        return cls(f'{qualified(plural, group)} "{name}" not found', details=_about(plural, group, name))

    @classmethod
    def path(cls) -> NotFound:
        """Return the answer for an unknown API path."""
        return cls("the server could not find the requested resource")


class MethodNotAllowed(ApiStatus):
    """405: the resource has no such verb."""

    code, reason = 405, "MethodNotAllowed"

    def __init__(self, message: str = "the server does not allow this method on the requested resource", **more: Any) -> None:
        super().__init__(message, **more)


class NotAcceptable(ApiStatus):
    """406: none of the accepted representations can be served."""

    code, reason = 406, "NotAcceptable"


class Conflict(ApiStatus):
    """409: the object has moved on, or a precondition does not hold."""

    code, reason = 409, "Conflict"

    @classmethod
    def of(cls, plural: str, group: str, name: str, why: str) -> Conflict:
        """Return ``Operation cannot be fulfilled on pods "x": WHY``."""
        return cls(f'Operation cannot be fulfilled on {qualified(plural, group)} "{name}": {why}', details=_about(plural, group, name))

    @classmethod
    def modified(cls, plural: str, group: str, name: str) -> Conflict:
        """Return the answer to a stale resourceVersion."""
        return cls.of(plural, group, name, "the object has been modified; please apply your changes to the latest version and try again")


class AlreadyExists(Conflict):
    """409: the name is taken."""

    reason = "AlreadyExists"

    @classmethod
    def at(cls, plural: str, group: str, name: str, *, deleting: bool = False) -> AlreadyExists:
        """Return ``[object is being deleted: ]pods "x" already exists``."""
        head = "object is being deleted: " if deleting else ""
        return cls(f'{head}{qualified(plural, group)} "{name}" already exists', details=_about(plural, group, name))


class FieldConflict(Conflict):
    """409: another field manager owns what a server-side apply would change."""

    @classmethod
    def build(cls, message: str, causes: Sequence[Mapping[str, str]]) -> FieldConflict:
        """Return the conflict with one ``FieldManagerConflict`` cause per path."""
        return cls(message, details={"causes": list(causes)})


class Expired(ApiStatus):
    """410: the revision asked for is compacted."""

    code, reason = 410, "Expired"


class TooLarge(ApiStatus):
    """413: the body is over the limit."""

    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiStatus):
    """415: the body is in no format that the endpoint takes."""

    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiStatus):
    """422: the object breaks rules of its kind."""

    code, reason = 422, "Invalid"

    @classmethod
    def of(cls, kind: str, group: str, name: str, errors: Sequence[FieldError]) -> Invalid:
        """Return ``Kind.group "name" is invalid: …`` with one cause per error; the message tells each only once."""
        texts = list(dict.fromkeys(map(str, errors)))
        listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        details = _about(kind, group, name)
        details["causes"] = [each.cause() for each in errors]
        return cls(f'{qualified(kind, group)} "{name}" is invalid: {listed}', details=details)

    @classmethod
    def generic(cls) -> Invalid:
        """Return the bare refusal of a JSON patch that cannot be applied."""
        return cls("the server rejected our request due to an error in our request", details={})


class TooManyRequests(ApiStatus):
    """429: slow down, or a disruption budget says not now."""

    code, reason = 429, "TooManyRequests"


class InternalError(ApiStatus):
    """500 with reason InternalError."""

    code, reason = 500, "InternalError"


class ServerError(ApiStatus):
    """500 with an empty reason: what the real server answers for errors that are no API errors."""

    code, reason = 500, ""


class ServiceUnavailable(ApiStatus):
    """503."""

    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiStatus):
    """504."""

    code, reason = 504, "Timeout"

    @classmethod
    def future_revision(cls, asked: int, current: int) -> Timeout:
        """Return the answer to a resourceVersion that has not happened yet."""
        return cls(
            f"Timeout: Too large resource version: {asked}, current: {current}",
            details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}], "retryAfterSeconds": 1},
        )
