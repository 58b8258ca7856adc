"""The same server that the kinds are tested on."""

import pytest

from tests.unit.core.conftest import Desk


@pytest.fixture
def desk() -> Desk:
    """Return a fresh server."""
    return Desk()
