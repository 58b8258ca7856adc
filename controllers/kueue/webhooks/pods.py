"""Plain pods and pod groups: gated on creation, checked on every write. Mirrors ``pkg/controller/jobs/pod/pod_webhook.go``."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.integrations.ancestors import owned_by_known, queue_name
from kubemini.controllers.kueue.integrations.job_marks import prebuilt_name
from kubemini.controllers.kueue.integrations.pods import annotation, group_name, is_gated, role_hash, terminated
from kubemini.controllers.kueue.webhooks.jobs import (
    create_errors,
    emptied,
    left_alone,
    managed_above,
    namespace_selected,
    prebuilt_path,
    update_errors,
    with_defaults,
    with_label,
)
from kubemini.controllers.kueue.webhooks.numbers import int_fault, read_int
from kubemini.controllers.kueue.webhooks.topology import template_errors
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, forbidden, invalid, required
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest

PREFIX = "kueue.x-k8s.io/"
MANAGED_PATH = f"metadata.labels[{names.MANAGED}]"
TOTAL_PATH = f"metadata.annotations[{names.POD_GROUP_TOTAL_COUNT}]"
RETRIABLE_PATH = f"metadata.annotations[{names.RETRIABLE_IN_GROUP}]"


def with_annotation(obj: Tree, key: str, value: str) -> Tree:
    """Return an object with an annotation."""
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "annotations": {**(meta.get("annotations") or {}), key: value}}}


def with_gates(pod: Tree, *gates: str) -> Tree:
    """Return a pod with scheduling gates."""
    have = pod["spec"].get("schedulingGates") or []
    known = [each["name"] for each in have]
    more = [{"name": gate} for gate in gates if gate not in known]
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [*have, *more]}} if more else pod


class PodWebhook:
    """Defaults and validates pods."""

    def __init__(self, config: KueueConfig) -> None:
        self.config = config

    def mutate(self, request: WebhookRequest) -> Tree | None:
        """Gate what has to wait."""
        pod = request.obj
        if pod is None or left_alone(request):
            return None
        gates = (names.ADMISSION_GATE, *((names.TOPOLOGY_GATE,) if self.config.on("TopologyAwareScheduling") else ()))
        if annotation(pod, names.SUSPENDED_BY_PARENT):
            new = pod
            label = annotation(pod, names.POD_GROUP_POD_INDEX_LABEL)
            if label and self.config.on("TopologyAwareScheduling"):
                new = with_label(new, names.POD_GROUP_POD_INDEX, (pod["metadata"].get("labels") or {}).get(label, ""))
            new = with_gates(new, *gates)
            return new if annotation(new, names.ROLE_HASH) else with_annotation(new, names.ROLE_HASH, role_hash(new["spec"]))
        if not self.config.manage_without_queue and not queue_name(pod) and owned_by_known(pod):
            # No default is for what somebody owns, so that it stays without a queue; most pods are such
            return None
        if not namespace_selected(self.config, request) or managed_above(pod, self.config, request):
            return None
        new = with_defaults(pod, self.config, request)
        if not queue_name(new) and not self.config.manage_without_queue:
            return None if new is pod else new
        return self._managed(new, gates)

    @staticmethod
    def _managed(pod: Tree, gates: tuple[str, ...]) -> Tree:
        new = with_label(pod, names.MANAGED, "true")
        finalizers = new["metadata"].get("finalizers") or []
        if names.MANAGED not in finalizers:
            new = {**new, "metadata": {**new["metadata"], "finalizers": [*finalizers, names.MANAGED]}}
        new = with_gates(new, *gates)
        return with_annotation(new, names.ROLE_HASH, role_hash(new["spec"]))

    def validate(self, request: WebhookRequest) -> None:
        """Refuse what Kueue cannot work with."""
        new, old = request.obj, request.old
        if new is None or left_alone(request) or not _concern(new, old):
            return
        if old is None:
            found = list(create_errors(new, request.gates))
        else:
            suspended, was_suspended = _suspended(new), _suspended(old)
            found = list(update_errors(new, old, request.gates, suspended=suspended, was_suspended=was_suspended, default=emptied(new, old, request)))
        found += pod_errors(new)
        found += template_errors(new, "metadata.annotations", request.gates)
        group = group_name(new)
        if group and prebuilt_name(new) and prebuilt_name(new) != group:
            found.append(invalid(prebuilt_path(new), prebuilt_name(new), "prebuilt workload and pod group should be equal"))
        if old is not None:
            if group and annotation(old, names.RETRIABLE_IN_GROUP) == "false" and annotation(new, names.RETRIABLE_IN_GROUP) != "false":
                found.append(forbidden(RETRIABLE_PATH, "unretriable pod group can't be converted to retriable"))
            if group_name(old) and group != group_name(old):
                found.append(invalid(group_path(new), group, "field is immutable"))
        if found:
            raise Denied.fields(found)


def _concern(new: Tree, old: Tree | None) -> bool:
    """Tell whether one of two states of a pod, with the same labels and annotations mostly, has anything to do with Kueue."""
    if _concerned(new):
        return True
    if old is None:
        return False
    meta, before = new["metadata"], old["metadata"]
    same = meta.get("labels") is before.get("labels") and meta.get("annotations") is before.get("annotations")
    return not same and _concerned(old)


def _concerned(pod: Tree) -> bool:
    """Tell whether a label or annotation of Kueue stands on a pod at all."""
    meta = pod["metadata"]
    keys = [*(meta.get("labels") or ()), *(meta.get("annotations") or ())]
    # Every pod comes by here: one look at all keys together, and at each only where that found something
    return PREFIX in " ".join(keys) and any(key.startswith(PREFIX) for key in keys)


def _suspended(pod: Tree) -> bool:
    return terminated(pod) or is_gated(pod)


def group_path(pod: Tree) -> str:
    """Return the path of the name of a pod's group: the annotation where there is one, else the label."""
    return f"metadata.{'annotations' if annotation(pod, names.POD_GROUP_NAME) else 'labels'}[{names.POD_GROUP_NAME}]"


