"""Plain pods and pod groups: gated on creation, checked on every write. Mirrors ``pkg/controller/jobs/pod/pod_webhook.go``."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.integrations.ancestors import queue_name
from kubemini.controllers.kueue.integrations.job_marks import prebuilt_name
from kubemini.controllers.kueue.integrations.pods import annotation, group_name, is_gated, role_hash, terminated
from kubemini.controllers.kueue.webhooks.gates import gate_errors
from kubemini.controllers.kueue.webhooks.jobs import (
    create_errors,
    default_queue,
    managed_above,
    namespace_selected,
    update_errors,
    with_defaults,
    with_label,
)
from kubemini.controllers.kueue.webhooks.topology import template_errors
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, forbidden, invalid, required
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest

MANAGED_PATH = f"metadata.labels[{names.MANAGED}]"
TOTAL_PATH = f"metadata.annotations[{names.POD_GROUP_TOTAL_COUNT}]"
GROUP_PATH = f"metadata.labels[{names.POD_GROUP_NAME}]"
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
        if pod is None:
            return None
        gates = (names.ADMISSION_GATE, *((names.TOPOLOGY_GATE,) if self.config.on("TopologyAwareScheduling") else ()))
        if annotation(pod, names.SUSPENDED_BY_PARENT):
            new = pod
            label = annotation(pod, names.POD_GROUP_POD_INDEX_LABEL)
            index = (pod["metadata"].get("labels") or {}).get(label) if label else None
            if index is not None:
                new = with_label(new, names.POD_GROUP_POD_INDEX, index)
            if annotation(pod, names.SUSPENDED_BY_PARENT) == "deployment":
                return self._managed(new, gates, hold=False)
            new = with_gates(new, *gates)
            return new if annotation(new, names.ROLE_HASH) else with_annotation(new, names.ROLE_HASH, role_hash(new["spec"]))
        if not namespace_selected(self.config, request) or managed_above(pod, self.config, request):
            return None
        new = with_defaults(pod, self.config, request)
        if not queue_name(new) and not self.config.manage_without_queue:
            return None if new is pod else new
        return self._managed(new, gates)

    @staticmethod
    def _managed(pod: Tree, gates: tuple[str, ...], *, hold: bool = True) -> Tree:
        new = with_label(pod, names.MANAGED, "true")
        finalizers = new["metadata"].get("finalizers") or []
        if hold and names.MANAGED not in finalizers:
            new = {**new, "metadata": {**new["metadata"], "finalizers": [*finalizers, names.MANAGED]}}
        new = with_gates(new, *gates)
        return with_annotation(new, names.ROLE_HASH, role_hash(new["spec"]))

    def validate(self, request: WebhookRequest) -> None:
        """Refuse what Kueue cannot work with."""
        new, old = request.obj, request.old
        if new is None:
            return
        found = list(pod_errors(new))
        if queue_name(new) or (old is not None and queue_name(old)):
            found += create_errors(new)
            found += template_errors({"metadata": new["metadata"]}, "metadata.annotations")
            if self.config.on("AdmissionGatedBy"):
                found += gate_errors(new, old)
        if old is not None:
            found += self._update(new, old, request)
        if found:
            raise Denied.fields(found)

    def _update(self, new: Tree, old: Tree, request: WebhookRequest) -> Iterator[FieldError]:
        if annotation(new, names.SUSPENDED_BY_PARENT):
            return
        if queue_name(new) or queue_name(old):
            suspended, was = _suspended(new), _suspended(old)
            default = default_queue(request) and not queue_name(new) and bool(queue_name(old))
            yield from update_errors(new, old, suspended=suspended, was_suspended=was, default=default)
        if group_name(old) and group_name(new) != group_name(old):
            yield invalid(GROUP_PATH, group_name(new), "field is immutable")
        if annotation(old, names.RETRIABLE_IN_GROUP) == "false" and annotation(new, names.RETRIABLE_IN_GROUP) != "false":
            yield forbidden(RETRIABLE_PATH, "unretriable pod group can't be converted to retriable")


def _suspended(pod: Tree) -> bool:
    return terminated(pod) or is_gated(pod)


def pod_errors(pod: Tree) -> Iterator[FieldError]:
    """Yield what is wrong with the labels and annotations that make groups."""
    labels = pod["metadata"].get("labels") or {}
    if names.MANAGED in labels and labels[names.MANAGED] != "true":
        yield forbidden(MANAGED_PATH, "managed label value can only be 'true'")
    group, total = group_name(pod), annotation(pod, names.POD_GROUP_TOTAL_COUNT)
    if group and not total:
        words = f"both the '{names.POD_GROUP_TOTAL_COUNT}' annotation and the '{names.POD_GROUP_NAME}' label should be set"
        yield required(TOTAL_PATH, words)
    if total and not group:
        words = f"both the '{names.POD_GROUP_TOTAL_COUNT}' annotation and the '{names.POD_GROUP_NAME}' label should be set"
        yield required(GROUP_PATH, words)
    if group:
        yield from rules.errors(GROUP_PATH, group, rules.dns1123_subdomain(group))
    if total:
        if not total.lstrip("-+").isdigit():
            yield invalid(TOTAL_PATH, total, f'strconv.Atoi: parsing "{total}": invalid syntax')
        elif int(total) < 1:
            yield invalid(TOTAL_PATH, total, "group total count should be greater than zero")
    if group and prebuilt_name(pod) and prebuilt_name(pod) != group:
        yield invalid(f"metadata.annotations[{names.PREBUILT_WORKLOAD}]", prebuilt_name(pod), "prebuilt workload should be equal to the group name")


def webhooks(config: KueueConfig) -> list[Webhook]:
    """Return the webhooks of pods."""
    if "pod" not in config.frameworks:
        return []
    hook = PodWebhook(config)
    return [Webhook("mpod.kb.io", ("pods",), ("CREATE",), mutate=hook.mutate), Webhook("vpod.kb.io", ("pods",), validate=hook.validate)]
