"""Plain pods and pod groups under Kueue: what they are, as pure functions of pods. Mirrors ``pkg/controller/jobs/pod``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.integrations.ancestors import queue_name
from kubemini.controllers.kueue.integrations.framework import PodSetInfo, merged
from kubemini.controllers.kueue.topology.requests import topology_request
from kubemini.controllers.kueue.workloads import pod_sets_of
from kubemini.runtime.env import from_stamp

SHAPE_FIELDS = ("affinity", "nodeSelector", "overhead", "priority", "resourceClaims", "runtimeClassName", "tolerations", "topologySpreadConstraints")
TOLERATION_FIELDS = ("key", "operator", "value", "effect", "tolerationSeconds")
MOST_ROLES = 18


def annotation(pod: Tree, name: str) -> str:
    """Return an annotation, or ""."""
    found: str = (pod["metadata"].get("annotations") or {}).get(name, "")
    return found


def spec_shape(spec: Tree) -> dict[str, Any]:
    """Return what pods of a group are told apart by: requests, ports and placement."""
    shape: dict[str, Any] = {field: spec.get(field) or (0 if field == "priority" and spec.get(field) == 0 else None) for field in SHAPE_FIELDS}
    if shape["tolerations"]:
        shape["tolerations"] = [{key: each[key] for key in TOLERATION_FIELDS if key in each} for each in shape["tolerations"]]
    for field in ("containers", "initContainers"):
        shape[field] = [
            {
                "ports": each.get("ports") or None,
                "resources": {"requests": dict(sorted(((each.get("resources") or {}).get("requests") or {}).items())) or None},
            }
            for each in spec.get(field) or ()
        ] or None
    if spec.get("resources") is not None:
        shape["resources"] = dict(sorted((spec["resources"].get("requests") or {}).items())) or None
    return shape


def role_hash(spec: Tree) -> str:
    """Return the hash of the shape of a pod spec."""
    text = json.dumps({"spec": dict(sorted(spec_shape(spec).items()))}, separators=(",", ":"), ensure_ascii=False)
    return sha256(text.encode()).hexdigest()[:8]


def managed(pod: Tree) -> bool:
    """Tell whether Kueue manages a pod."""
    return (pod["metadata"].get("labels") or {}).get(names.MANAGED) == "true"


def group_name(pod: Tree) -> str:
    """Return the group of a pod, or ""."""
    found: str = annotation(pod, names.POD_GROUP_NAME) or (pod["metadata"].get("labels") or {}).get(names.POD_GROUP_NAME, "")
    return found


def role_of(pod: Tree) -> str:
    """Return the pod set of a pod of a group."""
    return annotation(pod, names.ROLE_HASH) or role_hash(pod["spec"])


def gate_names(pod: Tree) -> list[str]:
    """Return the scheduling gates of a pod."""
    return [each["name"] for each in pod["spec"].get("schedulingGates") or ()]


def is_gated(pod: Tree) -> bool:
    """Tell whether a pod still waits for admission."""
    return names.ADMISSION_GATE in gate_names(pod)


def phase(pod: Tree) -> str:
    """Return the phase of a pod."""
    found: str = (pod.get("status") or {}).get("phase", "")
    return found


def terminated(pod: Tree) -> bool:
    """Tell whether a pod has ended."""
    return phase(pod) in ("Succeeded", "Failed")


def deleting(pod: Tree) -> bool:
    """Tell whether a pod is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def counts(pod: Tree) -> bool:
    """Tell whether a pod still stands for one of its group: it has not failed, and is not deleted before it ran."""
    return phase(pod) != "Failed" and not (deleting(pod) and not pod["spec"].get("nodeName"))


