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
from kubemini.controllers.kueue.integrations.job_marks import prebuilt_name
from kubemini.controllers.kueue.integrations.jobset import JobSetIntegration
from kubemini.controllers.kueue.integrations.priorities import label_of
from kubemini.controllers.kueue.topology.requests import annotations_of
from kubemini.controllers.kueue.webhooks.gates import gate_errors
from kubemini.controllers.kueue.webhooks.numbers import FALSE, TRUE, int_fault, read_int
from kubemini.controllers.kueue.webhooks.topology import group_errors, size_errors, template_errors, unreadable
from kubemini.machinery import names as rules
from kubemini.machinery.errors import FieldError, forbidden, invalid
from kubemini.machinery.labels import from_label_selector
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.keys import controller_of
from kubemini.runtime.webhooks import Denied, Reader, Webhook, WebhookRequest

IMMUTABLE = "field is immutable"
QUEUE_PATH = f"metadata.labels[{names.QUEUE_NAME}]"
MAX_EXEC_TIME_PATH = f"metadata.labels[{names.MAX_EXEC_TIME_SECONDS}]"
ELASTIC_PATH = f"metadata.annotations[{names.ELASTIC_JOB}]"
LEAST_PATH = f"metadata.annotations[{names.JOB_MIN_PARALLELISM}]"
EQUAL_PATH = f"metadata.annotations[{names.JOB_COMPLETIONS_EQUAL_PARALLELISM}]"
SYSTEM_NAMESPACES = ("kube-system", "kueue-system")


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


def left_alone(request: WebhookRequest) -> bool:
    """Tell whether a request concerns a namespace that the installed webhooks are not called for."""
    return request.namespace in SYSTEM_NAMESPACES


def emptied(new: Tree, old: Tree, request: WebhookRequest) -> bool:
    """Tell whether a job lost its queue in a namespace with a default one."""
    return not queue_name(new) and bool(queue_name(old)) and default_queue(request)


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
    defaulted = config.on("WorkloadPriorityClassDefaulting") and not label_of(obj) and not owned_by_known(obj)
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


def queue_errors(obj: Tree) -> list[FieldError]:
    """Return what is wrong with the name of the queue: the label may be missing, not empty."""
    name = (obj["metadata"].get("labels") or {}).get(names.QUEUE_NAME)
    return rules.errors(QUEUE_PATH, name, rules.dns1123_subdomain(name)) if name is not None else []


