"""A StatefulSet's pods: what they are called, how they are made, and what they say about themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.pod_templates import pod_spec
from kubemini.controllers.stateful_set.view import SetView
from kubemini.machinery.memo import by_identity
from kubemini.machinery.names import dns1123_subdomain
from kubemini.runtime.env import from_stamp
from kubemini.runtime.keys import owner_reference

POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"
REVISION = "controller-revision-hash"
MAX_ORDINAL = 2147483647
UNNAMED = -1
"""Ordinal of a pod whose name holds none."""

# ----------------------------------------------------------------------------------------------- names


def parse(name: str) -> tuple[str, int]:
    """Return (set, ordinal) of a pod's name; the ordinal is -1 where it is none.

    >>> parse("web-0"), parse("a-b-12"), parse("web-x"), parse("web")
    (('web', 0), ('a-b', 12), ('', -1), ('', -1))
    """
    parent, dash, digits = name.rpartition("-")
    if not dash or not (digits.isascii() and digits.isdigit()):
        return "", UNNAMED
    ordinal = int(digits)
    return (parent, ordinal) if ordinal <= MAX_ORDINAL else (parent, UNNAMED)


def ordinal_of(pod: Tree) -> int:
    """Return a pod's ordinal, -1 where its name holds none."""
    return facts(pod).ordinal


def pod_name(owner: SetView, ordinal: int) -> str:
    """Return the name of a set's pod."""
    return f"{owner.name}-{ordinal}"


def is_named_for(owner: SetView, pod: Tree) -> bool:
    """Tell whether a pod's name is one of the set's."""
    return facts(pod).parent == owner.name


def claim_name(template: Tree, owner: SetView, ordinal: int) -> str:
    """Return the name of the claim that a pod gets from a claim template."""
    return f"{template['metadata']['name']}-{owner.name}-{ordinal}"


# ----------------------------------------------------------------------------------------------- making


def make(owner: SetView, ordinal: int, template: Tree, revision: str) -> Tree:
    """Return a new pod of a set. Everything but names, volumes and the two index labels is shared with the template."""
    name = pod_name(owner, ordinal)
    about = template.get("metadata") or {}
    labels = {**(about.get("labels") or {}), POD_NAME: name, POD_INDEX: str(ordinal), REVISION: revision}
    prefix = f"{owner.name}-"
    meta: Tree = {
        "name": name,
        "generateName": prefix if dns1123_subdomain(prefix, prefix=True) is None else owner.name,
        "namespace": owner.namespace,
        "labels": labels,
        "ownerReferences": [owner_reference(owner.tree)],
    }
    if about.get("annotations"):
        meta["annotations"] = about["annotations"]
    if about.get("finalizers"):
        meta["finalizers"] = about["finalizers"]
    spec: Tree = {**pod_spec(template["spec"]), "hostname": name}
    service = owner.spec.get("serviceName")
    spec.pop("subdomain", None)
    if service:
        spec["subdomain"] = service
    if owner.claims:
        spec["volumes"] = volumes(owner, ordinal, spec.get("volumes") or ())
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def volumes(owner: SetView, ordinal: int, present: Sequence[Tree]) -> list[Tree]:
    """Return a pod's volumes: one for each claim template first, then what was there under other names."""
    made = {each["metadata"]["name"]: claim_name(each, owner, ordinal) for each in owner.claims}
    claimed: list[Tree] = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for name, claim in made.items()]
    return claimed + [each for each in present if each["name"] not in made]


# ----------------------------------------------------------------------------------------------- identity


def identity_matches(owner: SetView, pod: Tree) -> bool:
    """Tell whether a pod carries the labels of its name."""
    known = facts(pod)
    return known.labelled and known.parent == owner.name