def ready(pod: Tree) -> bool:
    """Tell whether a pod is ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in (pod.get("status") or {}).get("conditions") or ())


def has_finalizer(pod: Tree) -> bool:
    """Tell whether Kueue still holds a pod."""
    return names.MANAGED in (pod["metadata"].get("finalizers") or ())


def total_count(pod: Tree) -> int:
    """Return the number of pods that the group of a pod has, or 0 where it is not said."""
    text = annotation(pod, names.POD_GROUP_TOTAL_COUNT)
    return int(text) if text.isdigit() else 0


class Uncomposable(Exception):
    """No Workload can be made of the pods. `retriable` says whether more pods may help."""

    def __init__(self, message: str, *, retriable: bool) -> None:
        super().__init__(message)
        self.retriable = retriable


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods that one Workload stands for: those of a group, or a single one (`group` is "")."""

    group: str
    pods: Sequence[Tree]

    @property
    def first(self) -> Tree:
        """The representative."""
        return self.pods[0]

    @property
    def fast(self) -> bool:
        """Whether the group is admitted before all its pods exist."""
        return any(annotation(pod, names.POD_GROUP_FAST_ADMISSION) == "true" for pod in self.pods)

    @property
    def serving(self) -> bool:
        """Whether the group never ends by itself."""
        return any(annotation(pod, names.POD_GROUP_SERVING) == "true" for pod in self.pods)

    @property
    def unretriable(self) -> bool:
        """Whether the group ends when a pod fails."""
        return any(annotation(pod, names.RETRIABLE_IN_GROUP) == "false" for pod in self.pods)

    @property
    def total(self) -> int:
        """How many pods there have to be."""
        return total_count(self.first) if self.group else 1

    def active(self, now: float) -> bool:
        """Tell whether some pod runs, or may still run."""
        return any(phase(pod) == "Running" and not (deleting(pod) and from_stamp(pod["metadata"]["deletionTimestamp"]) <= now) for pod in self.pods)

    def suspended(self) -> bool:
        """Tell whether some pod waits for admission, or has ended."""
        if not self.group:
            return is_gated(self.first)
        return any(terminated(pod) or is_gated(pod) for pod in self.pods)

    def gated(self) -> list[Tree]:
        """Return the pods that wait for admission."""
        return [pod for pod in self.pods if is_gated(pod) and not terminated(pod)]

    def finished(self) -> tuple[bool, str] | None:
        """Return (success, message) once the pods are done."""
        if not self.group:
            if not terminated(self.first):
                return None
            return phase(self.first) == "Succeeded", (self.first.get("status") or {}).get("message", "")
        if self.serving:
            return None
        succeeded = sum(1 for pod in self.pods if phase(pod) == "Succeeded")
        running = any(counts(pod) and not terminated(pod) for pod in self.pods)
        if succeeded == self.total or (not running and self.unretriable):
            return True, f"Pods succeeded: {succeeded}/{self.total}."
        return None

    def ready(self) -> bool:
        """Tell whether all pods there have to be are there and ready; one that has succeeded is ready no longer."""
        return len(self.pods) >= self.total and all(ready(pod) for pod in self.pods)

    def labels(self, keys: Sequence[str]) -> dict[str, str]:
        """Return the labels of these keys that the Workload gets. Raise `Uncomposable` where pods contradict each other."""
        found: dict[str, str] = {}
        for pod in self.pods:
            have = pod["metadata"].get("labels") or {}
            for key in keys:
                if key in have and found.setdefault(key, have[key]) != have[key]:
                    raise Uncomposable("constructing workload: pods have different label values", retriable=False)
        return found

    def reclaimable(self) -> dict[str, int]:
        """Return the pods that have succeeded, by pod set."""
        if not self.group or self.serving:
            return {}
        done: dict[str, int] = {}
        for pod in self.pods:
            if phase(pod) == "Succeeded":
                done[role_of(pod)] = done.get(role_of(pod), 0) + 1
        return done

    def pod_sets(self) -> list[Tree]:
        """Return the pod sets of the Workload. Raise `Uncomposable`."""
        if not self.group:
            return [_pod_set(names.DEFAULT_POD_SET, self.first, 1)]
        self._check()
        alive = [pod for pod in self.pods if counts(pod)]
        if self.fast:
            return [_pod_set(role_of(alive[0] if alive else self.first), self.first, self.total)]
        roles: dict[str, list[Tree]] = {}
        for pod in alive[: self.total]:
            roles.setdefault(role_of(pod), []).append(pod)
        if len(roles) > MOST_ROLES:
            raise Uncomposable(f"pod group can't include more than {MOST_ROLES} roles", retriable=False)
        return [_pod_set(role, members[0], len(members)) for role, members in sorted(roles.items())]

    def _check(self) -> None:
        alive = [pod for pod in self.pods if phase(pod) != "Failed"]
        if not self.fast and sum(1 for pod in self.pods if counts(pod)) < self.total:
            raise Uncomposable(f"'{self.group}' group has fewer runnable pods than expected", retriable=True)
        queues = {queue_name(pod): None for pod in alive}
        totals = {annotation(pod, names.POD_GROUP_TOTAL_COUNT): None for pod in alive}
        if len(queues) > 1 or len(totals) > 1:
            what = "queue name" if len(queues) > 1 else "total count"
            raise Uncomposable(f"'{self.group}' group has pods of different {what}", retriable=False)


