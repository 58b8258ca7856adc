"""Fixtures of the tests of workload kinds and subresources."""

import pytest

from tests.unit.workloads.bench import Bench


@pytest.fixture
def bench() -> Bench:
    """Return a fresh server."""
    return Bench()
