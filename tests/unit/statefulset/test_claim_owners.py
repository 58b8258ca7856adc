"""Who owns claims: the table of persistentVolumeClaimRetentionPolicy, strangers, stale references."""

from __future__ import annotations

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.stateful_set import claim_owners
from tests.unit.statefulset.samples import pod, stateful_set

SET: Tree = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "set", "controller": True, "blockOwnerDeletion": True}
DEPLOYMENT: Tree = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "uid": "x", "controller": True}


def pod_ref(ordinal: int, uid: str | None = None) -> Tree:
    """Return the reference of a pod as its claim has it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": f"web-{ordinal}",
        "uid": uid or f"pod-{ordinal}",
        "controller": True,
        "blockOwnerDeletion": True,
    }


def claim(*owners: Tree) -> Tree:
    """Return a claim with owners."""
    return {"metadata": {"name": "data-web-0", "namespace": "default", "ownerReferences": list(owners)}}


@pytest.mark.parametrize(
    "deleted, scaled, live, condemned",
    [
        ("Retain", "Retain", [], []),
        ("Delete", "Retain", [SET], [SET]),
        ("Retain", "Delete", [], [pod_ref(5)]),
        ("Delete", "Delete", [SET], [pod_ref(5)]),
    ],
)
def test_the_table(deleted: str, scaled: str, live: list[Tree], condemned: list[Tree]) -> None:
    """Each policy gives a claim of a live pod and one of a condemned pod the owners that the table says, whatever they were."""
    owner = stateful_set(1, persistentVolumeClaimRetentionPolicy={"whenDeleted": deleted, "whenScaled": scaled})
    for ordinal, expected in ((0, live), (5, condemned)):
        for before in ([], [SET], [pod_ref(ordinal)]):
            found = claim_owners.corrected(claim(*before), owner, pod(ordinal))
            assert found["metadata"]["ownerReferences"] == expected
            assert claim_owners.up_to_date(found, owner, pod(ordinal))
            assert claim_owners.up_to_date(claim(*before), owner, pod(ordinal)) == (before == expected)


def test_a_claim_of_another_controller_is_left_to_it() -> None:
    """A policy is ignored where somebody else controls the claim: our references go, theirs stay."""
    owner = stateful_set(1, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"})
    assert claim_owners.up_to_date(claim(DEPLOYMENT), owner, pod(0))
    assert not claim_owners.up_to_date(claim(DEPLOYMENT, SET), owner, pod(0))
    assert claim_owners.corrected(claim(DEPLOYMENT, SET), owner, pod(0))["metadata"]["ownerReferences"] == [DEPLOYMENT]


def test_references_that_do_not_control_are_upgraded() -> None:
    """A reference of an older version, without controller, is written anew."""
    owner = stateful_set(1, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Delete", "whenScaled": "Retain"})
    loose = {key: value for key, value in SET.items() if key != "controller"}
    assert not claim_owners.up_to_date(claim(loose), owner, pod(0))
    assert claim_owners.corrected(claim(loose), owner, pod(0))["metadata"]["ownerReferences"] == [SET]


def test_a_claim_that_goes_with_an_earlier_pod_is_waited_for() -> None:
    """A claim that belongs to a pod of the same name makes a new one wait, and is not touched."""
    owner = stateful_set(1, persistentVolumeClaimRetentionPolicy={"whenDeleted": "Retain", "whenScaled": "Delete"})
    stale = claim(pod_ref(0, uid="before"))
    assert claim_owners.waits_for(stale, "web-0")
    assert not claim_owners.waits_for(stale, "web-1")
    assert claim_owners.up_to_date(stale, owner, pod(0))


def test_made_from_a_template() -> None:
    """A claim carries its template's labels under the selector's, its annotations, and its spec."""
    template = {
        "metadata": {"name": "data", "labels": {"app": "x", "tier": "db"}, "annotations": {"a": "1"}},
        "spec": {"accessModes": ["ReadWriteOnce"]},
    }
    found = claim_owners.made(stateful_set(), template, "data-web-0")
    assert found["metadata"] == {"name": "data-web-0", "namespace": "default", "labels": {"app": "web", "tier": "db"}, "annotations": {"a": "1"}}
    assert found["spec"] == template["spec"]
