"""OpenAPI documents of what a cluster serves: ``/openapi/v3`` and ``/openapi/v2``, as kubectl and dynamic clients read them."""

from __future__ import annotations

from kubemini.machinery.openapi.documents import Document, OpenApiDocuments
from kubemini.machinery.openapi.served import ServedKind, ServedKinds

__all__ = ["Document", "OpenApiDocuments", "ServedKind", "ServedKinds"]
