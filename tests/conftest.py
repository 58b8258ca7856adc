"""What every test stands on: hypothesis profiles, and the repository's paths."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kubemini.server.writing import Writing

ROOT = Path(__file__).resolve().parents[1]
CONFORMANCE = ROOT.parent / "shared" / "conformance"
"""Black-box cases with recorded end states, where they are at hand beside the repository."""

# No deadline: a time limit on a shared machine is a coin toss. A red run on CI must be red for the next reader too, so
# examples are drawn from a fixed seed there; `--hypothesis-profile thorough` searches.
settings.register_profile("default", max_examples=50, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=2_000)
settings.load_profile("ci" if os.environ.get("CI") else "default")

# What controllers vouch for is proved in every test
Writing.proving = True


@pytest.fixture(scope="session")
def conformance() -> Path:
    """Return the folder of the conformance cases; skip where there is none."""
    if not (CONFORMANCE / "cases").is_dir():
        pytest.skip(f"the conformance cases are not at hand ({CONFORMANCE})")
    return CONFORMANCE