def storage_matches(owner: SetView, pod: Tree) -> bool:
    """Tell whether a pod mounts the claims of its ordinal."""
    if not owner.claims:
        return True
    ordinal = ordinal_of(pod)
    by_name = {each["name"]: each for each in pod["spec"].get("volumes") or ()}
    for template in owner.claims:
        claim = (by_name.get(template["metadata"]["name"]) or {}).get("persistentVolumeClaim")
        if claim is None or claim["claimName"] != claim_name(template, owner, ordinal):
            return False
    return True


def repaired(owner: SetView, pod: Tree) -> Tree:
    """Return a pod with the labels of its name and the claims of its ordinal. Host name and subdomain are never repaired."""
    meta = pod["metadata"]
    ordinal = ordinal_of(pod)
    if not identity_matches(owner, pod):
        labels = {**(meta.get("labels") or {}), POD_NAME: meta["name"], POD_INDEX: str(ordinal)}
        pod = {**pod, "metadata": {**meta, "labels": labels}}
    if not storage_matches(owner, pod):
        pod = {**pod, "spec": {**pod["spec"], "volumes": volumes(owner, ordinal, pod["spec"].get("volumes") or ())}}
    return pod


# ----------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class Facts:
    """What passes ask of a pod again and again, read once: a pass looks at every pod of its set, and few of them have changed since the last one."""

    parent: str
    ordinal: int
    labelled: bool
    """Whether the labels agree with the name."""
    phase: str
    ended: bool
    terminating: bool
    revision: str
    ready_since: float | None


@by_identity(16384)
def facts(pod: Tree) -> Facts:
    """Return what a pod says about itself."""
    meta, status = pod["metadata"], pod.get("status") or {}
    name, labels = meta["name"], meta.get("labels") or {}
    parent, ordinal = parse(name)
    labelled = ordinal >= 0 and labels.get(POD_NAME) == name and labels.get(POD_INDEX) == str(ordinal)
    stage = status.get("phase", "")
    return Facts(
        parent,
        ordinal,
        labelled,
        stage,
        stage in ("Failed", "Succeeded"),
        "deletionTimestamp" in meta,
        labels.get(REVISION, ""),
        _ready_since(status) if stage == "Running" else None,
    )


def alike(old: Tree, new: Tree) -> bool:
    """Tell whether a pass would do with one state of a pod as with another: being bound, say, means nothing to a set."""
    return (
        facts(old) == facts(new)
        and old["metadata"].get("labels") == new["metadata"].get("labels")
        and old["metadata"].get("ownerReferences") == new["metadata"].get("ownerReferences")
        and old["spec"].get("volumes") == new["spec"].get("volumes")
    )


def _ready_since(status: Tree) -> float | None:
    for condition in status.get("conditions") or ():
        if condition["type"] == "Ready":
            if condition["status"] != "True":
                return None
            since = condition.get("lastTransitionTime")
            return from_stamp(since) if since else float("inf")
    return None


def phase(pod: Tree) -> str:
    """Return status.phase."""
    return facts(pod).phase


def has_ended(pod: Tree) -> bool:
    """Tell whether a pod is Failed or Succeeded."""
    return facts(pod).ended


def is_terminating(pod: Tree) -> bool:
    """Tell whether a pod is being deleted."""
    return facts(pod).terminating


def revision_of(pod: Tree) -> str:
    """Return the name of a pod's revision."""
    return facts(pod).revision


def ready_since(pod: Tree) -> float | None:
    """Return since when a running pod is Ready, in Unix seconds; None where it is not."""
    return facts(pod).ready_since


def is_available(pod: Tree, min_ready: int, now: float) -> bool:
    """Tell whether a pod is running and has been Ready for `min_ready` seconds."""
    since = ready_since(pod)
    return since is not None and (min_ready == 0 or since + min_ready <= now)


def is_unavailable(pod: Tree | None, min_ready: int, now: float) -> bool:
    """Tell whether a pod is missing, not available, or being deleted."""
    if pod is None:
        return True
    known = facts(pod)
    return known.terminating or known.ready_since is None or (min_ready > 0 and known.ready_since + min_ready > now)
