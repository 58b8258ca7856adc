"""The validating webhook of JobSets on update: roles and manager never change, but for the parts of pod templates that a queue sets.

While the JobSet is suspended, or gets suspended or resumed by this very write, labels, annotations and scheduling fields of pod templates are open. With gate ElasticJobSet
the size of indexed Jobs is, in step. All other rules are immutability rules of the schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.controllers.jobset.printing import printed_roles
from kubemini.controllers.jobset.view import JobSetView
from kubemini.machinery.errors import FieldError, forbidden, invalid
from kubemini.machinery.schema.roundtrip import go_form
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, WebhookRequest

Errors = Iterator[FieldError]

IMMUTABLE = "field is immutable"
OPEN_METADATA = ("labels", "annotations")
OPEN_SPEC = ("nodeSelector", "tolerations", "schedulingGates")


def validate_update(request: WebhookRequest) -> None:
    """Refuse an update that changes what must not change."""
    new, old = request.obj, request.old
    if new is None or old is None:
        return
    problems = list(problems_of(new, old, request.gates))
    if problems:
        raise Denied.invalid("JobSet", "jobset.x-k8s.io", new["metadata"].get("name") or "", problems)


def problems_of(new: Tree, old: Tree, gates: FeatureGates, version: str = DEFAULT_VERSION) -> Errors:
    """Yield what is wrong with an update."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    roles, roles_before = spec.get("replicatedJobs") or [], before.get("replicatedJobs") or []
    if roles is not roles_before and roles != roles_before:
        known = {role["name"]: role for role in roles_before}
        if gates.enabled("ElasticJobSet"):
            ended = JobSetView(old).end is not None
            for index, role in enumerate(roles):
                if role["name"] in known:
                    yield from _resized(role, known[role["name"]], f"spec.replicatedJobs[{index}].template.spec", ended=ended)
        is_open = bool(spec.get("suspend") or before.get("suspend"))
        masked = [_masked(role, known.get(role["name"]), is_open=is_open, elastic=gates.enabled("ElasticJobSet")) for role in roles]
        if [_form(role, version) for role in masked] != [_form(role, version) for role in roles_before]:
            yield invalid("spec.replicatedJobs", printed_roles(masked, version), IMMUTABLE)
    if spec.get("managedBy") != before.get("managedBy"):
        yield invalid("spec.managedBy", spec.get("managedBy"), IMMUTABLE)


def _resized(role: Tree, before: Tree, field: str, *, ended: bool) -> Errors:
    """Yield what is wrong with the new size of an elastic role."""
    new, old = _job_of(role), _job_of(before)
    changed = [name for name in ("parallelism", "completions") if new.get(name) != old.get(name)]
    if new.get("completionMode") != "Indexed" or not changed:
        return
    if ended:
        yield forbidden(field, "Cannot mutate parallelism or completions when JobSet is in a terminal state (Completed or Failed)")
        return
    for name in changed:
        if new.get(name) is not None and new[name] < 1:
            yield invalid(f"{field}.{name}", new[name], f"{name} must be >= 1")
    parallelism, completions = new.get("parallelism"), new.get("completions")
    if None not in (parallelism, completions) and parallelism != completions:
        yield invalid(f"{field}.completions", completions, "completions must be equal to parallelism for Elastic Indexed Jobs")


def _masked(role: Tree, before: Tree | None, *, is_open: bool, elastic: bool) -> Tree:
    """Return a role with the parts that may differ as they were before; a new role as it is."""
    if before is None:
        return role
    given, job_before = _job_of(role), _job_of(before)
    job = given
    if elastic and job.get("completionMode") == "Indexed":
        job = _as_in(job, job_before, ("parallelism", "completions"))
    if is_open:
        pod, pod_before = job.get("template") or {}, job_before.get("template") or {}
        job = {
            **job,
            "template": {
                **pod,
                "metadata": _as_in(pod.get("metadata") or {}, pod_before.get("metadata") or {}, OPEN_METADATA),
                "spec": _as_in(pod.get("spec") or {}, pod_before.get("spec") or {}, OPEN_SPEC),
            },
        }
    return role if job is given else {**role, "template": {**role["template"], "spec": job}}


def _job_of(role: Tree) -> Tree:
    """Return the Job spec of a role; an update may leave it out."""
    spec: Tree = role["template"].get("spec") or {}
    return spec


def _as_in(tree: Tree, before: Tree, fields: tuple[str, ...]) -> Tree:
    """Return a tree with some fields as they are in another one."""
    kept = {name: value for name, value in tree.items() if name not in fields}
    return kept | {name: before[name] for name in fields if name in before}


def _form(role: Tree, version: str) -> Any:
    """Return a role in the form in which equal ones are equal: nothing unset or empty, quantities by value."""
    kept = {name: value for name, value in role.items() if value not in (None, [])}
    return {**kept, "template": go_form("batch/v1.JobTemplateSpec", version)(role["template"])}
