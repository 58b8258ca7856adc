"""Feature gates."""

import re
from pathlib import Path

import pytest

import kubemini
from kubemini import Cluster
from kubemini.machinery.errors import ConfigError
from kubemini.runtime.gates import DEFAULTS, LOCKED, FeatureGates

READ = re.compile(r'(?:\.on|\.enabled|gated)\("([A-Z]\w+)"')


def test_every_gate_that_is_read_has_a_default() -> None:
    """So a name without a default is one that nothing depends on, and can be told as such."""
    root = Path(kubemini.__file__).parent
    read = {name for path in sorted(root.rglob("*.py")) for name in READ.findall(path.read_text())}
    read |= {name for path in sorted((root / "controllers").rglob("*.py")) for name in READ.findall(path.read_text())}
    assert len(read) > 10
    assert sorted(read - set(DEFAULTS)) == []


def test_unknown_names() -> None:
    """A name that nothing depends on is kept, and told."""
    gates = FeatureGates.parse("RestartJobs=true,RestartJob=true")
    assert gates.unknown == ["RestartJobs"]
    assert gates.enabled("RestartJob")
    assert FeatureGates().unknown == []


@pytest.mark.parametrize("text", ["RestartJob", "RestartJob=", "RestartJob=maybe"])
def test_bad_values(text: str) -> None:
    """A gate is true or false."""
    with pytest.raises(ValueError, match="must be NAME=true or NAME=false"):
        FeatureGates.parse(text)


def test_locked_gates_stay_on() -> None:
    """What is generally available is on, may be asked for, and cannot be switched off: neither by the flag nor in a program."""
    assert not LOCKED & DEFAULTS.keys()
    gates = FeatureGates.parse("JobSuccessPolicy=true")
    assert gates.enabled("JobSuccessPolicy")
    assert gates.unknown == []
    assert FeatureGates().enabled("JobManagedBy")
    text = "cannot set feature gate JobManagedBy to false, feature is locked to true"
    with pytest.raises(ValueError, match=text):
        FeatureGates.parse("JobManagedBy=false")
    with pytest.raises(ConfigError, match=f"feature_gates: {text}"):
        Cluster(feature_gates={"JobManagedBy": False})
