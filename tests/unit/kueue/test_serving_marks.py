"""What Kueue's webhook writes into the templates of a LeaderWorkerSet."""

from __future__ import annotations

import pytest

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.webhooks.serving import mark_leader_worker_set

POD: Tree = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
GROUPED: Tree = {"metadata": {"annotations": {names.POD_SET_GROUP_NAME: "g"}}, **POD}


@pytest.mark.parametrize(
    "templates, offset",
    [
        ({"workerTemplate": POD}, None),
        ({"leaderTemplate": POD, "workerTemplate": POD}, "1"),
        ({"leaderTemplate": GROUPED, "workerTemplate": GROUPED}, None),
    ],
    ids=["one pod set", "two pod sets", "a group of two"],
)
def test_ranks_of_workers(templates: Tree, offset: str | None) -> None:
    """Workers are told that their indexes begin at 1 where they are a pod set of their own, unless a group of pod sets counts through both."""
    lws = {"metadata": {"name": "l", "labels": {names.QUEUE_NAME: "q"}}, "spec": {"leaderWorkerTemplate": {"size": 3, **templates}}}
    marked = mark_leader_worker_set(lws, True)["spec"]["leaderWorkerTemplate"]
    assert marked["workerTemplate"]["metadata"]["annotations"].get(names.POD_INDEX_OFFSET) == offset
    assert names.POD_INDEX_OFFSET not in (marked.get("leaderTemplate") or marked["workerTemplate"])["metadata"]["annotations"] or offset
