"""Jobs and JobSets that Kueue manages: suspended on creation, checked on every write. Mirrors ``pkg/controller/jobframework``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue.config import KueueConfig
from kubemini.controllers.kueue.integrations.ancestors import TooDeep, ancestor, owned_by_known, queue_name
from kubemini.controllers.kueue.integrations.framework import Integration
from kubemini.controllers.kueue.integrations.job import JobIntegration, annotation, pods_count
from kubemini.controllers.kueue.integrations.job_marks import max_execution_time, prebuilt_name
from kubemini.controllers.kueue.integrations.jobset import JobSetIntegration
from kubemini.controllers.kueue.integrations.priorities import label_of
from kubemini.controllers.kueue.webhooks.gates import gate_errors
from kubemini.controllers.kueue.webhooks.topology import group_errors, template_errors
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, forbidden, invalid
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.keys import controller_of
from kubemini.runtime.webhooks import Denied, Reader, Webhook, WebhookRequest

IMMUTABLE = "field is immutable"
QUEUE_PATH = f"metadata.labels[{names.QUEUE_NAME}]"


# ---------------------------------------------------------------------------------------------- what all jobs share


def lookup(reader: Reader) -> Callable[[Resource, str, str], Tree | None]:
    """Return a finder of owners."""
    return lambda resource, namespace, name: reader.get(resource.storage, namespace, name)


def namespace_selected(config: KueueConfig, request: WebhookRequest) -> bool:
    """Tell whether Kueue manages jobs of the request's namespace."""
    if config.namespace_selector is None:
        return True
    namespace = request.reader.get("namespaces", "", request.namespace)
    labels = (namespace["metadata"].get("labels") or {}) if namespace is not None else {}
    return from_label_selector(config.namespace_selector).matches(labels)


def default_queue(request: WebhookRequest) -> bool:
    """Tell whether the namespace has a LocalQueue for jobs that name none."""
    queue = request.reader.get("localqueues.kueue.x-k8s.io", request.namespace, names.DEFAULT_LOCAL_QUEUE)
    return queue is not None and queue["spec"].get("stopPolicy", "None") == "None"


def with_label(obj: Tree, key: str, value: str) -> Tree:
    """Return an object with a label."""
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "labels": {**(meta.get("labels") or {}), key: value}}}


def with_defaults(obj: Tree, config: KueueConfig, request: WebhookRequest) -> Tree:
    """Return a job with the default LocalQueue and WorkloadPriorityClass, where they exist and apply."""
    if not queue_name(obj) and not owned_by_known(obj) and default_queue(request) and namespace_selected(config, request):
        obj = with_label(obj, names.QUEUE_NAME, names.DEFAULT_LOCAL_QUEUE)
    defaulted = config.on("WorkloadPriorityClassDefaulting") and queue_name(obj) and not label_of(obj) and not owned_by_known(obj)
    if defaulted and request.reader.get("workloadpriorityclasses.kueue.x-k8s.io", "", "default") is not None:
        obj = with_label(obj, names.PRIORITY_CLASS, "default")
    return obj


def managed_above(obj: Tree, config: KueueConfig, request: WebhookRequest) -> bool:
    """Tell whether an owner of the object is managed."""
    if controller_of(obj) is None:
        return False
    obj = obj if obj["metadata"].get("namespace") else {**obj, "metadata": {**obj["metadata"], "namespace": request.namespace}}
    try:
        return ancestor(obj, lookup(request.reader), any_queue=config.manage_without_queue) is not None
    except TooDeep:
        return True


def to_suspend(obj: Tree, config: KueueConfig, request: WebhookRequest) -> bool:
    """Tell whether a new job must wait for admission."""
    if managed_above(obj, config, request):
        return False
    if queue_name(obj):
        return namespace_selected(config, request)
    return config.manage_without_queue and namespace_selected(config, request)


def multi_kueue_queue(obj: Tree, request: WebhookRequest) -> bool:
    """Tell whether the ClusterQueue behind a job's LocalQueue has a MultiKueue check."""
    local = request.reader.get("localqueues.kueue.x-k8s.io", request.namespace, queue_name(obj)) if queue_name(obj) else None
    queue = request.reader.get("clusterqueues.kueue.x-k8s.io", "", local["spec"].get("clusterQueue", "")) if local is not None else None
    if queue is None:
        return False
    for check in (queue["spec"].get("admissionChecksStrategy") or {}).get("admissionChecks") or ():
        found = request.reader.get("admissionchecks.kueue.x-k8s.io", "", check["name"])
        if found is not None and found["spec"].get("controllerName") == names.MANAGED_BY_MULTI_KUEUE:
            return True
    return False


