"""The HTTP facade: Kubernetes' REST API over the request path, on aiohttp."""
