"""Kueue's Configuration: what it cannot hold is refused with the path of the field."""

from typing import Any

import pytest

from kubemini.controllers.kueue.config import KueueConfig
from kubemini.machinery.errors import ConfigError
from kubemini.runtime.gates import FeatureGates


@pytest.mark.parametrize(
    "configuration, message",
    [
        ({"waitForPodReady": {}}, "waitForPodReady: no such field; there are apiVersion, kind"),
        ({"waitForPodsReady": {"timeot": "5m"}}, "waitForPodsReady.timeot: no such field; there are enable, timeout"),
        ({"waitForPodsReady": {"timeout": "soon"}}, 'waitForPodsReady.timeout: must be a duration such as 5m30s, not "soon"'),
        ({"waitForPodsReady": {"timeout": 300}}, "waitForPodsReady.timeout: must be a duration such as 5m30s, not 300"),
        ({"waitForPodsReady": {"timeout": "-5m"}}, "waitForPodsReady.timeout: must be a duration that is not negative"),
        ({"waitForPodsReady": {"requeuingStrategy": {"timestamp": "Now"}}}, "requeuingStrategy.timestamp: must be one of Eviction, Creation"),
        ({"waitForPodsReady": {"requeuingStrategy": {"backoffBaseSeconds": True}}}, "backoffBaseSeconds: must be a whole number, not true"),
        ({"waitForPodsReady": []}, "waitForPodsReady: must be an object"),
        ({"integrations": {"frameworks": ["batch/jobs"]}}, r"integrations.frameworks\[0\]: must be one of batch/job"),
        ({"resources": {"transformations": [{"strategy": "Replace"}]}}, r"resources.transformations\[0\].input: is required"),
        ({"fairSharing": {"preemptionStrategies": ["Never"]}}, r"preemptionStrategies\[0\]: must be one of LessThanOrEqualToFinalShare"),
        ({"admissionFairSharing": {"resourceWeights": {"cpu": "1"}}}, "resourceWeights.cpu: must be a number"),
        ({"featureGates": {"TopologyAwareScheduling": "yes"}}, "featureGates.TopologyAwareScheduling: must be true or false"),
        ({"apiVersion": "kueue.x-k8s.io/v1beta2"}, "apiVersion: must be one of config.kueue.x-k8s.io/v1beta2"),
        ({"objectRetentionPolicies": {"workloads": {"afterFinished": ""}}}, "afterFinished: must be a duration"),
    ],
)
def test_refused(configuration: dict[str, Any], message: str) -> None:
    """A typing error does not quietly mean the defaults."""
    with pytest.raises(ConfigError, match=f"kueue configuration: .*{message}"):
        KueueConfig.of(configuration, FeatureGates())


def test_taken() -> None:
    """What concerns a deployment only is taken as it is; null means that nothing is said."""
    configuration = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "metrics": {"bindAddress": ":8443"},
        "leaderElection": {"leaderElect": True},
        "waitForPodsReady": {"timeout": "5m", "recoveryTimeout": None, "blockAdmission": True},
        "integrations": {"frameworks": ["batch/job", "kubeflow.org/pytorchjob"]},
        "resources": {"transformations": [{"input": "nvidia.com/mig-1g.5gb", "strategy": "Replace", "outputs": {"x.com/units": 5}}]},
    }
    config = KueueConfig.of(configuration, FeatureGates())
    assert config.pods_ready is not None
    assert (config.pods_ready.timeout, config.pods_ready.recovery, config.pods_ready.block_admission) == (300.0, 300.0, True)