def create_errors(obj: Tree, *, prebuilt: bool = True, elastic: bool = False) -> Iterator[FieldError]:
    """Yield what is wrong with the labels and annotations of any job."""
    labels = obj["metadata"].get("labels") or {}
    if names.QUEUE_NAME in labels:
        yield from rules.errors(
            QUEUE_PATH, labels[names.QUEUE_NAME], rules.dns1123_subdomain(labels[names.QUEUE_NAME]) if labels[names.QUEUE_NAME] else None
        )
    name = prebuilt_name(obj)
    if name and prebuilt:
        yield from rules.errors(f"metadata.annotations[{names.PREBUILT_WORKLOAD}]", name, rules.dns1123_subdomain(name))
    if names.MAX_EXEC_TIME_SECONDS in labels:
        text = labels[names.MAX_EXEC_TIME_SECONDS]
        at = f"metadata.labels[{names.MAX_EXEC_TIME_SECONDS}]"
        if not text.lstrip("-+").isdigit():
            yield invalid(at, text, f'strconv.Atoi: parsing "{text}": invalid syntax')
        elif int(text) <= 0:
            yield invalid(at, int(text), "should be greater than 0")
    if annotation(obj, names.ELASTIC_JOB) and not elastic:
        kind = f"{obj.get('apiVersion', '')}, Kind={obj.get('kind', '')}"
        yield invalid(f"metadata.annotations[{names.ELASTIC_JOB}]", annotation(obj, names.ELASTIC_JOB), f'elastic job is not supported for "{kind}"')


def update_errors(new: Tree, old: Tree, *, suspended: bool, was_suspended: bool, default: bool) -> Iterator[FieldError]:
    """Yield what may not change in any job; `default` says that the namespace has a default LocalQueue."""
    if not suspended and queue_name(new) != queue_name(old):
        yield invalid(QUEUE_PATH, queue_name(new), IMMUTABLE)
    elif default and queue_name(old) and not queue_name(new):
        yield invalid(QUEUE_PATH, "", "queue-name must not be empty in namespace with default queue")
    if not suspended and prebuilt_name(new) != prebuilt_name(old):
        yield invalid(f"metadata.annotations[{names.PREBUILT_WORKLOAD}]", prebuilt_name(new), IMMUTABLE)
    if not (suspended and was_suspended) and max_execution_time(new) != max_execution_time(old):
        yield invalid(f"metadata.labels[{names.MAX_EXEC_TIME_SECONDS}]", max_execution_time(new), IMMUTABLE)
    at = f"metadata.labels[{names.PRIORITY_CLASS}]"
    if not label_of(old) and label_of(new) and not was_suspended:
        yield invalid(at, label_of(new), "WorkloadPriorityClass cannot be added to a non-suspended workload")
    if label_of(old) and not label_of(new):
        yield invalid(at, "", "WorkloadPriorityClass cannot be removed from a workload")
    if annotation(new, names.ELASTIC_JOB) != annotation(old, names.ELASTIC_JOB):
        yield invalid(f"metadata.annotations[{names.ELASTIC_JOB}]", annotation(new, names.ELASTIC_JOB), IMMUTABLE)


# ---------------------------------------------------------------------------------------------- Jobs and JobSets


class JobWebhook:
    """Defaults and validates one suspendable kind."""

    def __init__(self, config: KueueConfig, kind: Integration, *, own: Callable[[Tree, Tree | None], Iterator[FieldError]], elastic: bool) -> None:
        self.config = config
        self.kind = kind
        self._own = own
        self._elastic = elastic

    def mutate(self, request: WebhookRequest) -> Tree | None:
        """Suspend what has to wait."""
        obj = request.obj
        if obj is None:
            return None
        new = with_defaults(obj, self.config, request)
        if to_suspend(new, self.config, request):
            if not new["spec"].get("suspend"):
                new = self.kind.suspended(new)
            if new["spec"].get("managedBy") in (None, "kubernetes.io/job-controller", "jobset.sigs.k8s.io/jobset-controller") and multi_kueue_queue(
                new, request
            ):
                new = {**new, "spec": {**new["spec"], "managedBy": names.MANAGED_BY_MULTI_KUEUE}}
            if self._elastic and annotation(new, names.ELASTIC_JOB) == "true" and self.config.on("ElasticJobsViaWorkloadSlices"):
                new = _with_elastic_gate(new)
        return None if new is obj else new

    def validate(self, request: WebhookRequest) -> None:
        """Refuse what Kueue cannot work with."""
        new, old = request.obj, request.old
        if new is None:
            return
        found = list(create_errors(new, elastic=self._elastic))
        if self.config.on("AdmissionGatedBy"):
            found += gate_errors(new, old)
        if old is not None:
            default = default_queue(request) and not queue_name(new) and bool(queue_name(old))
            found += update_errors(new, old, suspended=self.kind.is_suspended(new), was_suspended=self.kind.is_suspended(old), default=default)
        found += self._own(new, old)
        if found:
            raise Denied.fields(found)


