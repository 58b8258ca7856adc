"""The pod template hash is the one that a real cluster gives."""

from typing import Any

import pytest

from kubemini.controllers.replica_set.go_quantity import shown
from kubemini.controllers.replica_set.template_hash import dump, template_hash

CONTAINER = {
    "name": "c",
    "image": "img:1",
    "imagePullPolicy": "IfNotPresent",
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
SPEC = {
    "terminationGracePeriodSeconds": 1,
    "containers": [CONTAINER],
    "dnsPolicy": "ClusterFirst",
    "restartPolicy": "Always",
    "schedulerName": "default-scheduler",
    "securityContext": {},
}
RICH: dict[str, Any] = {
    "metadata": {"labels": {"b": "2", "a": "1"}, "annotations": {"x": "y"}},
    "spec": {
        **SPEC,
        "hostNetwork": True,
        "nodeSelector": {"z": "1", "a": "2"},
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30}],
        "containers": [
            {
                **CONTAINER,
                "command": ["sh", "-c"],
                "ports": [{"containerPort": 80, "name": "web", "protocol": "TCP"}],
                "env": [
                    {"name": "A", "value": "1"},
                    {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}},
                ],
                "resources": {"limits": {"cpu": "1500m", "memory": "1Gi", "nvidia.com/gpu": "8"}, "requests": {"cpu": "500m"}},
                "readinessProbe": {"httpGet": {"path": "/", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
                "livenessProbe": {"httpGet": {"path": "/", "port": "web", "scheme": "HTTP"}},
                "securityContext": {"privileged": True, "runAsUser": 0},
            }
        ],
        "volumes": [{"name": "v", "emptyDir": {}}, {"name": "e", "emptyDir": {"sizeLimit": "2Gi", "medium": "Memory"}}],
    },
}


@pytest.mark.parametrize(
    "template, collisions, expected",
    [
        ({"metadata": {"labels": {"app": "ap001"}}, "spec": SPEC}, None, "848bc5b555"),
        ({"metadata": {"labels": {"app": "ap001"}}, "spec": SPEC}, 0, "5b4fcdc755"),
        ({"metadata": {"labels": {"app": "ap001"}}, "spec": SPEC}, 1, "87568dcd"),
        (RICH, None, "54b6bdb5d8"),
    ],
)
def test_hashes_of_a_real_cluster(template: dict[str, Any], collisions: int | None, expected: str) -> None:
    """Recorded on Kubernetes 1.36, or made by its own function."""
    assert template_hash(template, collisions) == expected


def test_empty_lists_are_absent_ones() -> None:
    """An empty list or map does not survive storage, so it hashes as nothing; an empty object does."""
    bare = {"spec": {"containers": [CONTAINER]}}
    assert dump({"metadata": {"labels": {}}, "spec": {"containers": [{**CONTAINER, "args": []}], "volumes": []}}) == dump(bare)
    assert dump({"spec": {"containers": [CONTAINER], "securityContext": {}}}) != dump(bare)


@pytest.mark.parametrize(
    "text, value, scale, kept, form",
    [
        ("0", 0, 0, "0", "DecimalSI"),
        ("1500m", 1500, -3, "1500m", "DecimalSI"),
        ("0.5", 500, -3, "500m", "DecimalSI"),
        ("1Gi", 2**30, 0, "1Gi", "BinarySI"),
        ("1536Mi", 1536 << 20, 0, "", "BinarySI"),
        ("1e3", 1, 3, "1e3", "DecimalExponent"),
        ("1000", 1, 3, "1k", "DecimalSI"),
    ],
)
def test_quantities_are_shown_as_parsed(text: str, value: int, scale: int, kept: str, form: str) -> None:
    """The number, its scale, the canonical text where parsing keeps it, and the family."""
    assert shown(text) == (
        f"{{i:(resource.int64Amount){{value:(int64){value} scale:(resource.Scale){scale}}} d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}}"
        f" s:(string){kept} Format:(resource.Format){form}}}"
    )


def test_large_quantities_are_big_decimals() -> None:
    """What does not fit the short form is shown in words of 64 bits."""
    assert "unscaled:(big.Int){neg:(bool)false abs:(big.nat)[0 62500000]} scale:(inf.Scale)9" in shown("1Ei")
