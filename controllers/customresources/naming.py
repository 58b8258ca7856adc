"""Which names of a definition are accepted, and the conditions that say so. Pure functions.

Mirrors the naming, establishing and API approval controllers of apiextensions-apiserver (1.36). Upstream needs two writes to say that a kind
is established, because its servers have to hear of the names first; here the kind is served in the step that commits the condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from kubemini.api.trees import Tree

APPROVED = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"


@dataclass(frozen=True, slots=True)
class Taken:
    """The names that other definitions of the group hold."""

    resources: frozenset[str]
    kinds: frozenset[str]

    @classmethod
    def by(cls, others: Iterable[Tree]) -> Taken:
        """Return the names that some definitions have accepted."""
        resources: list[str] = []
        kinds: list[str] = []
        for other in others:
            names = (other.get("status") or {}).get("acceptedNames") or {}
            resources += [names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())]
            kinds += [names.get("kind", ""), names.get("listKind", "")]
        return cls(frozenset(resources), frozenset(kinds))


def decide(crd: Tree, taken: Taken, stamp: str) -> Tree | None:
    """Return the status that a definition ought to have, or None where it has it. `stamp` is the time of transitions."""
    status = crd.get("status") or {}
    wanted = (crd.get("spec") or {}).get("names") or {}
    conditions: list[Tree] = list(status.get("conditions") or ())
    policy = _approval(crd)
    if policy is not None:
        conditions = with_condition(conditions, policy, stamp)
    accepted = status.get("acceptedNames") or {}
    if wanted != accepted or not _is(conditions, "Established"):
        accepted, naming = _accepted(wanted, accepted, taken)
        conditions = with_condition(conditions, naming, stamp)
        if not _is(conditions, "Established"):
            fine = naming["status"] == "True"
            conditions = with_condition(
                conditions,
                _condition("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
                if fine
                else _condition("Established", "False", "NotAccepted", "not all names are accepted"),
                stamp,
            )
    new = {**status, "acceptedNames": accepted, "conditions": conditions}
    return None if new == status else new


def _accepted(wanted: Tree, accepted: Tree, taken: Taken) -> tuple[Tree, Tree]:
    """Return the names that are accepted now, and the condition about them (the last conflict wins, as upstream)."""
    new: Tree = dict(accepted)
    reason = message = ""
    for key, used, conflict in (("plural", taken.resources, "PluralConflict"), ("singular", taken.resources, "SingularConflict")):
        if _free(wanted.get(key, ""), accepted.get(key, ""), used):
            new[key] = wanted.get(key, "")
        else:
            reason, message = conflict, _in_use(wanted[key])
    short = [each for each in wanted.get("shortNames") or () if each not in (accepted.get("shortNames") or ()) and each in taken.resources]
    if short:
        reason = "ShortNamesConflict"
        texts = list(dict.fromkeys(map(_in_use, short)))
        message = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    else:
        new["shortNames"] = wanted.get("shortNames")
    for key, conflict in (("kind", "KindConflict"), ("listKind", "ListKindConflict")):
        if _free(wanted.get(key, ""), accepted.get(key, ""), taken.kinds):
            new[key] = wanted.get(key, "")
        else:
            reason, message = conflict, _in_use(wanted[key])
    new["categories"] = wanted.get("categories")
    names = {key: new[key] for key in sorted(new) if new[key] or key in {"kind", "plural"}}
    if reason:
        return names, _condition("NamesAccepted", "False", reason, message)
    return names, _condition("NamesAccepted", "True", "NoConflicts", "no conflicts found")


def _free(wanted: str, accepted: str, used: frozenset[str]) -> bool:
    return wanted == accepted or wanted not in used


def _in_use(name: str) -> str:
    return f'"{name}" is already in use'


def _approval(crd: Tree) -> Tree | None:
    """Return the condition about the approval of an API in a protected group, None for other groups."""
    group = (crd.get("spec") or {}).get("group") or ""
    if not re.search(r"(^|\.)(k8s\.io|kubernetes\.io)$", group) or group.endswith(".x-k8s.io"):
        return None
    said = (crd["metadata"].get("annotations") or {}).get(APPROVED, "")
    kind = "KubernetesAPIApprovalPolicyConformant"
    if not said:
        return _condition(kind, "False", "MissingAnnotation", f'protected groups must have approval annotation "{APPROVED}", {_SEE}')
    if said.startswith("unapproved"):
        return _condition(kind, "False", "UnapprovedAnnotation", f'not approved: "{said}"')
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]", said):
        return _condition(kind, "True", "ApprovedAnnotation", f"approved in {said}")
    detail = f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason starting with "unapproved", {_SEE}'
    return _condition(kind, "False", "InvalidAnnotation", detail)


def _condition(type_: str, status: str, reason: str, message: str) -> Tree:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def deleting(reason: str, status: str, message: str) -> Tree:
    """Return the condition Terminating."""
    return _condition("Terminating", status, reason, message)


def with_condition(conditions: list[Tree], new: Tree, stamp: str) -> list[Tree]:
    """Return conditions with one set: its time changes with its status only, its place never."""
    for place, old in enumerate(conditions):
        if old["type"] == new["type"]:
            time = old.get("lastTransitionTime") if old["status"] == new["status"] and old.get("lastTransitionTime") else stamp
            return [*conditions[:place], {**old, **new, "lastTransitionTime": time}, *conditions[place + 1 :]]
    return [*conditions, {**new, "lastTransitionTime": stamp}]


def _is(conditions: list[Tree], type_: str) -> bool:
    return any(each["type"] == type_ and each["status"] == "True" for each in conditions)


def is_established(crd: Tree) -> bool:
    """Tell whether the objects of a definition are served."""
    return _is((crd.get("status") or {}).get("conditions") or [], "Established")
