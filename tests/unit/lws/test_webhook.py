"""Defaults and rules of LeaderWorkerSets."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.controllers.lws.defaulting import defaulted
from kubemini.controllers.lws.validation import problems_of, problems_of_change


def lws(template: Tree | None = None, *, name: str = "llm", annotations: Tree | None = None, **spec: Any) -> Tree:
    """Return a LeaderWorkerSet as the schema leaves it."""
    group = {"size": 1, "workerTemplate": {"spec": {"containers": [{"name": "c"}]}}, "restartPolicy": "RecreateGroupOnPodRestart", **(template or {})}
    return {"metadata": {"name": name, "annotations": annotations or {}}, "spec": {"replicas": 1, "leaderWorkerTemplate": group, **spec}}


def rolling(**config: Any) -> Tree:
    """Return a rollout strategy."""
    return {"type": "RollingUpdate", "rollingUpdateConfiguration": {"maxUnavailable": 1, "maxSurge": 0, "partition": 0, **config}}


def test_defaults() -> None:
    """The strategy, the network and the deprecated restart policy are filled in; templates get what Go always writes."""
    found = defaulted(lws({"restartPolicy": "Default"}))
    assert found is not None
    spec = found["spec"]
    assert spec["rolloutStrategy"] == rolling()
    assert spec["networkConfig"] == {"subdomainPolicy": "Shared"}
    assert spec["leaderWorkerTemplate"]["restartPolicy"] == "None"
    assert spec["leaderWorkerTemplate"]["workerTemplate"] == {"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]}}


def test_nothing_is_rewritten_where_no_default_is_missing() -> None:
    """The webhook answers without a patch when its own defaults change nothing."""
    assert defaulted(lws(networkConfig={"subdomainPolicy": "Shared"}, rolloutStrategy=rolling())) is None


@pytest.mark.parametrize(
    "broken, text",
    [
        (lws(name="1llm"), "metadata.name: Invalid value"),
        (lws({"size": 0}), "size must be equal or greater than 1"),
        (lws({"size": 70000}, replicas=70000), "the product of replicas and worker replicas must not exceed 2147483647"),
        (lws(rolloutStrategy=rolling(maxUnavailable=-1)), "maxUnavailable: Invalid value: -1: must be greater than or equal to 0"),
        (lws(rolloutStrategy=rolling(maxSurge="101%")), 'maxSurge: Invalid value: "101%": must not be greater than 100%'),
        (lws(rolloutStrategy=rolling(maxUnavailable="abc")), "a valid percent string must be"),
        (lws(rolloutStrategy=rolling(partition=-1)), "partition: Invalid value: -1"),
        (lws(rolloutStrategy=rolling(maxUnavailable=0)), "must not be 0 when `maxSurge` is 0"),
        (lws(replicas=4, rolloutStrategy=rolling(maxUnavailable="10%")), "must not be 0 when `maxSurge` is 0"),
        (lws({"size": 4, "subGroupPolicy": {"subGroupSize": 3, "subGroupPolicyType": "LeaderExcluded"}}), None),
        (lws({"size": 5, "subGroupPolicy": {"subGroupSize": 3}}), "size or size - 1 must be divisible by subGroupSize"),
        (lws({"size": 2, "subGroupPolicy": {"subGroupSize": 4}}), "subGroupSize cannot be larger than size"),
        (
            lws({"size": 4, "subGroupPolicy": {"subGroupSize": 2, "subGroupPolicyType": "LeaderExcluded"}}),
            "size-1 must be divisible by subGroupSize when using LeaderExcluded",
        ),
        (lws({"size": 4, "subGroupPolicy": {"subGroupSize": 0}}), "subGroupSize must be equal or greater than 1"),
        (
            lws(annotations={"leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology": "rack"}),
            "cannot have subgroup-exclusive-topology without subGroupSize set",
        ),
        (lws(replicas=0, rolloutStrategy=rolling(maxUnavailable=0)), None),
        (lws(rolloutStrategy=rolling(maxUnavailable=10)), None),
    ],
)
def test_rules(broken: Tree, text: str | None) -> None:
    """Each rule refuses what breaks it, and nothing else."""
    found = [str(each) for each in problems_of(broken)]
    if text is None:
        assert found == []
    else:
        assert any(text in each for each in found), found


def test_sub_groups_neither_come_nor_go_nor_grow() -> None:
    """subGroupPolicy is fixed once a LeaderWorkerSet exists; everything else may change."""
    without, two, one = (
        lws({"size": 5}),
        lws({"size": 5, "subGroupPolicy": {"subGroupSize": 2}}),
        lws({"size": 5, "subGroupPolicy": {"subGroupSize": 1}}),
    )
    assert ["cannot enable" in str(each) for each in problems_of_change(two, without)] == [True]
    assert ["cannot remove" in str(each) for each in problems_of_change(without, two)] == [True]
    assert ["field is immutable" in str(each) for each in problems_of_change(one, two)] == [True]
    assert list(problems_of_change(lws({"size": 3}, replicas=9), without)) == []
