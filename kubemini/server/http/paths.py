"""What a URL path names: an object, a collection, a subresource, or a document of the API itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """A parsed resource path. `namespace` is None where the path has none, `tail` what follows a subresource (proxy paths)."""

    group: str
    version: str
    plural: str
    namespace: str | None = None
    name: str = ""
    subresource: str = ""
    tail: str = ""
    watch: bool = False
    """Whether the deprecated ``/watch/`` prefix was there."""


_OF_NAMESPACES = ("status", "finalize")


@lru_cache(maxsize=4096)
def parse(path: str) -> ResourcePath | None:
    """Return what a path names below a group and version, or None for any other path.

    >>> parse("/apis/batch/v1/namespaces/default/jobs/a/status")
    ResourcePath(group='batch', version='v1', plural='jobs', namespace='default', name='a', subresource='status', tail='', watch=False)
    >>> parse("/api/v1/namespaces/x/finalize").plural
    'namespaces'
    """
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    watch = rest[0] == "watch" and len(rest) > 1
    if watch:
        rest = rest[1:]
    namespace: str | None = None
    if rest[0] == "namespaces" and len(rest) >= 3 and not (len(rest) == 3 and rest[2] in _OF_NAMESPACES and not group):
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource, *tail = [*rest, "", "", ""][: max(3, len(rest))]
    return ResourcePath(group, version, plural, namespace, name, subresource, "/".join(tail).strip("/"), watch)
