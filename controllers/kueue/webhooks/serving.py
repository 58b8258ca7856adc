"""StatefulSets, LeaderWorkerSets and Deployments: their pod templates say that Kueue holds the pods; what cannot be followed is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.integrations.ancestors import queue_name
from kubemini.controllers.kueue.integrations.pods import spec_shape
from kubemini.controllers.kueue.integrations.priorities import label_of
from kubemini.controllers.kueue.topology.requests import annotations_of
from kubemini.controllers.kueue.webhooks.gates import gate_errors
from kubemini.controllers.kueue.webhooks.jobs import (
    IMMUTABLE,
    QUEUE_PATH,
    elastic_errors,
    left_alone,
    priority_errors,
    queue_errors,
    to_suspend,
    with_defaults,
)
from kubemini.controllers.kueue.webhooks.topology import group_errors, size_errors, template_errors, unreadable
from kubemini.controllers.kueue.workloads import on_hold, workload_name
from kubemini.machinery.errors import FieldError, forbidden, invalid
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest

LWS_FRAMEWORK = "leaderworkerset.x-k8s.io/leaderworkerset"
LWS_TEMPLATE = "spec.leaderWorkerTemplate"
STATEFUL_SET = "statefulset"
MOST_GROUPS = 1_000_000


def marked(template: Tree, annotations: dict[str, str], labels: dict[str, str]) -> Tree:
    """Return a pod template with annotations and labels; itself where it has them."""
    meta = template.get("metadata") or {}
    new = dict(meta)
    for field, more in (("annotations", annotations), ("labels", labels)):
        have = meta.get(field) or {}
        if any(have.get(key) != value for key, value in more.items()):
            new[field] = {**have, **more}
    return template if new == meta else {**template, "metadata": new}


def _common_errors(new: Tree, old: Tree | None, gates: FeatureGates) -> Iterator[FieldError]:
    """Yield what is wrong with the labels and annotations of any kind that serves; its queue and priority come while nothing is ready."""
    yield from queue_errors(new)
    yield from elastic_errors(new, gates)
    if old is not None:
        suspended = not (old.get("status") or {}).get("readyReplicas")
        if (not suspended or not queue_name(new)) and queue_name(new) != queue_name(old):
            yield invalid(QUEUE_PATH, queue_name(new), IMMUTABLE)
        yield from priority_errors(new, old, suspended=suspended)
    if gates.enabled("AdmissionGatedBy"):
        yield from gate_errors(new, old)


Own = Callable[[Tree, Tree | None, WebhookRequest, bool], Iterator[FieldError]]


class ServingWebhook:
    """What the kinds share: `mark` writes into the templates, `own` yields what is wrong (it is told whether Kueue manages the object)."""

    def __init__(self, config: KueueConfig, mark: Callable[[Tree, bool], Tree], own: Own) -> None:
        self.config = config
        self._mark = mark
        self._own = own

    def _managed(self, obj: Tree, request: WebhookRequest) -> bool:
        if "deletionTimestamp" in obj["metadata"] and request.gates.enabled("SkipAncestorCheckForDeletedWorkloads"):
            return False
        return to_suspend(obj, self.config, request)

    def mutate(self, request: WebhookRequest) -> Tree | None:
        """Mark the pod templates of a managed object."""
        obj = request.obj
        if obj is None or left_alone(request) or of_another(obj):
            return None
        new = with_defaults(obj, self.config, request)
        if self._managed(new, request):
            new = self._mark(new, bool(queue_name(new)))
        return None if new is obj else new

    def validate(self, request: WebhookRequest) -> None:
        """Refuse what Kueue cannot follow."""
        new, old = request.obj, request.old
        if new is None or left_alone(request) or of_another(new):
            return
        found = list(_common_errors(new, old, request.gates))
        found += self._own(new, old, request, self._managed(new, request))
        if found:
            raise Denied.fields(found)


def of_another(obj: Tree) -> bool:
    """Tell whether a StatefulSet belongs to another framework, as those of a LeaderWorkerSet do."""
    if obj.get("kind") != "StatefulSet":
        return False
    return annotations_of(obj["spec"]["template"]).get(names.SUSPENDED_BY_PARENT, STATEFUL_SET) != STATEFUL_SET


def shape_errors(new: Tree, old: Tree, path: str) -> Iterator[FieldError]:
    """Yield the parts of a pod spec that decide how many pods of what kind there are and that differ: they stay as they are."""
    after, before = spec_shape(new), spec_shape(old)
    for field in dict.fromkeys((*after, *before)):
        now, was, at = after.get(field), before.get(field), f"{path}.{field}"
        if field not in ("containers", "initContainers") or len(now or ()) != len(was or ()):
            if now != was:
                yield invalid(at, now, IMMUTABLE)
            continue
        for number, (one, other) in enumerate(zip(now or (), was or (), strict=True)):
            if one["resources"] != other["resources"]:
                yield invalid(f"{at}[{number}].resources.requests", one["resources"]["requests"], IMMUTABLE)
            if one["ports"] != other["ports"]:
                yield invalid(f"{at}[{number}].ports", one["ports"], IMMUTABLE)


# ---------------------------------------------------------------------------------------------- kinds


def mark_stateful_set(obj: Tree, queued: bool) -> Tree:
    """Mark the template of a StatefulSet."""
    spec = obj["spec"]
    template = marked(spec["template"], {names.SUSPENDED_BY_PARENT: STATEFUL_SET}, {})
    return obj if template is spec["template"] else {**obj, "spec": {**spec, "template": template}}


def stateful_set_errors(new: Tree, old: Tree | None, request: WebhookRequest, managed: bool) -> Iterator[FieldError]:
    """Yield what is wrong with a StatefulSet: managed, it keeps its shape, and scales only to and from zero."""
    if old is None or not managed:
        return
    yield from shape_errors(new["spec"]["template"]["spec"], old["spec"]["template"]["spec"], "spec.template.spec")
    replicas, before = new["spec"].get("replicas", 1), old["spec"].get("replicas", 1)
    if replicas and before and replicas != before:
        yield invalid("spec.replicas", replicas, IMMUTABLE)
    if not before and replicas:
        if (new.get("status") or {}).get("replicas"):
            yield forbidden("spec.replicas", "scaling down is still in progress")
            return
        meta = old["metadata"]
        name = workload_name("StatefulSet", "apps", meta["name"], meta["uid"])
        workload = request.reader.get("workloads.kueue.x-k8s.io", meta["namespace"], name)
        if workload is not None and not on_hold(workload):
            yield forbidden("spec.replicas", "workload from previous scale-down is still being deleted")


def mark_leader_worker_set(obj: Tree, queued: bool) -> Tree:
    """Mark both templates of a LeaderWorkerSet."""
    spec = obj["spec"]
    template = spec["leaderWorkerTemplate"]
    labels = {names.QUEUE_NAME: queue_name(obj)} if queued else {}
    if label_of(obj):
        labels[names.PRIORITY_CLASS] = label_of(obj)
    annotations = {names.SUSPENDED_BY_PARENT: LWS_FRAMEWORK, names.POD_GROUP_SERVING: "true"}
    new = dict(template)
    for key in ("leaderTemplate", "workerTemplate"):
        if template.get(key):
            # Ranks of workers count from 1 where the leader has a template of its own; in a group of pod sets the group sees to that
            grouped = names.POD_SET_GROUP_NAME in ((template[key].get("metadata") or {}).get("annotations") or {})
            more = {names.POD_INDEX_OFFSET: "1"} if key == "workerTemplate" and template.get("leaderTemplate") and not grouped else {}
            new[key] = marked(template[key], {**annotations, **more}, labels)
    if all(new[key] is template[key] for key in template):
        return obj
    return {**obj, "spec": {**spec, "leaderWorkerTemplate": new}}


def leader_worker_set_errors(new: Tree, old: Tree | None, request: WebhookRequest, managed: bool) -> Iterator[FieldError]:
    """Yield what is wrong with a LeaderWorkerSet: managed, its groups keep their size and shape."""
    template, gates = new["spec"]["leaderWorkerTemplate"], request.gates
    replicas = new["spec"].get("replicas", 1)
    if replicas > MOST_GROUPS:
        yield invalid("spec.replicas", replicas, f"invalid LeaderWorkerSet replicas: must be <= {MOST_GROUPS}, got {replicas}")
    size = template.get("size", 1)
    parts = [("workerTemplate", size - 1 if template.get("leaderTemplate") else size)]
    if template.get("leaderTemplate"):
        parts.insert(0, ("leaderTemplate", 1))
    if gates.enabled("TopologyAwareScheduling"):
        members = [(template[key], f"{LWS_TEMPLATE}.{key}.metadata.annotations", count) for key, count in parts]
        readable = not any(unreadable(member) for member, _, _ in members)
        for member, path, count in members:
            yield from template_errors(member, path, gates)
            if readable:
                yield from size_errors(member, path, count)
        if readable:
            yield from group_errors(members)
    if old is None or not managed:
        return
    before = old["spec"]["leaderWorkerTemplate"]
    for key in ("leaderTemplate", "workerTemplate"):
        now, was = template.get(key), before.get(key)
        if now and was:
            yield from shape_errors(now["spec"], was["spec"], f"{LWS_TEMPLATE}.{key}.spec")
        elif now or was:
            yield invalid(f"{LWS_TEMPLATE}.{key}", now, IMMUTABLE)
    if gates.enabled("LWSImmutableGroupSize") and before.get("size", 1) != size:
        yield invalid(f"{LWS_TEMPLATE}.size", size, IMMUTABLE)


def mark_deployment(obj: Tree, queued: bool) -> Tree:
    """Hand a Deployment's queue down to its pods."""
    spec = obj["spec"]
    labels = {names.MANAGED: "true"}
    if queued:
        labels[names.QUEUE_NAME] = queue_name(obj)
    if label_of(obj):
        labels[names.PRIORITY_CLASS] = label_of(obj)
    template = marked(spec["template"], {names.SUSPENDED_BY_PARENT: "deployment"}, labels)
    return obj if template is spec["template"] else {**obj, "spec": {**spec, "template": template}}


def deployment_errors(new: Tree, old: Tree | None, request: WebhookRequest, managed: bool) -> Iterator[FieldError]:
    """Yield nothing: each pod of a Deployment is checked as one that stands alone."""
    yield from ()


def webhooks(config: KueueConfig) -> list[Webhook]:
    """Return the webhooks of these kinds."""
    found = []
    for framework, name, storage, mark, own in (
        ("statefulset", "statefulset", "statefulsets.apps", mark_stateful_set, stateful_set_errors),
        (LWS_FRAMEWORK, "leaderworkerset", "leaderworkersets.leaderworkerset.x-k8s.io", mark_leader_worker_set, leader_worker_set_errors),
        ("deployment", "deployment", "deployments.apps", mark_deployment, deployment_errors),
    ):
        if framework in config.frameworks:
            hook = ServingWebhook(config, mark, own)
            found.append(Webhook(f"m{name}.kb.io", (storage,), mutate=hook.mutate))
            found.append(Webhook(f"v{name}.kb.io", (storage,), validate=hook.validate))
    return found
