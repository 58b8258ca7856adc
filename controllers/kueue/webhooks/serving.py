"""StatefulSets, LeaderWorkerSets and Deployments: their pod templates say that Kueue holds the pods; what cannot be followed is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.integrations.ancestors import queue_name
from kubemini.controllers.kueue.integrations.pods import role_hash
from kubemini.controllers.kueue.integrations.priorities import label_of
from kubemini.controllers.kueue.webhooks.jobs import IMMUTABLE, QUEUE_PATH, create_errors, managed_above, namespace_selected, with_defaults
from kubemini.controllers.kueue.webhooks.topology import group_errors, template_errors
from kubemini.controllers.kueue.workloads import on_hold, workload_name
from kubemini.machinery.errors import FieldError, forbidden, invalid
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest

LWS_FRAMEWORK = "leaderworkerset.x-k8s.io/leaderworkerset"


def marked(template: Tree, annotations: dict[str, str], labels: dict[str, str]) -> Tree:
    """Return a pod template with annotations and labels; itself where it has them."""
    meta = template.get("metadata") or {}
    new = dict(meta)
    for field, more in (("annotations", annotations), ("labels", labels)):
        have = meta.get(field) or {}
        if any(have.get(key) != value for key, value in more.items()):
            new[field] = {**have, **more}
    return template if new == meta else {**template, "metadata": new}


def _queue_errors(new: Tree, old: Tree) -> Iterator[FieldError]:
    if queue_name(new) == queue_name(old):
        return
    if queue_name(old) and not queue_name(new):
        yield invalid(QUEUE_PATH, "", IMMUTABLE)
    elif (old.get("status") or {}).get("readyReplicas"):
        yield invalid(QUEUE_PATH, queue_name(new), IMMUTABLE)


class ServingWebhook:
    """What the kinds share: `mark` writes into the templates, `own` yields what is wrong."""

    def __init__(
        self, config: KueueConfig, mark: Callable[[Tree, bool], Tree], own: Callable[[Tree, Tree | None, WebhookRequest], Iterator[FieldError]]
    ) -> None:
        self.config = config
        self._mark = mark
        self._own = own

    def mutate(self, request: WebhookRequest) -> Tree | None:
        """Mark the pod templates of a managed object."""
        obj = request.obj
        if obj is None or "deletionTimestamp" in obj["metadata"] or managed_above(obj, self.config, request):
            return None
        new = with_defaults(obj, self.config, request) if request.operation == "CREATE" else obj
        if (queue_name(new) or self.config.manage_without_queue) and namespace_selected(self.config, request):
            new = self._mark(new, bool(queue_name(new)))
        return None if new is obj else new

    def validate(self, request: WebhookRequest) -> None:
        """Refuse what Kueue cannot follow."""
        new, old = request.obj, request.old
        if new is None or not (queue_name(new) or (old is not None and queue_name(old))) or managed_above(new, self.config, request):
            return
        found = list(create_errors(new, prebuilt=False))
        if old is not None:
            found += _queue_errors(new, old)
        found += self._own(new, old, request)
        if found:
            raise Denied.fields(found)


# ---------------------------------------------------------------------------------------------- kinds


def mark_stateful_set(obj: Tree, queued: bool) -> Tree:
    """Mark the template of a StatefulSet."""
    spec = obj["spec"]
    template = marked(spec["template"], {names.SUSPENDED_BY_PARENT: "statefulset"}, {})
    return obj if template is spec["template"] else {**obj, "spec": {**spec, "template": template}}


def stateful_set_errors(new: Tree, old: Tree | None, request: WebhookRequest) -> Iterator[FieldError]:
    """Yield what is wrong with a StatefulSet."""
    replicas = new["spec"].get("replicas", 1)
    yield from template_errors(new["spec"]["template"], "spec.template.metadata.annotations", replicas)
    if old is None:
        return
    if role_hash(new["spec"]["template"]["spec"]) != role_hash(old["spec"]["template"]["spec"]):
        yield invalid("spec.template", "…", IMMUTABLE)
    before = old["spec"].get("replicas", 1)
    if replicas == before:
        return
    if replicas and before:
        yield invalid("spec.replicas", replicas, IMMUTABLE)
    elif replicas and not before:
        if (old.get("status") or {}).get("replicas"):
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


def leader_worker_set_errors(new: Tree, old: Tree | None, request: WebhookRequest) -> Iterator[FieldError]:
    """Yield what is wrong with a LeaderWorkerSet."""
    template = new["spec"]["leaderWorkerTemplate"]
    size = template.get("size", 1)
    parts = [("workerTemplate", size - 1 if template.get("leaderTemplate") else size)]
    if template.get("leaderTemplate"):
        parts.insert(0, ("leaderTemplate", 1))
    members = []
    for key, count in parts:
        path = f"spec.leaderWorkerTemplate.{key}.metadata.annotations"
        yield from template_errors(template[key], path, count)
        members.append((template[key], path, count))
    yield from group_errors(members)
    if old is None:
        return
    before = old["spec"]["leaderWorkerTemplate"]
    if request.gates.enabled("LWSImmutableGroupSize") and before.get("size", 1) != size:
        yield invalid("spec.leaderWorkerTemplate.size", size, IMMUTABLE)
    for key, _ in parts:
        if before.get(key) and role_hash(template[key]["spec"]) != role_hash(before[key]["spec"]):
            yield invalid(f"spec.leaderWorkerTemplate.{key}", "…", IMMUTABLE)


def mark_deployment(obj: Tree, queued: bool) -> Tree:
    """Hand a Deployment's queue down to its pods."""
    spec = obj["spec"]
    labels = {names.QUEUE_NAME: queue_name(obj)} if queued else {}
    if label_of(obj):
        labels[names.PRIORITY_CLASS] = label_of(obj)
    template = marked(spec["template"], {names.SUSPENDED_BY_PARENT: "deployment"}, labels)
    return obj if template is spec["template"] else {**obj, "spec": {**spec, "template": template}}


def deployment_errors(new: Tree, old: Tree | None, request: WebhookRequest) -> Iterator[FieldError]:
    """Yield what is wrong with a Deployment beyond its queue."""
    yield from template_errors(new["spec"]["template"], "spec.template.metadata.annotations")


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
