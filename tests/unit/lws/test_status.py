"""Counts and conditions of LeaderWorkerSets."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.controllers.lws.groups import Group
from kubemini.controllers.lws.status import count, next_status
from kubemini.controllers.lws.view import LwsView

NOW = "1970-01-01T00:00:01Z"


def lws(status: Tree | None = None, *, replicas: int = 2, partition: int = 0, generation: int = 1) -> LwsView:
    """Return a LeaderWorkerSet with a status."""
    rolling = {"rollingUpdateConfiguration": {"partition": partition}}
    spec = {"replicas": replicas, "leaderWorkerTemplate": {"workerTemplate": {}}, "rolloutStrategy": rolling}
    meta = {"name": "llm", "namespace": "default", "uid": "u", "generation": generation}
    return LwsView({"metadata": meta, "spec": spec, "status": status or {}})


def after(owner: LwsView, text: str) -> tuple[Tree, tuple[str, str] | None]:
    """Return status and event for groups with a letter each (O old, N new; small: down)."""
    found = [Group(index, ready=letter.isupper(), updated=letter in "Nn") for index, letter in enumerate(text)]
    written = next_status(owner, {"status": {"replicas": len(text)}}, count(owner, found), NOW)
    return (written.status, written.said) if written is not None else (owner.status, None)


def true(status: Tree) -> list[str]:
    """Return the types of true conditions."""
    return [each["type"] for each in status["conditions"] if each["status"] == "True"]


def test_the_life_of_conditions() -> None:
    """Progressing, Available, an update in two passes, Available again: one excludes the others, and what is flipped keeps its reason."""
    status, said = after(lws(), "nn")
    assert true(status) == ["Progressing"]
    assert said == ("GroupsProgressing", "Replicas are progressing, with 0 groups ready of total 2 groups")
    status, said = after(lws(status), "NN")
    assert true(status) == ["Available"]
    assert said == ("AllGroupsReady", "All replicas are ready, with 2 groups ready of total 2 groups")
    assert status["conditions"][0]["reason"] == "GroupsProgressing"
    assert after(lws(status), "NN") == (status, None)
    status, said = after(lws(status), "OO")
    assert true(status) == ["UpdateInProgress"]
    status, said = after(lws(status), "OO")
    assert true(status) == ["Progressing", "UpdateInProgress"]
    assert said is not None
    assert said[0] == "GroupsUpdating"
    status, _ = after(lws(status), "NN")
    assert true(status) == ["Available"]


def test_no_groups_are_available() -> None:
    """Zero of zero is available at once."""
    status, _ = after(lws(replicas=0), "")
    assert true(status) == ["Available"]
    assert "readyReplicas" not in status


def test_surge_groups_count_as_ready_but_not_as_wanted() -> None:
    """A surge group is ready and updated, but does not make the wanted ones so."""
    status, _ = after(lws(), "OnN")
    assert (status["readyReplicas"], status["updatedReplicas"]) == (2, 2)
    assert true(status) == ["UpdateInProgress"]


def test_groups_below_the_partition_are_no_update_in_progress() -> None:
    """What the partition holds back does not count as being updated; without a partition the update would not be done."""
    owner = lws(partition=1)
    status, _ = after(owner, "ON")
    assert true(status) == ["Available"]
    assert not count(owner, [Group(0, ready=True, updated=False), Group(1, ready=True, updated=True)]).update_done(owner)


def test_a_new_generation_is_told_in_every_condition() -> None:
    """observedGeneration rises in the status and all conditions."""
    status, _ = after(lws(), "NN")
    status, _ = after(lws(status, generation=2), "NN")
    assert status["observedGeneration"] == 2
    assert {each["observedGeneration"] for each in status["conditions"]} == {2}
