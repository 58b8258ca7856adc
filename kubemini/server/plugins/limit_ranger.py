"""LimitRanger: defaults and bounds for what containers, pods and claims of a namespace ask for.

Mirrors ``plugin/pkg/admission/limitranger`` (1.36), texts included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kubemini.api.trees import Tree
from kubemini.machinery import quantity
from kubemini.machinery.errors import Forbidden
from kubemini.machinery.pod_requests import aggregate
from kubemini.server.admission import Admission, AdmissionRequest

RANGES = "limitranges"
ANNOTATION = "kubernetes.io/limit-ranger"
_CONTAINERS = (("initContainers", "init container"), ("containers", "container"))


class LimitRanger(Admission):
    """Applies the LimitRanges of a namespace."""

    name = "LimitRanger"
    operations = ("CREATE",)
    resources = ("pods", "persistentvolumeclaims")

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Return the pod with default requests and limits, and an annotation that says which."""
        if request.kind.storage != "pods":
            return None
        ranges = request.ctx.reader.list(RANGES, request.namespace)
        return _with_defaults(request.obj or {}, ranges) if ranges else None

    def validate(self, request: AdmissionRequest) -> None:
        """Hold the object against every limit. Raise `Forbidden` with all that is out of bounds."""
        ranges = request.ctx.reader.list(RANGES, request.namespace)
        if not ranges:
            return
        check = _pod if request.kind.storage == "pods" else _claim
        for each in ranges:
            problems = [text for item in (each.get("spec") or {}).get("limits") or () for text in check(request.obj or {}, item)]
            if problems:
                why = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
                raise Forbidden.of(request.kind.plural, request.kind.group, request.name, why)


# ------------------------------------------------------------------------------------------------------ defaults


def _with_defaults(pod: Tree, ranges: Sequence[Tree]) -> Tree | None:
    spec, changes, texts = pod["spec"], dict[str, list[Tree]](), list[str]()
    for each in ranges:
        limits: dict[str, str] = {}
        requests: dict[str, str] = {}
        for item in (each.get("spec") or {}).get("limits") or ():
            if item.get("type") == "Container":
                limits.update(item.get("default") or {})
                requests.update(item.get("defaultRequest") or {})
        for key, word in _CONTAINERS:
            old = changes.get(key, spec.get(key)) or []
            new = [_container(container, requests, limits, word, texts) for container in old]
            if any(one is not other for one, other in zip(old, new, strict=True)):
                changes[key] = new
    if not changes:
        return None
    annotations = {**(pod["metadata"].get("annotations") or {}), ANNOTATION: f"LimitRanger plugin set: {'; '.join(texts)}"}
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}, "spec": {**spec, **changes}}


def _container(container: Tree, requests: Mapping[str, str], limits: Mapping[str, str], word: str, texts: list[str]) -> Tree:
    resources = container.get("resources") or {}
    fresh = dict(resources)
    for key, defaults, what in (("requests", requests, "request"), ("limits", limits, "limit")):
        own = resources.get(key) or {}
        missing = {name: value for name, value in defaults.items() if name not in own}
        if missing:
            fresh[key] = {**own, **missing}
            texts.append(f"{', '.join(sorted(missing))} {what} for {word} {container.get('name', '')}")
    return {**container, "resources": fresh} if fresh != resources else container


# ------------------------------------------------------------------------------------------------------ bounds


def _pod(pod: Tree, item: Tree) -> Iterator[str]:
    spec, kind = pod["spec"], item.get("type", "")
    if kind == "Container":
        for key, _ in _CONTAINERS:
            for container in spec.get(key) or ():
                resources = container.get("resources") or {}
                yield from _bounds(item, resources.get("requests") or {}, resources.get("limits") or {})
    elif kind == "Pod":
        yield from _bounds(item, _sums(spec, "requests"), _sums(spec, "limits"))


def _sums(spec: Tree, kind: str) -> dict[str, str]:
    """Return what a pod asks for as a whole, as quantities."""
    own = (spec.get("resources") or {}).get(kind) or {}
    return {**{name: quantity.shown(size, _family(name)) for name, size in aggregate(spec, kind).items()}, **own}


def _family(name: str) -> quantity.Family:
    return "BinarySI" if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-") else "DecimalSI"


def _claim(claim: Tree, item: Tree) -> Iterator[str]:
    if item.get("type") != "PersistentVolumeClaim":
        return
    asked = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    for word, key in (("minimum", "min"), ("maximum", "max")):
        bound = (item.get(key) or {}).get("storage")
        if bound is None:
            continue
        head = f"{word} storage usage per PersistentVolumeClaim is {bound}"
        if asked is None:
            yield f"{head}.  No request is specified"
        elif (quantity.nano(asked) < quantity.nano(bound)) if key == "min" else (quantity.nano(asked) > quantity.nano(bound)):
            yield f"{head}, but request is {asked}"


def _bounds(item: Tree, requests: Mapping[str, str], limits: Mapping[str, str]) -> Iterator[str]:
    kind = item.get("type", "")
    for name, least in (item.get("min") or {}).items():
        head = f"minimum {name} usage per {kind} is {least}"
        if name not in requests:
            yield f"{head}.  No request is specified"
        elif quantity.nano(requests[name]) < quantity.nano(least):
            yield f"{head}, but request is {requests[name]}"
        elif name in limits and quantity.nano(limits[name]) < quantity.nano(least):
            yield f"{head}, but limit is {limits[name]}"
    for name, most in (item.get("max") or {}).items():
        head = f"maximum {name} usage per {kind} is {most}"
        if name not in limits:
            yield f"{head}.  No limit is specified"
        elif quantity.nano(limits[name]) > quantity.nano(most):
            yield f"{head}, but limit is {limits[name]}"
        elif name in requests and quantity.nano(requests[name]) > quantity.nano(most):
            yield f"{head}, but request is {requests[name]}"
    for name, ratio in (item.get("maxLimitRequestRatio") or {}).items():
        head = f"{name} max limit to request ratio per {kind} is {ratio}, but"
        if not quantity.nano(requests.get(name, "0")):
            yield f"{head} no request is specified or request is 0"
        elif not quantity.nano(limits.get(name, "0")):
            yield f"{head} no limit is specified or limit is 0"
        else:
            actual = quantity.nano(limits[name]) / quantity.nano(requests[name])
            if actual > quantity.nano(ratio) / quantity.NANO:
                yield f"{head} provided ratio is {actual:f}"
