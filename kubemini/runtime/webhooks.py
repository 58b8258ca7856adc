"""Admission webhooks of our own controllers, in process.

An operator (JobSet, LeaderWorkerSet, Kueue) brings defaulting and validating webhooks beside its control loops. Here they are pure functions in
``controllers/<name>/webhook.py``; the composition root puts them behind the built-in admission plugins, where the API server would call
them. A refusal reads as the API server words it: ``admission webhook "NAME" denied the request: …``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates


class Reader(Protocol):
    """Synchronous reads at the current revision, as a webhook's own cached client would serve them."""

    def get(self, resource: str, namespace: str, name: str) -> Tree | None:
        """Return an object by storage name (``jobs.batch``), or None."""
        ...

    def list(self, resource: str, namespace: str = "") -> Sequence[Tree]:
        """Return the objects of a resource in key order."""
        ...

    def starting(self, resource: str, namespace: str, prefix: str) -> Sequence[Tree]:
        """Return the objects of a namespace whose names start with `prefix`, in key order. O(log n) beside the matches."""
        ...


@dataclass(slots=True)
class WebhookRequest:
    """One admission review. `operation` is CREATE, UPDATE or DELETE; `obj` is the new object (None on DELETE), `old` the stored one (None on CREATE)."""

    operation: str
    namespace: str
    name: str
    obj: Tree | None
    old: Tree | None
    env: Env
    gates: FeatureGates
    reader: Reader
    user: str = ""
    subresource: str = ""
    warnings: list[str] = field(default_factory=list)


class Denied(Exception):
    """A webhook says no. `code` and `reason` are the answer's; controller-runtime validators answer 403 Forbidden, or 422 Invalid for wrapped field errors."""

    def __init__(self, message: str, *, code: int = 403, reason: str = "Forbidden", details: Tree | None = None) -> None:
        super().__init__(message)
        self.message, self.code, self.reason, self.details = message, code, reason, details

    @classmethod
    def invalid(cls, kind: str, group: str, name: str, errors: Sequence[FieldError]) -> Denied:
        """Return a refusal with an Invalid status of field errors inside, as validators that return apierrors give."""
        texts = list(dict.fromkeys(str(each) for each in errors))
        listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        details: Tree = {"name": name} if name else {}
        details |= {"group": group, "kind": kind, "causes": [each.cause() for each in dict.fromkeys(errors)]}
        return cls(f'{kind}.{group} "{name}" is invalid: {listed}', code=422, reason="Invalid", details=details)

    @classmethod
    def fields(cls, errors: Sequence[FieldError]) -> Denied:
        """Return a refusal whose text is the aggregate of field errors, as validators that return ``ErrorList.ToAggregate()`` give."""
        texts = list(dict.fromkeys(str(each) for each in errors))
        return cls(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook. `mutate` returns the new tree or None for no change; `validate` raises `Denied`. Both are synchronous and never mutate their arguments."""

    name: str
    resources: tuple[str, ...]
    """Storage names: ``jobsets.jobset.x-k8s.io``, ``pods``, ``jobs.batch``, …"""
    operations: tuple[str, ...] = ("CREATE", "UPDATE")
    subresources: tuple[str, ...] = ("",)
    mutate: Callable[[WebhookRequest], Tree | None] | None = None
    validate: Callable[[WebhookRequest], None] | None = None
    decodes: bool = True
    """Whether the mutating one reads every object into its Go type, and so refuses what does not fit."""
