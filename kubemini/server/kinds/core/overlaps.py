"""Texts of ``Warning`` headers about volumes that put two things into one place. Mirrors ``warningsForOverlappingVirtualPaths`` (1.36)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.gotext import quoted

Place = tuple[str, str]
"""A path, and what puts something there ("" where that goes without saying)."""
_PLAIN: Final = (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"), ("downwardAPI", "DownwardAPI", ""))
_CERTIFICATE: Final = {
    "certificateChainPath": "PodCertificate chain",
    "keyPath": "PodCertificate key",
    "credentialBundlePath": "PodCertificate credential bundle",
}


def overlapping_paths(volume: Tree) -> Iterator[str]:
    """Yield the warnings about one volume."""
    name = quoted(volume.get("name", ""))
    for key, kind, named in _PLAIN:
        source = volume.get(key)
        if source is not None:
            what = f"{kind} {quoted(source.get(named, ''))}" if named else kind
            for each in _overlaps((item.get("path", ""), "") for item in source.get("items") or ()):
                yield f"volume {name} ({what}): overlapping paths: {each}"
    projected = volume.get("projected")
    if projected is not None:
        sources = projected.get("sources") or ()
        yield from (f"volume {name} (Projected) has no sources provided" for each in sources if not each)
        for each in _overlaps(place for source in sources for place in _places(source)):
            yield f"volume {name} (Projected): overlapping paths: {each}"


def _places(source: Tree) -> Iterator[Place]:
    for key, kind in (("configMap", "ConfigMap"), ("secret", "Secret"), ("downwardAPI", "DownwardAPI")):
        part = source.get(key)
        if part is not None:
            what = kind if kind == "DownwardAPI" else f"{kind} {quoted(part.get('name', ''))}"
            yield from ((item.get("path", ""), what) for item in part.get("items") or ())
    if (token := source.get("serviceAccountToken")) is not None:
        yield token.get("path", ""), "ServiceAccountToken"
    if (bundle := source.get("clusterTrustBundle")) is not None:
        yield bundle.get("path", ""), f"ClusterTrustBundle {quoted(bundle.get('name') or bundle.get('signerName') or '')}"
    if (certificate := source.get("podCertificate")) is not None:
        yield from ((certificate[key], what) for key, what in _CERTIFICATE.items() if certificate.get(key))


def _overlaps(places: Iterable[Place]) -> Iterator[str]:
    seen: list[Place] = []
    for given, what in places:
        path = given.rstrip("/")
        for other, its in seen:
            if path and other and (f"{other}/".startswith(f"{path}/") or f"{path}/".startswith(f"{other}/")):
                yield f"{_shown(path, what)} with {_shown(other, its)}"
        seen.append((path, what))


def _shown(path: str, what: str) -> str:
    return f"{quoted(path)} ({what})" if what else quoted(path)