def pod_errors(pod: Tree) -> Iterator[FieldError]:
    """Yield what is wrong with the labels and annotations that make groups."""
    labels, annotations = pod["metadata"].get("labels") or {}, pod["metadata"].get("annotations") or {}
    if labels.get(names.MANAGED, "true") != "true":
        yield forbidden(MANAGED_PATH, "managed label value can only be 'true'")
    group, total = group_name(pod), annotations.get(names.POD_GROUP_TOTAL_COUNT)
    kind = "annotation" if annotation(pod, names.POD_GROUP_NAME) else "label"
    words = f"both the '{names.POD_GROUP_TOTAL_COUNT}' annotation and the '{names.POD_GROUP_NAME}' {kind} should be set"
    if group:
        yield from rules.errors(group_path(pod), group, rules.dns1123_subdomain(group))
    if bool(group) != (total is not None):
        yield required(TOTAL_PATH if group else group_path(pod), words)
    elif total is not None:
        count = read_int(total)
        if count is None:
            yield invalid(TOTAL_PATH, total, int_fault(total))
        elif count < 1:
            least = f"incorrect annotation value '{names.POD_GROUP_TOTAL_COUNT}={total}': group total count should be greater than zero"
            yield invalid(TOTAL_PATH, total, least)


def webhooks(config: KueueConfig) -> list[Webhook]:
    """Return the webhooks of pods."""
    if "pod" not in config.frameworks:
        return []
    hook = PodWebhook(config)
    return [Webhook("mpod.kb.io", ("pods",), ("CREATE",), mutate=hook.mutate), Webhook("vpod.kb.io", ("pods",), validate=hook.validate)]
