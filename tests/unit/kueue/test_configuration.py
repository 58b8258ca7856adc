"""Kueue's Configuration: what it cannot hold is refused with the path of the field."""

from typing import Any

import pytest

from kubemini.controllers.kueue.config import AdmissionFairSharing, KueueConfig
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
        ({"admissionFairSharing": {"usageHalfLifeTime": "soon"}}, "usageHalfLifeTime: must be a duration such as 5m30s"),
        ({"admissionFairSharing": {"usageHalfLifeTime": "-1s"}}, "usageHalfLifeTime: Invalid value: -1s: must be greater than or equal to 0"),
        ({"admissionFairSharing": {"usageSamplingInterval": "-1m"}}, "usageSamplingInterval: Invalid value: -1m0s: must be greater than 0"),
        (
            {"admissionFairSharing": {"resourceWeights": {"cpu": 1, "x.com/gpu": -2}}},
            r"resourceWeights\[x.com/gpu\]: Invalid value: -2: must be greater than or equal to 0",
        ),
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


def test_admission_fair_sharing() -> None:
    """A half-life of nothing and samples every five minutes unless it is said otherwise; none of it without the gate."""
    config = KueueConfig.of({"admissionFairSharing": {"usageSamplingInterval": "0s", "resourceWeights": {"cpu": 2}}}, FeatureGates())
    assert config.admission_fair_sharing == AdmissionFairSharing(half_life=0.0, sampling=300.0, weights={"cpu": 2.0})
    assert KueueConfig.of({}, FeatureGates()).admission_fair_sharing is None
    off = KueueConfig.of({"admissionFairSharing": {}, "featureGates": {"AdmissionFairSharing": False}}, FeatureGates())
    assert off.admission_fair_sharing is None
