"""Names are accepted unless another definition of the group has them, and conditions tell."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.customresources.naming import Taken, decide, deleting, with_condition
from tests.unit.crd.definitions import definition

NOW = "2026-03-04T05:06:07Z"
NAMES: Tree = {"plural": "gears", "singular": "gear", "kind": "Gear", "listKind": "GearList"}


def holder(**names: Any) -> Tree:
    """Return a definition that has accepted names."""
    return {"status": {"acceptedNames": names}}


def decided(crd: Tree, *others: Tree) -> Tree:
    """Return the status that a definition gets."""
    status = decide(crd, Taken.by(others), NOW)
    assert status is not None
    return status


def conditions(status: Tree) -> dict[str, tuple[str, str, str]]:
    """Return conditions as type → (status, reason, message)."""
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in status["conditions"]}


def test_names_are_accepted_and_the_kind_established() -> None:
    """With no one else in the way, all names are accepted in one step; what is not stated is left out."""
    status = decided(definition(names={**NAMES, "shortNames": ["gr"], "categories": []}))
    assert status["acceptedNames"] == {**NAMES, "shortNames": ["gr"]}
    assert status["conditions"] == [
        {"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found", "lastTransitionTime": NOW},
        {
            "type": "Established",
            "status": "True",
            "reason": "InitialNamesAccepted",
            "message": "the initial names have been accepted",
            "lastTransitionTime": NOW,
        },
    ]
    assert status["storedVersions"] == ["v1"]


def test_nothing_to_do() -> None:
    """A definition that has its status already is left alone."""
    crd = definition()
    assert decide({**crd, "status": decided(crd)}, Taken.by(()), "2030-01-01T00:00:00Z") is None


@pytest.mark.parametrize(
    "taken, reason, message, accepted",
    [
        ({"plural": "gears"}, "PluralConflict", '"gears" is already in use', {"singular", "kind", "listKind", "shortNames"}),
        ({"shortNames": ["gear"]}, "SingularConflict", '"gear" is already in use', {"plural", "kind", "listKind", "shortNames"}),
        ({"singular": "gr"}, "ShortNamesConflict", '"gr" is already in use', {"plural", "singular", "kind", "listKind"}),
        ({"kind": "Gear"}, "KindConflict", '"Gear" is already in use', {"plural", "singular", "listKind", "shortNames"}),
        ({"kind": "GearList"}, "ListKindConflict", '"GearList" is already in use', {"plural", "singular", "kind", "shortNames"}),
        (
            {"shortNames": ["gr", "gs"]},
            "ShortNamesConflict",
            '["gr" is already in use, "gs" is already in use]',
            {"plural", "singular", "kind", "listKind"},
        ),
    ],
)
def test_conflicts(taken: Tree, reason: str, message: str, accepted: set[str]) -> None:
    """A name in use is not accepted, the others are; the kind is not established."""
    crd = definition(names={**NAMES, "shortNames": ["gr", "gs"]})
    status = decided(crd, holder(**taken))
    assert {key for key, value in status["acceptedNames"].items() if value} == accepted
    assert conditions(status) == {
        "NamesAccepted": ("False", reason, message),
        "Established": ("False", "NotAccepted", "not all names are accepted"),
    }


def test_a_freed_name_is_accepted() -> None:
    """When the holder is gone the kind is established."""
    crd = definition()
    blocked = {**crd, "status": decided(crd, holder(kind="Gear"))}
    assert conditions(decided(blocked))["Established"][0] == "True"


def test_a_change_of_names_does_not_take_back() -> None:
    """An established kind stays established when new names are not free; the old ones stay accepted."""
    crd = definition(names={**NAMES, "shortNames": ["gr"]})
    old = {**crd, "status": decided(crd)}
    new = {**old, "spec": {**old["spec"], "names": {**NAMES, "shortNames": ["gr", "gs"]}}}
    status = decided(new, holder(shortNames=["gs"]))
    assert status["acceptedNames"]["shortNames"] == ["gr"]
    assert conditions(status)["NamesAccepted"][:2] == ("False", "ShortNamesConflict")
    assert conditions(status)["Established"][:2] == ("True", "InitialNamesAccepted")


@pytest.mark.parametrize(
    "said, status, reason",
    [
        ("", "False", "MissingAnnotation"),
        ("unapproved, a test", "False", "UnapprovedAnnotation"),
        ("soon", "False", "InvalidAnnotation"),
        ("https://github.com/kubernetes/kubernetes/pull/1", "True", "ApprovedAnnotation"),
    ],
)
def test_approval_of_protected_groups(said: str, status: str, reason: str) -> None:
    """Definitions in groups of Kubernetes have a condition about their approval, before the others."""
    meta = {"annotations": {"api-approved.kubernetes.io": said}}
    found = decided(definition(name="gears.odd.k8s.io", group="odd.k8s.io", meta=meta))
    assert [each["type"] for each in found["conditions"]] == ["KubernetesAPIApprovalPolicyConformant", "NamesAccepted", "Established"]
    assert conditions(found)["KubernetesAPIApprovalPolicyConformant"][:2] == (status, reason)


def test_other_groups_need_no_approval() -> None:
    """Groups that only look like those of Kubernetes have no such condition."""
    for group in ("odd.x-k8s.io", "k8s.io.example.com", "notk8s.io"):
        assert len(decided(definition(name=f"gears.{group}", group=group))["conditions"]) == 2


def test_times_of_conditions() -> None:
    """The time of a condition changes with its status, not with its reason, and its place does not change."""
    first = with_condition([], deleting("InstanceDeletionPending", "True", "soon"), "t1")
    other = with_condition(first, {"type": "Other", "status": "True", "reason": "R", "message": ""}, "t2")
    going = with_condition(other, deleting("InstanceDeletionInProgress", "True", "now"), "t3")
    done = with_condition(going, deleting("InstanceDeletionCompleted", "False", "done"), "t4")
    assert [(each["type"], each["reason"], each["lastTransitionTime"]) for each in going] == [
        ("Terminating", "InstanceDeletionInProgress", "t1"),
        ("Other", "R", "t2"),
    ]
    assert done[0]["lastTransitionTime"] == "t4"
