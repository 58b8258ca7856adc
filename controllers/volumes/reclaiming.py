"""What becomes of a volume whose claim is gone, by its reclaim policy and kind."""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kubernetes as names

RECYCLABLE = ("hostPath", "nfs")


@dataclass(frozen=True, slots=True)
class Reclaim:
    """What the binder does: delete or recycle the volume, mark it Failed for a `problem` (event `reason`), or leave it to somebody else."""

    delete: bool = False
    recycle: bool = False
    problem: str = ""
    reason: str = ""


LEAVE = Reclaim()


def reclaim(volume: Tree) -> Reclaim:
    """Return what the binder does with a released volume."""
    spec, name = volume["spec"], volume["metadata"]["name"]
    policy = spec.get("persistentVolumeReclaimPolicy", "Retain")
    if policy == "Recycle":
        if any(source in spec for source in RECYCLABLE):
            return Reclaim(recycle=True)
        return Reclaim(problem="No recycler plugin found for the volume!", reason="VolumeFailedRecycle")
    if policy != "Delete":
        return LEAVE
    if names.PROVISIONED_BY in (volume["metadata"].get("annotations") or {}):
        # Its provisioner deletes it
        return LEAVE
    path = (spec.get("hostPath") or {}).get("path")
    if path is None:
        text = f'error getting deleter volume plugin for volume "{name}": no deletable volume plugin matched'
        return Reclaim(problem=text, reason="VolumeFailedDelete")
    if not path.startswith("/tmp/") or path == "/tmp/":  # noqa: S108  the only place that upstream's deleter clears
        return Reclaim(problem=f"host_path deleter only supports /tmp/.+ but received provided {path}", reason="VolumeFailedDelete")
    return Reclaim(delete=True)
