"""The request path of the API server, shared by the HTTP facade and the in-process client."""
