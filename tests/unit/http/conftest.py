"""A served cluster without TLS, and a client that knows its address."""

from collections.abc import AsyncIterator

import httpx
import pytest

from kubemini.serving import ServedCluster


@pytest.fixture
async def served() -> AsyncIterator[ServedCluster]:
    """A cluster of namespaces and accounts only; whoever brings no credentials is the administrator."""
    async with ServedCluster(tls=False, controllers="namespaces,service-accounts", seed=1) as cluster:
        await cluster.wait("serviceaccount/default", "create")
        yield cluster


@pytest.fixture
async def http(served: ServedCluster) -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client of the cluster."""
    async with httpx.AsyncClient(base_url=served.listener.url) as client:
        yield client
