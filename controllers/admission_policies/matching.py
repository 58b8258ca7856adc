"""Which kinds a policy is checked against: those that its rules name. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree

MOST = 10
"""Kinds that one rule is checked for; upstream stops there too."""


class GroupVersionKind(NamedTuple):
    """A kind in one version."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


def kinds_of(spec: Tree, served: Sequence[Resource]) -> list[GroupVersionKind]:
    """Return the kinds whose objects come before a policy, sorted. Rules with wildcards are left out, and so are subresources and what is not served."""
    known = {(each.group, each.version, each.plural): each.kind for each in served}
    found: dict[GroupVersionKind, None] = {}
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        groups, versions, resources = (_named(rule.get(field) or ()) for field in ("apiGroups", "apiVersions", "resources"))
        places = [
            (group, version, resource) for group in groups for version in versions for resource in resources if (group, version, resource) in known
        ]
        found |= dict.fromkeys(GroupVersionKind(group, version, known[group, version, resource]) for group, version, resource in places[:MOST])
    return sorted(found)


def _named(names: Sequence[str]) -> list[str]:
    if any("*" in name for name in names):
        return []
    return sorted({name for name in names if "/" not in name})
