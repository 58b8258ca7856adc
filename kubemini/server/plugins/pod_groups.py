"""What happens to pod groups and workloads of scheduling.k8s.io on their way in. Used where gate GenericWorkload is on.

Mirrors the plugins PodGroupProtection, PodGroupWorkloadExists, JobValidation and Priority, and what the kinds' strategies drop (Kubernetes 1.36).
"""

from __future__ import annotations

from collections.abc import Callable

from kubemini.api.resources import SCHEDULING_WORKLOADS
from kubemini.api.trees import Tree
from kubemini.api.wellknown.kubernetes import POD_GROUP_PROTECTION
from kubemini.machinery.errors import Forbidden
from kubemini.machinery.owners import controller_of
from kubemini.server.admission import Admission, AdmissionRequest
from kubemini.server.plugins.priority import CLASSES, default_class

GROUP = "scheduling.k8s.io"
POD_GROUPS, WORKLOADS, JOBS = "podgroups.scheduling.k8s.io", SCHEDULING_WORKLOADS.storage, "jobs.batch"
GATED = {
    "TopologyAwareWorkloadScheduling": ("schedulingConstraints",),
    "DRAWorkloadResourceClaims": ("resourceClaims",),
    "WorkloadAwarePreemption": ("disruptionMode", "priorityClassName", "priority"),
}
DEFAULT_DISRUPTION = "Pod"


def pod_group_plugins(enabled: Callable[[str], bool]) -> list[Admission]:
    """Return the plugins in their order; `enabled` tells of gates."""
    found: list[Admission] = [DropFields(tuple(field for gate, fields in GATED.items() if not enabled(gate) for field in fields))]
    if enabled("WorkloadAwarePreemption"):
        found.append(GroupPriority())
    return [*found, Protection(), WorkloadExists(), GangsKeepTheirSize()]


class DropFields(Admission):
    """Drops fields of groups and templates whose gate is off; one that is stored already is kept."""

    name = "DropDisabledGroupFields"
    resources = (POD_GROUPS, WORKLOADS)

    def __init__(self, fields: tuple[str, ...]) -> None:
        self._fields = fields

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the object without them."""
        obj, old = request.obj or {}, (request.old or {}).get("spec") or {}
        spec: Tree = obj.get("spec") or {}
        if request.kind.storage == POD_GROUPS:
            kept = self._without(spec, old)
            if "disruptionMode" not in kept:
                # what is not stored is defaulted when it is read
                kept = {**kept, "disruptionMode": DEFAULT_DISRUPTION}
        else:
            before: list[Tree] = old.get("podGroupTemplates") or []
            templates: list[Tree] = spec.get("podGroupTemplates") or []
            # a template without constraints says so
            kept = {
                **spec,
                "podGroupTemplates": [
                    {"schedulingConstraints": None, **self._without(each, before[index] if index < len(before) else {})}
                    for index, each in enumerate(templates)
                ],
            }
        return None if kept == spec or not spec else {**obj, "spec": kept}

    def _without(self, spec: Tree, old: Tree) -> Tree:
        return {name: value for name, value in spec.items() if name not in self._fields or old.get(name)}


class GroupPriority(Admission):
    """Fills the priority of groups from their class, or from the default class."""

    name = "Priority"
    operations = ("CREATE",)
    resources = (POD_GROUPS,)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the group with its priority. Raise `Forbidden` for an unknown class."""
        obj = request.obj or {}
        spec = obj.get("spec") or {}
        name = spec.get("priorityClassName", "")
        found = request.ctx.reader.get(CLASSES, "", name) if name else default_class(request.ctx.reader)
        if found is None and name:
            raise Forbidden.of("podgroups", GROUP, request.name, f"no PriorityClass with name {name} was found")
        changes: Tree = {"priority": 0} if found is None else {"priority": found.get("value", 0), "priorityClassName": found["metadata"]["name"]}
        return {**obj, "spec": {**spec, **changes}}


class Protection(Admission):
    """Adds the finalizer that keeps a group while its pods have not ended."""

    name = "PodGroupProtection"
    operations = ("CREATE",)
    resources = (POD_GROUPS,)

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the group with its finalizer."""
        obj = request.obj or {}
        finalizers = obj["metadata"].get("finalizers") or []
        if POD_GROUP_PROTECTION in finalizers:
            return None
        return {**obj, "metadata": {**obj["metadata"], "finalizers": [*finalizers, POD_GROUP_PROTECTION]}}


class WorkloadExists(Admission):
    """Refuses a group of a Workload, or of a template, that is not there."""

    name = "PodGroupWorkloadExists"
    operations = ("CREATE",)
    resources = (POD_GROUPS,)

    def validate(self, request: AdmissionRequest) -> None:
        """Look the template up. Raise `Forbidden`."""
        wanted = (((request.obj or {}).get("spec") or {}).get("podGroupTemplateRef") or {}).get("workload")
        if wanted is None:
            return
        name, template = wanted.get("workloadName", ""), wanted.get("podGroupTemplateName", "")
        found = request.ctx.reader.get(WORKLOADS, request.namespace, name)
        if found is None:
            problem = f'Workload "{name}" not found'
        elif "deletionTimestamp" in found["metadata"]:
            problem = f'Workload "{name}" is being deleted'
        elif all(each["name"] != template for each in found["spec"].get("podGroupTemplates") or ()):
            problem = f'PodGroupTemplate "{template}" not found in Workload "{name}"'
        else:
            return
        raise Forbidden.of("podgroups", GROUP, request.name, f"PodGroup rejected: {problem}")


class GangsKeepTheirSize(Admission):
    """Refuses another parallelism of a Job whose pods are a gang: its PodGroup's minCount cannot follow."""

    name = "JobValidation"
    operations = ("UPDATE",)
    resources = (JOBS,)

    def validate(self, request: AdmissionRequest) -> None:
        """Look at the group that the Job's pods name, or else at those that it controls. Raise `Forbidden`."""
        new, old = request.obj or {}, request.old or {}
        if new["spec"].get("parallelism") == old["spec"].get("parallelism"):
            return
        reader, uid = request.ctx.reader, old["metadata"]["uid"]
        name = (old["spec"]["template"]["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if name is not None:
            named = reader.get(POD_GROUPS, request.namespace, name)
            groups = [named] if named is not None else []
        else:
            groups = [each for each in reader.list(POD_GROUPS, request.namespace) if (controller_of(each) or {}).get("uid") == uid]
        for group in groups:
            if (group["spec"].get("schedulingPolicy") or {}).get("gang") is not None:
                problem = f'cannot change parallelism for a Job referencing gang-scheduled PodGroup "{group["metadata"]["name"]}"'
                raise Forbidden.of("jobs", "batch", request.name, problem)
