"""Content negotiation: which representation a client accepts, and in which form (plain, Table, metadata only).

Kubernetes' Accept headers are ordered lists; the first entry that can be satisfied wins.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kubemini.machinery.errors import NotAcceptable

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"


@dataclass(frozen=True, slots=True)
class Accepted:
    """One acceptable representation: media type, and the transform asked for ("" = none)."""

    media: str = JSON
    as_: str = ""
    group: str = ""
    version: str = ""
    pretty: bool = False
    """Whether JSON is to be indented."""

    @property
    def plain(self) -> bool:
        """Whether this is compact JSON of the object itself, so that stored bytes can be sent as they are."""
        return not self.as_ and self.media == JSON and not self.pretty


@lru_cache(maxsize=512)
def accepted(header: str) -> tuple[Accepted, ...]:
    """Return the alternatives of an Accept header that we can answer at all, best first (quality, then order)."""
    found: list[tuple[float, int, Accepted]] = []
    for position, item in enumerate(header.split(",")):
        media, *rest = (part.strip() for part in item.split(";"))
        parameters: dict[str, str] = {}
        for part in rest:
            key, _, value = part.partition("=")
            parameters[key.strip().lower()] = value.strip().strip('"')
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 1.0
        media = {"*/*": JSON, "application/*": JSON, "text/*": "", "application/x-yaml": YAML, "text/yaml": YAML}.get(media.lower(), media.lower())
        if media not in (JSON, YAML) or quality <= 0:
            continue
        pretty = parameters.get("pretty", "") not in ("", "0", "false")
        one = Accepted(media, parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", ""), pretty)
        found.append((-quality, position, one))
    return tuple(one for _, _, one in sorted(found, key=lambda each: each[:2]))


_PLAIN = (Accepted(),)
_META = "meta.k8s.io"


def choose(header: str | None, *, collection: bool, table: bool = True) -> Accepted:
    """Return the representation to answer in. `collection` tells lists and watches of lists from single objects. Raise `NotAcceptable`."""
    alternatives = accepted(header) if header else _PLAIN
    for one in alternatives:
        if not one.as_:
            return one
        if one.group != _META or one.version not in ("v1", "v1beta1"):
            continue
        if one.as_ == "Table" and table:
            return one
        if one.as_ == ("PartialObjectMetadataList" if collection else "PartialObjectMetadata"):
            return one
    raise NotAcceptable(
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, "
        "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch\n"
    )


def choose_watch(header: str | None) -> Accepted:
    """Return the form of a watch's events: plain, Table or PartialObjectMetadata (either spelling). Raise `NotAcceptable`."""
    alternatives = accepted(header) if header else _PLAIN
    for one in alternatives:
        if one.media == JSON and (not one.as_ or one.as_ in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")):
            return one
    raise NotAcceptable("406: Not Acceptable\n\nAvailable representations: application/json, application/json;stream=watch\n")
