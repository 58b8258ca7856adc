"""Whether a pod's trouble takes its whole group down. Pure.

A restarted container or a deletion is trouble. The group goes by its leader, which is deleted in the foreground: first its workers, then itself, so that no pod of the next
group meets one of this.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.controllers.lws.revisions import key_of
from kubemini.controllers.lws.view import LwsView
from kubemini.runtime.keys import controller_of

RECREATING = ("RecreateGroupOnPodRestart", "RecreateGroupAfterStart")


def in_trouble(pod: Tree) -> bool:
    """Tell whether a pod is being deleted, or has had a container restarted while it lives."""
    if "deletionTimestamp" in pod["metadata"]:
        return True
    status = pod.get("status") or {}
    if status.get("phase") not in ("Running", "Pending"):
        return False
    return any(each.get("restartCount", 0) > 0 for part in ("initContainerStatuses", "containerStatuses") for each in status.get(part) or ())


def vanishes(pod: Tree) -> bool:
    """Tell whether a pod that has not ended is deleted without grace: nothing will keep it. One that has ended is only replaced (it vanishes unseen upstream)."""
    meta = pod["metadata"]
    return (
        "deletionTimestamp" in meta
        and not meta.get("deletionGracePeriodSeconds")
        and (pod.get("status") or {}).get("phase") not in ("Failed", "Succeeded")
    )


def recreates(owner: LwsView, pod: Tree, group: Sequence[Tree]) -> bool:
    """Tell whether a pod's trouble asks for its group to be recreated. `group` are the pods that carry its group index."""
    if owner.restart_policy not in RECREATING or not in_trouble(pod):
        return False
    # The live size counts, whatever the group was made with
    pending = len(group) != owner.size or any((each.get("status") or {}).get("phase") == "Pending" for each in group)
    return not (pending and owner.after_start)


def is_follower(pod: Tree, leader: Tree, workers: Tree | None) -> bool:
    """Tell whether a worker belongs to this very leader, not to one before it or of another revision.

    `workers` is the StatefulSet that the worker names as its controller, as it is now.
    """
    if key_of(leader) != key_of(pod):
        return False
    owner = controller_of(pod)
    if owner is None:
        return False
    if owner["kind"] == "Pod":
        return bool(owner["name"] == leader["metadata"]["name"] and owner["uid"] == leader["metadata"]["uid"])
    if owner["kind"] != "StatefulSet" or workers is None or workers["metadata"]["uid"] != owner["uid"]:
        return False
    above = controller_of(workers)
    return above is not None and bool((above["kind"], above["name"], above["uid"]) == ("Pod", leader["metadata"]["name"], leader["metadata"]["uid"]))
