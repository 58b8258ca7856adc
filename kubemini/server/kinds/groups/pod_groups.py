"""Pod groups and workloads of scheduling.k8s.io/v1alpha2: the declarative rules of their types (Kubernetes 1.36).

Fields whose gate is off never come so far (`kubemini.server.plugins.pod_groups`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, duplicate, invalid, required, too_many
from kubemini.server.kinds.core.formats import IMMUTABLE, Errors, one_of, wrong
from kubemini.server.kinds.groups.scheduling import HIGHEST_USER_PRIORITY

MAX_TEMPLATES, MAX_CLAIMS, MAX_TOPOLOGIES = 8, 4, 1
TEMPLATE_FIELDS = ("name", "schedulingPolicy", "schedulingConstraints", "resourceClaims", "disruptionMode", "priorityClassName", "priority")
GROUP_FIELDS = ("podGroupTemplateRef", *TEMPLATE_FIELDS[1:])


def pod_group(obj: Tree) -> Errors:
    """Check a PodGroup."""
    spec = obj.get("spec") or {}
    reference = spec.get("podGroupTemplateRef")
    if reference is not None:
        here = "spec.podGroupTemplateRef"
        yield from _union(reference, ("workload",), here)
        if (workload := reference.get("workload")) is not None:
            yield from _named(workload, "workloadName", names.dns1123_subdomain, f"{here}.workload")
            yield from _named(workload, "podGroupTemplateName", names.dns1123_label, f"{here}.workload")
    yield from _group(spec, "spec")


def pod_group_change(new: Tree, old: Tree) -> Errors:
    """A PodGroup's spec stays as it is."""
    yield from _unchanged(new, old, GROUP_FIELDS)


def workload(obj: Tree) -> Errors:
    """Check a Workload."""
    spec = obj.get("spec") or {}
    controller = spec.get("controllerRef")
    if controller is not None:
        here = "spec.controllerRef"
        if controller.get("apiGroup"):
            yield from wrong(names.dns1123_subdomain, controller["apiGroup"], f"{here}.apiGroup")
        for key in ("kind", "name"):
            yield from _named(controller, key, names.path_segment, here)
    templates, here = spec.get("podGroupTemplates") or [], "spec.podGroupTemplates"
    if not templates:
        yield required(here)
    if len(templates) > MAX_TEMPLATES:
        yield too_many(here, len(templates), MAX_TEMPLATES)
        return
    yield from _unique(templates, here, TEMPLATE_FIELDS)
    for index, template in enumerate(templates):
        yield from _named(template, "name", names.dns1123_label, f"{here}[{index}]")
        yield from _group(template, f"{here}[{index}]")


def workload_change(new: Tree, old: Tree) -> Errors:
    """Controller and templates of a Workload stay."""
    yield from _unchanged(new, old, ("controllerRef", "podGroupTemplates"))


def _group(spec: Tree, path: str) -> Errors:
    """Check what pod groups and their templates have in common."""
    policy, here = spec.get("schedulingPolicy") or {}, f"{path}.schedulingPolicy"
    yield from _union(policy, ("basic", "gang"), here)
    gang = policy.get("gang")
    if gang is not None:
        count = gang.get("minCount", 0)
        if not count:
            yield required(f"{here}.gang.minCount")
        elif count < 1:
            yield invalid(f"{here}.gang.minCount", count, "must be greater than or equal to 1")
    topology, here = (spec.get("schedulingConstraints") or {}).get("topology") or [], f"{path}.schedulingConstraints.topology"
    if len(topology) > MAX_TOPOLOGIES:
        yield too_many(here, len(topology), MAX_TOPOLOGIES)
    else:
        for index, constraint in enumerate(topology):
            yield from _named(constraint, "key", names.qualified_name, f"{here}[{index}]")
    yield from _claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    yield from one_of(spec.get("disruptionMode"), ("Pod", "PodGroup"), f"{path}.disruptionMode", needed=False)
    if spec.get("priorityClassName"):
        yield from wrong(names.dns1123_subdomain, spec["priorityClassName"], f"{path}.priorityClassName")
    if spec.get("priority", 0) > HIGHEST_USER_PRIORITY:
        yield invalid(f"{path}.priority", spec["priority"], f"must be less than or equal to {HIGHEST_USER_PRIORITY}")


def _claims(claims: list[Tree], path: str) -> Errors:
    if len(claims) > MAX_CLAIMS:
        yield too_many(path, len(claims), MAX_CLAIMS)
        return
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    yield from _unique(claims, path, ("name", *sources))
    for index, claim in enumerate(claims):
        here = f"{path}[{index}]"
        yield from _union(claim, sources, here)
        yield from _named(claim, "name", names.dns1123_label, here)
        for source in sources:
            if claim.get(source) is not None:
                yield from wrong(names.dns1123_subdomain, claim[source], f"{here}.{source}")


# ----------------------------------------------------------------------------------------------- declarative rules


def _union(tree: Tree, members: tuple[str, ...], path: str) -> Errors:
    """Check that exactly one member is set."""
    found = [each for each in members if tree.get(each) is not None]
    listed = ", ".join(f"`{each}`" for each in members)
    if not found:
        yield invalid(path, "", f"must specify one of: {listed}")
    elif len(found) > 1:
        yield invalid(path, f"{{{', '.join(found)}}}", f"must specify exactly one of: {listed}")


def _named(tree: Tree, key: str, rule: Callable[[str], str | None], path: str) -> Errors:
    """Check a text that is needed."""
    if tree.get(key):
        yield from wrong(rule, tree[key], f"{path}.{key}")
    else:
        yield required(f"{path}.{key}")


def _unique(entries: list[Tree], path: str, fields: tuple[str, ...]) -> Errors:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        name = entry.get("name", "")
        if name in seen:
            yield duplicate(f"{path}[{index}]", {key: entry[key] for key in fields if key in entry})
        seen.add(name)


def _unchanged(new: Tree, old: Tree, fields: tuple[str, ...]) -> Iterator[FieldError]:
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    for key in fields:
        if (spec.get(key) or None) != (before.get(key) or None):
            yield invalid(f"spec.{key}", None, IMMUTABLE)
