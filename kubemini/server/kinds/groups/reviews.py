"""Reviews: questions that are POSTed and answered at once, and of which nothing is stored.

Mirrors ``pkg/registry/authorization`` and ``pkg/registry/authentication`` (1.36).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, FieldError, Invalid, invalid
from kubemini.server.kinds.groups.authorizing import Attributes, Decision, decide, rules_of
from kubemini.server.kinds.internal_types import Struct
from kubemini.server.registry import Virtual
from kubemini.server.strategy import WriteContext

_AUTHORIZATION = "authorization.k8s.io"
_PATH = Struct(Path="", Verb="")

Verify = Callable[[str], Tree | None]
"""Returns the user (username, uid, groups, extra) that a token speaks for and, under ``audiences``, for whom it was issued; None for a bad token."""


def attributes_of(spec: Tree) -> Attributes:
    """Return what an access review asks about."""
    path = spec.get("nonResourceAttributes")
    if path is not None:
        return Attributes(path.get("verb", ""), path=path.get("path", ""))
    asked: Tree = spec.get("resourceAttributes") or {}
    keys = ("group", "resource", "subresource", "name", "namespace")
    return Attributes(asked.get("verb", ""), **{key: asked.get(key, "") for key in keys})


def _status(decision: Decision) -> Tree:
    return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}


def _spec_problems(spec: Tree) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and path is not None:
        return [invalid("spec.nonResourceAttributes", _PATH.shown(path), "cannot be specified in combination with resourceAttributes")]
    if resource is None and path is None:
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid("spec.resourceAttributes", None, text)]
    return []


def _subject_problems(spec: Tree) -> list[FieldError]:
    problems = _spec_problems(spec)
    if not spec.get("user") and not spec.get("groups"):
        problems.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    return problems


class SubjectAccess(Virtual):
    """May somebody else do something?"""

    def create(self, namespace: str, obj: Tree, ctx: WriteContext) -> Tree:
        """Answer. Raise `Invalid`."""
        spec = obj.get("spec") or {}
        problems = _subject_problems(spec)
        if problems:
            raise Invalid.of("SubjectAccessReview", _AUTHORIZATION, "", problems)
        decision = decide(ctx.reader, spec.get("user", ""), spec.get("groups") or (), attributes_of(spec))
        return {**obj, "status": _status(decision)}


class LocalSubjectAccess(Virtual):
    """May somebody else do something in this namespace?"""

    def create(self, namespace: str, obj: Tree, ctx: WriteContext) -> Tree:
        """Answer. Raise `Invalid`, `BadRequest`."""
        spec, own = obj.get("spec") or {}, (obj.get("metadata") or {}).get("namespace", "")
        problems = _subject_problems(spec)
        asked = spec.get("resourceAttributes")
        if asked is not None and asked.get("namespace", "") != own:
            problems.append(invalid("spec.resourceAttributes.namespace", asked.get("namespace", ""), "must match metadata.namespace"))
        if spec.get("nonResourceAttributes") is not None:
            problems.append(invalid("spec.nonResourceAttributes", spec["nonResourceAttributes"], "disallowed on this kind of request"))
        if problems:
            raise Invalid.of("LocalSubjectAccessReview", _AUTHORIZATION, "", problems)
        if own != namespace:
            raise BadRequest(f"namespace on request does not match namespace in object: {namespace}")
        decision = decide(ctx.reader, spec.get("user", ""), spec.get("groups") or (), attributes_of(spec))
        return {**obj, "status": _status(decision)}


class SelfSubjectAccess(Virtual):
    """May I do something?"""

    def create(self, namespace: str, obj: Tree, ctx: WriteContext) -> Tree:
        """Answer. Raise `Invalid`."""
        spec = obj.get("spec") or {}
        problems = _spec_problems(spec)
        if problems:
            raise Invalid.of("SelfSubjectAccessReview", _AUTHORIZATION, "", problems)
        return {**obj, "status": _status(decide(ctx.reader, ctx.user, ctx.groups, attributes_of(spec)))}


class SelfSubjectRules(Virtual):
    """What may I do in a namespace?"""

    def create(self, namespace: str, obj: Tree, ctx: WriteContext) -> Tree:
        """Answer. Raise `BadRequest`."""
        asked = (obj.get("spec") or {}).get("namespace", "")
        if not asked:
            raise BadRequest("no namespace on request")
        resources: list[Tree] = []
        paths: list[Tree] = []
        for rule in rules_of(ctx.reader, ctx.user, ctx.groups, asked):
            if rule.get("resources"):
                keys = ("verbs", "apiGroups", "resources", "resourceNames")
                resources.append({key: rule[key] for key in keys if rule.get(key)})
            if rule.get("nonResourceURLs"):
                paths.append({"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]})
        return {**obj, "status": {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}}


class SelfSubject(Virtual):
    """Who am I?"""

    def create(self, namespace: str, obj: Tree, ctx: WriteContext) -> Tree:
        """Answer."""
        return {**obj, "status": {"userInfo": ctx.user_info()}}


def refuse_all(_token: str) -> Tree | None:
    """Know no token."""
    return None


class TokenReviews(Virtual):
    """Whose token is this?"""

    def __init__(self, verify: Verify = refuse_all) -> None:
        self._verify = verify

    def create(self, namespace: str, obj: Tree, ctx: WriteContext) -> Tree:
        """Answer. Raise `BadRequest`."""
        spec = obj.get("spec") or {}
        token = spec.get("token", "")
        if not token:
            raise BadRequest("token is required for TokenReview in authentication")
        return {**obj, "status": self._answer(token, spec.get("audiences") or [])}

    def _answer(self, token: str, audiences: list[str]) -> Tree:
        user: Any = self._verify(token)
        if user is None:
            return {"user": {}, "error": "[invalid bearer token, token lookup failed]"}
        issued: list[str] = list(user.get("audiences") or ())
        shared = [each for each in audiences if each in issued] if audiences else issued
        if audiences and not shared:
            return {"user": {}, "error": f"token audiences {issued} is invalid for the target audiences {audiences}"}
        return {"authenticated": True, "user": {key: value for key, value in user.items() if key != "audiences"}, "audiences": shared}
