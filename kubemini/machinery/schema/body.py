"""What the parsers of request bodies have in common: how deep a body may nest, and what they say of one that cannot be read."""

from __future__ import annotations

from kubemini.machinery.errors import BadRequest

DEPTH = 250
"""How deep a body may nest: what can be written again as JSON. (Go reads 10,000 levels; no schema has more than some thirty.)"""


class BodyError(BadRequest):
    """A body is no JSON or YAML; the message is that of Go's parser alone."""
