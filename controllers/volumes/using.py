"""Which pods use which claims: the index that the binder and the protection of claims stand on."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.memo import by_identity
from kubemini.runtime.informer import Informer

INDEX = "claim"


@by_identity()
def _mentions(volumes: list[Tree]) -> tuple[tuple[str, bool], ...]:
    """Return (name, whether it is an ephemeral volume's) of what volumes mean as claims."""
    found: list[tuple[str, bool]] = []
    for volume in volumes:
        claim = volume.get("persistentVolumeClaim")
        if claim is not None:
            found.append((claim["claimName"], False))
        elif "ephemeral" in volume:
            found.append((volume["name"], True))
    return tuple(found)


def claims_of(pod: Tree) -> tuple[str, ...]:
    """Return the keys of the claims that a pod uses."""
    volumes = pod["spec"].get("volumes")
    if not volumes:
        return ()
    mentions = _mentions(volumes)
    if not mentions:
        return ()
    meta = pod["metadata"]
    return tuple(f"{meta['namespace']}/{meta['name']}-{name}" if ephemeral else f"{meta['namespace']}/{name}" for name, ephemeral in mentions)


def index(pods: Informer) -> None:
    """Keep the index on an informer of pods."""
    pods.add_index(INDEX, claims_of, reads=("spec.volumes",))