def _pod_set(name: str, pod: Tree, count: int) -> Tree:
    template: Tree = {"metadata": {}, "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}
    pod_set: Tree = {"name": name, "count": count, "template": template}
    request = topology_request(pod, names.POD_GROUP_POD_INDEX)
    if request:
        pod_set["topologyRequest"] = request
    return pod_set


def keep_order(pod: Tree) -> tuple[bool, bool, str, str]:
    """Return where a pod stands among those of its role that may stay: held by Kueue, let go, older."""
    meta = pod["metadata"]
    return (not has_finalizer(pod), is_gated(pod), meta["creationTimestamp"], meta["name"])


@dataclass(frozen=True, slots=True)
class Match:
    """How pods compare with their Workload."""

    known: bool
    """Every pod is of a role of the Workload."""
    absent: int
    excess: Sequence[Tree]
    replaced: Sequence[Tree]
    """Failed pods of which the place is taken."""


def match(pods: Pods, workload: Tree) -> Match:
    """Compare the pods of a group with the pod sets of its Workload."""
    roles: dict[str, list[Tree]] = {}
    for pod in pods.pods:
        roles.setdefault(role_of(pod), []).append(pod)
    absent = 0
    excess: list[Tree] = []
    replaced: list[Tree] = []
    for pod_set in pod_sets_of(workload):
        members = roles.pop(pod_set["name"], [])
        alive = sorted((pod for pod in members if counts(pod)), key=keep_order)
        ended = sorted(
            (pod for pod in members if not counts(pod)), key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]), reverse=True
        )
        missing = max(0, pod_set["count"] - len(alive))
        absent += (1 if not alive else 0) if pods.fast else missing
        excess += alive[pod_set["count"] :]
        replaced += ended[missing:]
    if pods.serving and any(counts(pod) for pod in pods.pods):
        # Its owner makes the missing pods in its own order, some of them only once the first are there
        absent = 0
    unknown = [pod for members in roles.values() for pod in members if counts(pod)]
    return Match(not unknown, absent, excess, replaced)


def started(pod: Tree, info: PodSetInfo, *, topology: bool) -> Tree:
    """Return a pod as it is let go: with its info, and without the gates of Kueue (that of the topology stays where a place is still to be given). Raise `Permanent`."""
    gone = [names.ADMISSION_GATE, *(() if topology else (names.TOPOLOGY_GATE,))]
    template = {"metadata": {key: value for key, value in pod["metadata"].items() if key in ("labels", "annotations")}, "spec": pod["spec"]}
    plain = PodSetInfo(info.name, info.count, info.labels, info.annotations, info.node_selector, info.tolerations)
    new = merged(template, plain)
    spec = dict(new["spec"])
    gates = [each for each in spec.get("schedulingGates") or () if each["name"] not in gone]
    if gates:
        spec["schedulingGates"] = gates
    else:
        spec.pop("schedulingGates", None)
    return {**pod, "metadata": {**pod["metadata"], **new["metadata"]}, "spec": spec}


def target(reason: str, message: str, now: str) -> Tree:
    """Return the condition that says why a pod is ended."""
    return {"type": "TerminationTarget", "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}


def owners(pods: Sequence[Tree], known: Mapping[str, Any]) -> list[Tree]:
    """Return plain owner references to pods that are not among the uids known."""
    return [
        {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        for pod in pods
        if pod["metadata"]["uid"] not in known
    ]
