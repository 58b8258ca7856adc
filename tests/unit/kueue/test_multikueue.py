"""What MultiKueue says of clusters and checks."""

from __future__ import annotations

import base64

import pytest

from kubemini import SimCluster
from kubemini.api.resources import MULTI_KUEUE_CONFIGS
from kubemini.api.trees import Tree
from kubemini.controllers.kueue.multikueue import kubeconfig_problem
from kubemini.controllers.kueue.parameters import parameters_problem
from tests.unit.kueue.test_lives import KUEUE, condition, play

GOOD = """
clusters: [{name: c, cluster: {server: "https://worker.example.com:6443"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


def encoded(text: str) -> str:
    """Return a text as a Secret holds it."""
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "old, new, said",
    [
        ("token: t", "tokenFile: /t", "tokenFile is not allowed"),
        ("token: t", "username: a, password: b", "basic auth is not allowed"),
        ("token: t", "exec: {command: x}", "exec plugins are not allowed"),
        ("server:", "insecure-skip-tls-verify: true, server:", "insecure TLS verification is not allowed for cluster c"),
        (
            "server:",
            "certificate-authority: /ca, server:",
            "certificate-authority file paths are not allowed, use certificate-authority-data for cluster c",
        ),
        ('server: "https://worker.example.com:6443"', "proxy-url: x", "server URL is required for cluster c"),
        ("worker.example.com", "in_valid", "untrusted server endpoint"),
        ("worker.example.com", "10.0.0.1", ""),
        ("token: t", "token: t", ""),
    ],
)
def test_kubeconfigs(old: str, new: str, said: str) -> None:
    """A kubeconfig that reads files, runs programs or trusts anybody is not taken."""
    assert kubeconfig_problem(encoded(GOOD.replace(old, new))) == said


def test_what_is_no_kubeconfig() -> None:
    """A text that is no object, and one without a current context, are told apart."""
    assert kubeconfig_problem(encoded("hello")).startswith("failed to parse kubeconfig(apiconfig): couldn't get version/kind")
    assert kubeconfig_problem(encoded("{}")).startswith("invalid configuration: no configuration has been provided")


def test_references_to_a_configuration() -> None:
    """A check of MultiKueue refers to a MultiKueueConfig."""
    assert parameters_problem(None, MULTI_KUEUE_CONFIGS) == "missing parameters reference"
    wrong = 'wrong kind "Other", expecting "MultiKueueConfig": bad parameters reference'
    assert parameters_problem({"apiGroup": "kueue.x-k8s.io", "kind": "Other", "name": "x"}, MULTI_KUEUE_CONFIGS) == wrong


def test_statuses_of_clusters_and_checks() -> None:
    """A check is inactive while none of its clusters can be used, and says which are missing and which inactive; a cluster says what its kubeconfig lacks."""

    async def scenario(cluster: SimCluster) -> None:
        source = {"clusterSource": {"kubeConfig": {"location": "s", "locationType": "Secret"}}}
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "mk"}
        check: Tree = {
            "apiVersion": KUEUE,
            "kind": "AdmissionCheck",
            "metadata": {"name": "ac"},
            "spec": {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters},
        }
        await cluster.apply([check, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}])
        await cluster.settle(5)
        unknown = 'Cannot load the AdmissionChecks parameters: MultiKueueConfig.kueue.x-k8s.io "mk" not found'
        assert condition(await cluster.get("admissioncheck/ac"), "Active") == ("False", "BadConfig", unknown)
        await cluster.apply({"apiVersion": KUEUE, "kind": "MultiKueueConfig", "metadata": {"name": "mk"}, "spec": {"clusters": ["w1", "w2"]}})
        await cluster.apply({"apiVersion": KUEUE, "kind": "MultiKueueCluster", "metadata": {"name": "w1"}, "spec": source})
        await cluster.settle(5)
        lost = 'load client config failed: Secret "s" not found'
        assert condition(await cluster.get("multikueuecluster/w1"), "Active") == ("False", "BadKubeConfig", lost)
        wanted = ("False", "NoUsableClusters", "Missing clusters: [w2], Inactive clusters: [w1]")
        assert condition(await cluster.get("admissioncheck/ac"), "Active") == wanted
        secret: Tree = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "kueue-system"}}
        for data, reason in (
            ({"other": ""}, "BadKubeConfig"),
            ({"kubeconfig": encoded(GOOD.replace("token: t", "exec: {}"))}, "InsecureKubeConfig"),
            ({"kubeconfig": encoded(GOOD)}, "ClientConnectionFailed"),
        ):
            await cluster.apply({**secret, "data": data})
            await cluster.settle(5)
            assert condition(await cluster.get("multikueuecluster/w1"), "Active")[1] == reason

    play(scenario)