def _with_elastic_gate(job: Tree) -> Tree:
    template = job["spec"]["template"]
    gates = template["spec"].get("schedulingGates") or []
    if any(gate["name"] == names.ELASTIC_JOB for gate in gates):
        return job
    spec = {**template["spec"], "schedulingGates": [*gates, {"name": names.ELASTIC_JOB}]}
    return {**job, "spec": {**job["spec"], "template": {**template, "spec": spec}}}


def job_errors(new: Tree, old: Tree | None) -> Iterator[FieldError]:
    """Yield what is wrong with a Job beyond the rules of all jobs."""
    spec = new["spec"]
    least = annotation(new, names.JOB_MIN_PARALLELISM)
    at = f"metadata.annotations[{names.JOB_MIN_PARALLELISM}]"
    if least:
        count = pods_count(spec)
        if not least.lstrip("-+").isdigit():
            yield invalid(at, least, f'strconv.Atoi: parsing "{least}": invalid syntax')
        elif not 0 < int(least) < count and (old is None or JOB.is_suspended(new)):
            yield invalid(at, int(least), f"should be between 0 and {count - 1}")
        if annotation(new, names.ELASTIC_JOB) == "true":
            yield invalid(at, least, f"{names.JOB_MIN_PARALLELISM} and {names.ELASTIC_JOB} cannot be used together")
        stopping = "true" in (annotation(new, names.STOPPING), annotation(old, names.STOPPING) if old is not None else "")
        if old is not None and not JOB.is_suspended(old) and not stopping and old["spec"].get("parallelism") != spec.get("parallelism"):
            yield forbidden("spec.parallelism", "cannot change when partial admission is enabled and the job is not suspended")
    equal = annotation(new, names.JOB_COMPLETIONS_EQUAL_PARALLELISM)
    if equal:
        at = f"metadata.annotations[{names.JOB_COMPLETIONS_EQUAL_PARALLELISM}]"
        if equal not in ("true", "false", "1", "0", "t", "f", "T", "F", "TRUE", "FALSE", "True", "False"):
            yield invalid(at, equal, f'strconv.ParseBool: parsing "{equal}": invalid syntax')
        elif equal in ("true", "1", "t", "T", "TRUE", "True"):
            if spec.get("completionMode", "NonIndexed") == "NonIndexed":
                yield invalid(at, equal, "should not be enabled for NonIndexed jobs")
            if spec.get("completions") != spec.get("parallelism"):
                yield invalid(
                    "spec.completions",
                    spec.get("completions"),
                    f"should be equal to parallelism when {names.JOB_COMPLETIONS_EQUAL_PARALLELISM} is true",
                )
    yield from template_errors(spec["template"], "spec.template.metadata.annotations", pods_count(spec))


def job_set_errors(new: Tree, old: Tree | None) -> Iterator[FieldError]:
    """Yield what is wrong with a JobSet beyond the rules of all jobs."""
    templates = []
    for number, replicated in enumerate(new["spec"].get("replicatedJobs") or ()):
        template = replicated["template"]["spec"]["template"]
        path = f"spec.replicatedJobs[{number}].template.metadata.annotations"
        count = replicated.get("replicas", 1) * pods_count(replicated["template"]["spec"])
        yield from template_errors(template, path, count)
        templates.append((template, path, count))
    yield from group_errors(templates)


JOB = JobIntegration()


def webhooks(config: KueueConfig) -> list[Webhook]:
    """Return the webhooks of Jobs and JobSets."""
    found = []
    if "batch/job" in config.frameworks:
        job = JobWebhook(config, JOB, own=job_errors, elastic=True)
        found.append(Webhook("mjob.kb.io", ("jobs.batch",), ("CREATE",), mutate=job.mutate))
        found.append(Webhook("vjob.kb.io", ("jobs.batch",), validate=job.validate))
    if "jobset.x-k8s.io/jobset" in config.frameworks:
        jobset = JobWebhook(config, JobSetIntegration(), own=job_set_errors, elastic=False)
        found.append(Webhook("mjobset.kb.io", ("jobsets.jobset.x-k8s.io",), ("CREATE",), mutate=jobset.mutate))
        found.append(Webhook("vjobset.kb.io", ("jobsets.jobset.x-k8s.io",), validate=jobset.validate))
    return found
