"""The rules of pods on the write path. Creating a pod and reporting its status are the hottest writes there are.

Mirrors ``pkg/registry/core/pod/strategy.go`` (1.36).
"""

from __future__ import annotations

from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, forbidden
from kubemini.machinery.pod_requests import qos_class
from kubemini.server.kinds.core import pod_update
from kubemini.server.kinds.core.pod_label_keys import merge_label_keys
from kubemini.server.kinds.core.pod_spec_defaults import default_pod
from kubemini.server.kinds.core.pod_spec_validation import pod_annotations, validate_pod_spec
from kubemini.server.kinds.core.pod_warnings import pod_warnings
from kubemini.server.kinds.tables import POD
from kubemini.server.strategy import Strategy, WriteContext

GATED = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "SchedulingGated",
    "message": "Scheduling is blocked due to non-empty scheduling gates",
}
_TERMINAL = ("Succeeded", "Failed")


def _spec(key: str, default: str = "") -> Any:
    def read(pod: Tree) -> str:
        return str(pod["spec"].get(key) or default)

    return read


def _status(key: str) -> Any:
    def read(pod: Tree) -> str:
        return str((pod.get("status") or {}).get(key) or "")

    return read


def _host_network(pod: Tree) -> str:
    return "true" if pod["spec"].get("hostNetwork") else "false"


def _pod_ips(pod: Tree) -> str:
    return ",".join(each.get("ip", "") for each in (pod.get("status") or {}).get("podIPs") or ())


POD_FIELDS = {
    "spec.nodeName": _spec("nodeName"),
    "spec.host": _spec("nodeName"),
    "spec.restartPolicy": _spec("restartPolicy"),
    "spec.schedulerName": _spec("schedulerName"),
    "spec.serviceAccountName": _spec("serviceAccountName"),
    "spec.hostNetwork": _host_network,
    "status.phase": _status("phase"),
    "status.podIP": _status("podIP"),
    "status.podIPs": _pod_ips,
    "status.nominatedNodeName": _status("nominatedNodeName"),
}


class PodStrategy(Strategy):
    """Pods."""

    has_status = True
    has_generation = True
    returns_deleted = True
    graceful = True
    vouched = ("status",)
    table = POD
    fields = POD_FIELDS

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Fill pull policies, requests, host ports and so on."""
        spec = obj.get("spec") or {}
        new = default_pod(spec)
        return obj if new is obj.get("spec") else {**obj, "spec": new}

    def default_update(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Leave a spec that stays as it is: no default of a pod follows from anything else."""
        return new if new.get("spec") is old["spec"] else self.default(new, ctx)

    def initial_status(self, obj: Tree) -> Tree:
        """Return phase and quality of service; a gated pod says at once why it is not scheduled."""
        spec = obj["spec"]
        status: Tree = {"phase": "Pending", "qosClass": qos_class(spec)}
        if spec.get("schedulingGates"):
            status["conditions"] = [GATED]
        return status

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Write the pod's own label values into selectors that ask for them."""
        new = merge_label_keys(obj["spec"], obj["metadata"].get("labels") or {})
        return obj if new is obj["spec"] else {**obj, "spec": new}

    def prepare_for_status(self, new: Tree, old: Tree, ctx: WriteContext) -> Tree:
        """Keep owners and quality of service."""
        owners = old["metadata"].get("ownerReferences")
        if new["metadata"].get("ownerReferences") != owners:
            metadata = {key: value for key, value in new["metadata"].items() if key != "ownerReferences"}
            new = {**new, "metadata": {**metadata, "ownerReferences": owners} if owners else metadata}
        quality = (old.get("status") or {}).get("qosClass")
        if quality and not (new.get("status") or {}).get("qosClass"):
            new = {**new, "status": {**(new.get("status") or {}), "qosClass": quality}}
        return new

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the spec, and what cannot be set on a new pod."""
        spec, metadata = obj["spec"], obj["metadata"]
        errors = pod_annotations(metadata.get("annotations"), spec, "metadata.annotations")
        errors += validate_pod_spec(spec, pod_name=metadata.get("name", ""))
        if spec.get("ephemeralContainers"):
            errors.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
        if spec.get("nodeName") and spec.get("schedulingGates"):
            errors.append(forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"))
        return errors

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the spec and what may change of it."""
        spec, before = new["spec"], old["spec"]
        if spec is before and new["metadata"].get("annotations") is old["metadata"].get("annotations"):
            return []
        errors = pod_annotations(new["metadata"].get("annotations"), spec, "metadata.annotations")
        if spec is not before:
            errors += validate_pod_spec(spec, pod_name=new["metadata"]["name"])
            errors += pod_update.updated_spec(spec, before)
        return errors

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the transition of the status."""
        return list(pod_update.updated_status(new, old))

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Return what hardly was meant with a new pod; nobody is told of it again."""
        return pod_warnings(new) if old is None else []

    def grace(self, obj: Tree, asked: int | None) -> int:
        """Return what was asked for, else the pod's own period; none for pods that do not run."""
        if not obj["spec"].get("nodeName") or (obj.get("status") or {}).get("phase") in _TERMINAL:
            return 0
        period = asked if asked is not None else obj["spec"].get("terminationGracePeriodSeconds", 0)
        return 1 if period < 0 else int(period)
