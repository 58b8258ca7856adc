"""The kinds of the core group: their defaults, rules and how they print."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubemini.server.kinds.catalogue import CodecOf
    from kubemini.server.registry import Kind


def core_kinds(codec: CodecOf) -> list[Kind]:
    """Return the kinds of the core and the small groups (workloads are in `kubemini.server.kinds.workloads`), each with a fresh strategy."""
    from kubemini.server.kinds.catalogue import catalogue

    return catalogue(codec)