def elastic_errors(obj: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    """Yield a refusal of the mark of an elastic job on a kind that is none."""
    kind = f"{obj.get('apiVersion', '')}, Kind={obj.get('kind', '')}"
    if is_elastic(obj, gates) and kind != "batch/v1, Kind=Job":
        yield forbidden(ELASTIC_PATH, f'elastic job is not supported for "{kind}"')


def is_elastic(obj: Tree, gates: FeatureGates) -> bool:
    """Tell whether a job grows and shrinks by slices."""
    return annotation(obj, names.ELASTIC_JOB) == "true" and gates.enabled("ElasticJobsViaWorkloadSlices")


def prebuilt_path(obj: Tree) -> str:
    """Return the path of the name of a job's own Workload: the annotation where there is one, else the label."""
    return f"metadata.{'annotations' if annotation(obj, names.PREBUILT_WORKLOAD) else 'labels'}[{names.PREBUILT_WORKLOAD}]"


def _prebuilt_errors(obj: Tree) -> list[FieldError]:
    meta, path = obj["metadata"], prebuilt_path(obj)
    name = annotation(obj, names.PREBUILT_WORKLOAD) or (meta.get("labels") or {}).get(names.PREBUILT_WORKLOAD)
    return rules.errors(path, name, rules.dns1123_subdomain(name)) if name is not None else []


def create_errors(obj: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    """Yield what is wrong with the labels and annotations of any job that can be suspended."""
    yield from queue_errors(obj)
    yield from _prebuilt_errors(obj)
    text = (obj["metadata"].get("labels") or {}).get(names.MAX_EXEC_TIME_SECONDS)
    if text is not None:
        seconds = read_int(text)
        if seconds is None:
            yield invalid(MAX_EXEC_TIME_PATH, text, int_fault(text))
        elif seconds <= 0:
            yield invalid(MAX_EXEC_TIME_PATH, seconds, "should be greater than 0")
    yield from elastic_errors(obj, gates)
    if gates.enabled("AdmissionGatedBy"):
        yield from gate_errors(obj, None)


def update_errors(new: Tree, old: Tree, gates: FeatureGates, *, suspended: bool, was_suspended: bool, default: bool) -> Iterator[FieldError]:
    """Yield what may not change in any job; `default` says that the namespace has a default LocalQueue."""
    if not suspended and queue_name(new) != queue_name(old):
        yield invalid(QUEUE_PATH, queue_name(new), IMMUTABLE)
    if default and queue_name(old) and not queue_name(new):
        yield invalid(QUEUE_PATH, "", "queue-name must not be empty in namespace with default queue")
    if suspended or is_elastic(old, gates):
        yield from _prebuilt_errors(new)
    elif prebuilt_name(new) != prebuilt_name(old):
        yield invalid(prebuilt_path(new), prebuilt_name(new), IMMUTABLE)
    after, before = ((each["metadata"].get("labels") or {}).get(names.MAX_EXEC_TIME_SECONDS, "") for each in (new, old))
    if not (suspended and was_suspended) and after != before:
        yield invalid(MAX_EXEC_TIME_PATH, after, IMMUTABLE)
    yield from priority_errors(new, old, suspended=suspended)
    if is_elastic(new, gates) != is_elastic(old, gates):
        yield invalid(ELASTIC_PATH, is_elastic(new, gates), IMMUTABLE)
    if gates.enabled("AdmissionGatedBy"):
        yield from gate_errors(new, old)


def priority_errors(new: Tree, old: Tree, *, suspended: bool) -> Iterator[FieldError]:
    """Yield how the WorkloadPriorityClass may not change: it comes only to what is suspended, and never goes."""
    at = f"metadata.labels[{names.PRIORITY_CLASS}]"
    if not suspended and not label_of(old) and label_of(new):
        yield invalid(at, label_of(new), "WorkloadPriorityClass cannot be added to a non-suspended workload")
    elif label_of(old) and not label_of(new):
        yield invalid(at, "", "WorkloadPriorityClass cannot be removed from a workload")


# ---------------------------------------------------------------------------------------------- Jobs and JobSets


class JobWebhook:
    """Defaults and validates one suspendable kind; `own` yields what is wrong with it beyond the rules of all jobs."""

    def __init__(self, config: KueueConfig, kind: Integration, own: Callable[[Tree, Tree | None, FeatureGates], Iterator[FieldError]]) -> None:
        self.config = config
        self.kind = kind
        self._own = own

    def mutate(self, request: WebhookRequest) -> Tree | None:
        """Suspend what has to wait."""
        obj = request.obj
        if obj is None or left_alone(request):
            return None
        new = with_defaults(obj, self.config, request)
        if to_suspend(new, self.config, request) and not new["spec"].get("suspend"):
            new = self.kind.suspended(new)
        if (
            request.gates.enabled("MultiKueue")
            and new["spec"].get("managedBy") in (None, "kubernetes.io/job-controller", "jobset.sigs.k8s.io/jobset-controller")
            and multi_kueue_queue(new, request)
        ):
            new = {**new, "spec": {**new["spec"], "managedBy": names.MANAGED_BY_MULTI_KUEUE}}
        if self.kind.resource.kind == "Job" and is_elastic(new, request.gates):
            new = _with_elastic_gate(new)
        return None if new is obj else new

    def validate(self, request: WebhookRequest) -> None:
        """Refuse what Kueue cannot work with."""
        new, old = request.obj, request.old
        if new is None or left_alone(request):
            return
        found = list(create_errors(new, request.gates))
        if old is not None:
            suspended, was_suspended = self.kind.is_suspended(new), self.kind.is_suspended(old)
            found += update_errors(new, old, request.gates, suspended=suspended, was_suspended=was_suspended, default=emptied(new, old, request))
        found += self._own(new, old, request.gates)
        if found:
            raise Denied.fields(found)


def _with_elastic_gate(job: Tree) -> Tree:
    template = job["spec"]["template"]
    gates = template["spec"].get("schedulingGates") or []
    if any(gate["name"] == names.ELASTIC_JOB for gate in gates):
        return job
    spec = {**template["spec"], "schedulingGates": [*gates, {"name": names.ELASTIC_JOB}]}
    return {**job, "spec": {**job["spec"], "template": {**template, "spec": spec}}}


def job_errors(new: Tree, old: Tree | None, gates: FeatureGates) -> Iterator[FieldError]:
    """Yield what is wrong with a Job beyond the rules of all jobs."""
    if old is None or _given(new, names.JOB_MIN_PARALLELISM) != _given(old, names.JOB_MIN_PARALLELISM):
        yield from _least_errors(new, gates)
    yield from _equal_errors(new)
    if old is not None:
        yield from _partial_update_errors(new, old)
    if gates.enabled("TopologyAwareScheduling"):
        yield from _job_topology_errors(new, gates)


def _given(job: Tree, key: str) -> str | None:
    found: str | None = (job["metadata"].get("annotations") or {}).get(key)
    return found


def _least_errors(job: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    text = _given(job, names.JOB_MIN_PARALLELISM)
    if text is None:
        return
    least, count = read_int(text), pods_count(job["spec"])
    if least is None:
        yield invalid(LEAST_PATH, text, int_fault(text))
    elif not 0 < least < count:
        yield invalid(LEAST_PATH, least, f"should be between 0 and {count - 1}")
    if is_elastic(job, gates):
        yield invalid(LEAST_PATH, text, "partial admission and elastic job cannot be used together")


def _equal_errors(job: Tree) -> Iterator[FieldError]:
    text, spec = _given(job, names.JOB_COMPLETIONS_EQUAL_PARALLELISM), job["spec"]
    if text is None or text in FALSE:
        return
    if text not in TRUE:
        yield invalid(EQUAL_PATH, text, f'strconv.ParseBool: parsing "{text}": invalid syntax')
        return
    if spec.get("completionMode", "NonIndexed") == "NonIndexed":
        yield invalid(EQUAL_PATH, text, "should not be enabled for NonIndexed jobs")
    if spec.get("completions", 1) != spec.get("parallelism", 1):
        words = f"should be equal to parallelism when {names.JOB_COMPLETIONS_EQUAL_PARALLELISM} annotation is true"
        yield invalid("spec.completions", spec.get("completions"), words)


def _partial_update_errors(new: Tree, old: Tree) -> Iterator[FieldError]:
    partial = _given(old, names.JOB_MIN_PARALLELISM) is not None
    if partial and not old["spec"].get("suspend") and old["spec"].get("parallelism", 1) != new["spec"].get("parallelism", 1):
        yield forbidden("spec.parallelism", "cannot change when partial admission is enabled and the job is not suspended")
    after, before = ((_given(each, names.JOB_COMPLETIONS_EQUAL_PARALLELISM) or "") in TRUE for each in (new, old))
    if after != before and not JOB.is_suspended(new) and not JOB.is_suspended(old):
        yield forbidden(EQUAL_PATH, f"{IMMUTABLE} while the job is not suspended")


def _job_topology_errors(job: Tree, gates: FeatureGates) -> Iterator[FieldError]:
    path = "spec.template.metadata.annotations"
    template = job["spec"]["template"]
    found = template_errors(template, path, gates)
    if found:
        yield from found
        return
    if is_elastic(job, gates):
        for key, what in ((names.REQUIRED_TOPOLOGY, "required"), (names.PREFERRED_TOPOLOGY, "preferred")):
            if key in annotations_of(template):
                yield forbidden(f"{path}.{key}", f"{what} topology is not supported with elastic jobs")
                return
    yield from size_errors(template, path, pods_count(job["spec"]))


def job_set_errors(new: Tree, old: Tree | None, gates: FeatureGates) -> Iterator[FieldError]:
    """Yield what is wrong with a JobSet beyond the rules of all jobs."""
    if not gates.enabled("TopologyAwareScheduling"):
        return
    templates = []
    for replicated in new["spec"].get("replicatedJobs") or ():
        why = unreadable(replicated["template"]["spec"]["template"])
        if why:
            raise Denied(why)
    for number, replicated in enumerate(new["spec"].get("replicatedJobs") or ()):
        template = replicated["template"]["spec"]["template"]
        path = f"spec.replicatedJobs[{number}].template.spec.template.metadata.annotations"
        count = replicated.get("replicas", 1) * pods_count(replicated["template"]["spec"])
        yield from template_errors(template, path, gates)
        yield from size_errors(template, path, count)
        templates.append((template, path, count))
    yield from group_errors(templates)


JOB = JobIntegration()


def webhooks(config: KueueConfig) -> list[Webhook]:
    """Return the webhooks of Jobs and JobSets."""
    found = []
    if "batch/job" in config.frameworks:
        job = JobWebhook(config, JOB, job_errors)
        found.append(Webhook("mjob.kb.io", ("jobs.batch",), ("CREATE",), mutate=job.mutate))
        found.append(Webhook("vjob.kb.io", ("jobs.batch",), validate=job.validate))
    if "jobset.x-k8s.io/jobset" in config.frameworks:
        jobset = JobWebhook(config, JobSetIntegration(), job_set_errors)
        found.append(Webhook("mjobset.kb.io", ("jobsets.jobset.x-k8s.io",), ("CREATE",), mutate=jobset.mutate))
        found.append(Webhook("vjobset.kb.io", ("jobsets.jobset.x-k8s.io",), validate=jobset.validate))
    return found
