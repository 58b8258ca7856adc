"""Which fields of a Job may change, and when. Mirrors ``pkg/apis/batch/validation`` and the Job strategy (1.36).

A suspended Job that is idle has an open template: scheduling directives, labels, annotations and the resources of
containers may change (gates MutableSchedulingDirectivesForSuspendedJobs and MutablePodResourcesForSuspendedJobs, on since
1.36). Otherwise the template is frozen as a whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import invalid
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors
from kubemini.server.kinds.core.internal_pod import POD_SPEC, POD_TEMPLATE
from kubemini.server.kinds.internal_types import Struct
from kubemini.server.kinds.workloads.pod_failure_policy import POD_FAILURE_POLICY
from kubemini.server.kinds.workloads.rules import immutable, same
from kubemini.server.kinds.workloads.success_policy import SUCCESS_POLICY

_FROZEN_AFTER_TEMPLATE: Final[dict[str, Struct | None]] = {
    "completionMode": None,
    "podFailurePolicy": POD_FAILURE_POLICY,
    "backoffLimitPerIndex": None,
    "managedBy": None,
    "successPolicy": SUCCESS_POLICY,
}
_OPEN_METADATA = frozenset({"labels", "annotations"})
_SCHEDULING_DIRECTIVES = frozenset({"nodeSelector", "tolerations", "schedulingGates", "affinity"})


@dataclass(frozen=True, slots=True)
class Openness:
    """Which parts of a pod template may change: scheduling directives with labels and annotations, and resources of containers."""

    directives: bool = True
    resources: bool = True

    def of(self, job: Tree) -> Openness:
        """Return what is open in a Job where these gates are on: only a suspended one opens, which never started or has come to rest since.

        Without its gate the first part is open until a Job starts, and never again.
        """
        if not job["spec"].get("suspend"):
            return Openness(directives=False, resources=False)
        status = job.get("status") or {}
        started = status.get("startTime") is not None
        rests = not status.get("active") and (not started or _says_suspended(status))
        return Openness(directives=rests if self.directives else not started, resources=self.resources and rests)


ALL_OPEN = Openness()


def validate_job_update(new: Tree, old: Tree, gates: Openness = ALL_OPEN) -> Errors:
    """Check the transition from one Job to another; both specs are valid by themselves or reported elsewhere."""
    spec, before = new["spec"], old["spec"]
    yield from _completions(spec, before)
    yield from immutable(spec.get("selector"), before.get("selector"), "spec.selector")
    yield from _template(spec.get("template") or {}, old, gates)
    for field, struct in _FROZEN_AFTER_TEMPLATE.items():
        yield from immutable(spec.get(field), before.get(field), f"spec.{field}", struct)


def _completions(spec: Tree, before: Tree) -> Errors:
    completions = spec.get("completions")
    if completions == before.get("completions"):
        return
    if spec.get("completionMode") != "Indexed":
        yield from immutable(completions, before.get("completions"), "spec.completions")
    elif completions is not None and completions != spec.get("parallelism"):
        yield invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")


def _template(template: Tree, old: Tree, gates: Openness) -> Errors:
    before: Tree = old["spec"].get("template") or {}
    if template is before or template == before:
        return
    is_open = gates.of(old)
    pod, pod_before = template.get("spec") or {}, before.get("spec") or {}
    if is_open.resources:
        # Nothing else of the template is compared then, not even its finalizers
        if not same(_fixed_part(pod, pod_before, is_open), _fixed_part(pod_before, pod, is_open)):
            yield invalid("spec.template.spec", POD_SPEC.shown(pod), IMMUTABLE)
    elif not same(_fixed_template(template, is_open), _fixed_template(before, is_open)):
        yield invalid("spec.template", POD_TEMPLATE.shown(template), IMMUTABLE)


def _says_suspended(status: Tree) -> bool:
    return any(each.get("type") == "Suspended" and each.get("status") == "True" for each in status.get("conditions") or ())


def _fixed_template(template: Tree, is_open: Openness) -> Tree:
    """Return what of a template must not change; resources are none of the exceptions here."""
    if not is_open.directives:
        return template
    meta = {key: value for key, value in (template.get("metadata") or {}).items() if key not in _OPEN_METADATA}
    return {"metadata": meta, "spec": _without_directives(template.get("spec") or {})}


def _fixed_part(pod: Tree, other: Tree, is_open: Openness) -> Tree:
    """Return what of a pod spec must not differ from `other` where resources may."""
    fixed = _without_directives(pod) if is_open.directives else dict(pod)
    for field in ("containers", "initContainers"):
        mine, theirs = pod.get(field) or [], other.get(field) or []
        if mine and len(mine) == len(theirs):
            fixed[field] = [_without_resources(one) if one.get("name") == two.get("name") else one for one, two in zip(mine, theirs, strict=True)]
    return fixed


def _without_directives(pod: Tree) -> Tree:
    fixed = {key: value for key, value in pod.items() if key not in _SCHEDULING_DIRECTIVES}
    affinity = {key: value for key, value in (pod.get("affinity") or {}).items() if key != "nodeAffinity" and value is not None}
    return {**fixed, "affinity": affinity} if affinity else fixed


def _without_resources(container: Tree) -> Tree:
    return {key: value for key, value in container.items() if key != "resources"}
