"""Which fields of a Job may change, and when. Mirrors ``pkg/apis/batch/validation`` and the Job strategy (1.36).

A suspended Job that is idle has an open template: scheduling directives, labels, annotations and the resources of
containers may change (gates MutableSchedulingDirectivesForSuspendedJobs and MutablePodResourcesForSuspendedJobs, on since
1.36). Otherwise the template is frozen as a whole.
"""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import invalid
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.workloads.rules import immutable, immutable_fields, same

_FROZEN_AFTER_TEMPLATE = ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
_SCHEDULING_DIRECTIVES = frozenset({"nodeSelector", "tolerations", "schedulingGates", "affinity"})


def validate_job_update(new: Tree, old: Tree) -> Errors:
    """Check the transition from one Job to another; both specs are valid by themselves or reported elsewhere."""
    spec, before = new["spec"], old["spec"]
    yield from _completions(spec, before)
    yield from immutable(spec.get("selector"), before.get("selector"), "spec.selector")
    yield from _template(spec.get("template") or {}, old)
    yield from immutable_fields(spec, before, _FROZEN_AFTER_TEMPLATE, "spec")


def _completions(spec: Tree, before: Tree) -> Errors:
    completions = spec.get("completions")
    if completions == before.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        yield from immutable(completions, before.get("completions"), "spec.completions")
    elif completions is not None and completions != spec.get("parallelism"):
        yield invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")


def _template(template: Tree, old: Tree) -> Errors:
    before: Tree = old["spec"].get("template") or {}
    if template is before or template == before:
        return
    if is_open(old):
        pod = template.get("spec") or {}
        if not same(_fixed_part(pod, before.get("spec") or {}), _fixed_part(before.get("spec") or {}, pod)):
            yield invalid("spec.template.spec", pod, "field is immutable")
    else:
        yield from immutable(template, before, "spec.template")


def is_open(job: Tree) -> bool:
    """Tell whether the pod template of a Job may be edited: it is suspended, and it never started or has come to rest since."""
    if not job["spec"].get("suspend"):
        return False
    status = job.get("status") or {}
    if status.get("startTime") is None:
        return True
    suspended = any(each.get("type") == "Suspended" and each.get("status") == "True" for each in status.get("conditions") or ())
    return suspended and not status.get("active")


def _fixed_part(pod: Tree, other: Tree) -> Tree:
    """Return what of a pod spec must not differ from `other` in an open template."""
    fixed = {key: value for key, value in pod.items() if key not in _SCHEDULING_DIRECTIVES}
    affinity = {key: value for key, value in (pod.get("affinity") or {}).items() if key != "nodeAffinity" and value is not None}
    if affinity:
        fixed["affinity"] = affinity
    for field in ("containers", "initContainers"):
        mine, theirs = pod.get(field) or [], other.get(field) or []
        if mine and len(mine) == len(theirs):
            fixed[field] = [_without_resources(one) if one.get("name") == two.get("name") else one for one, two in zip(mine, theirs, strict=True)]
    return fixed


def _without_resources(container: Tree) -> Tree:
    return {key: value for key, value in container.items() if key != "resources"}
