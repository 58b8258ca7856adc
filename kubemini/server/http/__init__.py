"""The HTTP facade: Kubernetes' REST API over the request path, over HTTP/1.1."""
