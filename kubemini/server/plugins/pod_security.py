"""PodSecurity: the Pod Security Standards that a namespace asks for by its labels.

Refuses pods (``enforce``) and warns about pods and pod templates (``warn``, which is as strict as ``enforce`` unless it says
otherwise); warns about the pods that a stricter label finds. Verdicts are kept by the identity of a pod's subtrees, so that the pods
of one template are looked at once. Mirrors ``pod-security-admission/admission`` (1.36), texts included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, Forbidden, Invalid, invalid
from kubemini.machinery.memo import by_identity
from kubemini.machinery.owners import controller_of
from kubemini.machinery.pod_security import APP_ARMOR, FLAGS, PARTS, PRIVILEGED, RESTRICTED, STRICTNESS, Violation, violations
from kubemini.server.admission import Admission, AdmissionRequest

PREFIX = "pod-security.kubernetes.io/"
MOST_PODS = 3000
"""How many pods of a namespace are looked at when its level is raised."""
_TEMPLATES = (
    "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch",
    "replicationcontrollers", "podtemplates",
)  # fmt: skip
_LIMIT = 2048
_VERSION = re.compile(r"v1\.(?:\d|[1-9]\d+)", re.ASCII).fullmatch


class Level(NamedTuple):
    """A level in some version of the standards."""

    name: str = PRIVILEGED
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.name}:{self.version}"


class Policy(NamedTuple):
    """What a namespace asks for."""

    enforce: Level = Level()
    warn: Level = Level()


def policy(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    """Return what labels ask for, and what is wrong with them: a level that is none enforces everything, and warns of nothing."""
    found: dict[str, Level] = {}
    problems: list[FieldError] = []
    for mode in ("enforce", "audit", "warn"):
        name, version = labels.get(f"{PREFIX}{mode}", PRIVILEGED), labels.get(f"{PREFIX}{mode}-version", "latest")
        if name not in STRICTNESS:
            problems.append(invalid(f"metadata.labels[{PREFIX}{mode}]", name, f"must be one of {', '.join(STRICTNESS)}"))
            name = RESTRICTED if mode == "enforce" else PRIVILEGED
        if version != "latest" and not _VERSION(version):
            problems.append(invalid(f"metadata.labels[{PREFIX}{mode}-version]", version, 'must be "latest" or "v1.x"'))
            version = "latest"
        found[mode] = Level(name, version)
    enforce, warn = found["enforce"], found["warn"]
    if f"{PREFIX}warn" not in labels and labels.get(f"{PREFIX}enforce") == enforce.name:
        warn = Level(enforce.name, warn.version if f"{PREFIX}warn-version" in labels else enforce.version)
    return Policy(enforce, warn), problems


class PodSecurity(Admission):
    """Holds pods against the level of their namespace."""

    name = "PodSecurity"
    resources = ("pods", "namespaces", *_TEMPLATES)
    subresources = ("", "ephemeralcontainers", "resize")

    def __init__(self) -> None:
        self._verdicts: dict[tuple[Any, ...], tuple[Tree, list[Violation]]] = {}

    def validate(self, request: AdmissionRequest) -> None:
        """Refuse or warn. Raise `Forbidden`, and `Invalid` for labels of a namespace that say nothing."""
        if request.obj is None:
            return
        if request.kind.storage == "namespaces":
            self._namespace(request, request.obj)
            return
        namespace = request.ctx.reader.get("namespaces", "", request.namespace)
        labels = _labels(namespace)
        if labels and _is_held(labels):
            self._pod(request, policy(labels)[0], _pod_part(request.kind.storage, request.obj))

    def _pod(self, request: AdmissionRequest, wanted: Policy, pod: Tree) -> None:
        is_pod = request.kind.storage == "pods"
        if "spec" not in pod or (is_pod and request.old is not None and not _is_significant(pod["spec"], request.old["spec"])):
            return
        if is_pod:
            found = self._violations(pod, wanted.enforce)
            if found:
                text = f'violates PodSecurity "{wanted.enforce}": {_listed(found)}'
                raise Forbidden.of("pods", "", request.name, text)
        found = self._violations(pod, wanted.warn)
        if found:
            request.warnings.append(f'would violate PodSecurity "{wanted.warn}": {_listed(found)}')

    def _namespace(self, request: AdmissionRequest, namespace: Tree) -> None:
        labels, before = _labels(namespace), _labels(request.old)
        if request.subresource or (not any(key.startswith(PREFIX) for key in labels) and not before):
            return
        (wanted, problems), (former, former_problems) = policy(labels), policy(before)
        if problems and problems != former_problems:
            raise Invalid.of("Namespace", "", request.name, problems)
        raised = wanted.enforce.version != former.enforce.version or STRICTNESS[wanted.enforce.name] > STRICTNESS[former.enforce.name]
        if request.old is not None and raised and wanted.enforce.name != PRIVILEGED:
            request.warnings += self._existing(request.ctx.reader.list("pods", request.name), request.name, wanted.enforce)

    def _existing(self, pods: Iterable[Tree], namespace: str, level: Level) -> list[str]:
        """Return warnings about the pods of a namespace: one for each kind of violation, with the first pod and how many more there are."""
        ordered = _by_controller(pods)
        names: dict[str, list[str]] = {}
        for pod in ordered[:MOST_PODS]:
            found = self._violations(pod, level)
            if found:
                names.setdefault(", ".join(each.reason for each in found), []).append(pod["metadata"]["name"])
        texts: list[str] = []
        if len(ordered) > MOST_PODS:
            texts.append(f"new PodSecurity enforce level only checked against the first {MOST_PODS} of {len(ordered)} existing pods")
        if names:
            texts.append(f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "{level}"')
        return texts + sorted(f"{_and_others(each)}: {reasons}" for reasons, each in names.items())

    def _violations(self, pod: Tree, level: Level) -> list[Violation]:
        if level.name == PRIVILEGED:
            return []
        spec, annotations = pod["spec"], (pod.get("metadata") or {}).get("annotations") or {}
        profiles = tuple((key, value) for key, value in annotations.items() if key.startswith(APP_ARMOR))
        key = (level.name, profiles, *(id(spec.get(each)) for each in PARTS), *(spec.get(each) for each in FLAGS))
        found = self._verdicts.get(key)
        if found is None:
            if len(self._verdicts) > _LIMIT:
                self._verdicts.clear()
            # The spec keeps the subtrees alive, so that their ids are not reused.
            found = self._verdicts[key] = (spec, violations(spec, annotations, level.name))
        return found[1]


@by_identity()
def _is_held(labels: Mapping[str, str]) -> bool:
    """Tell whether the labels of a namespace ask for anything."""
    return any(key.startswith(PREFIX) for key in labels)


def _labels(obj: Tree | None) -> Mapping[str, str]:
    return ((obj or {}).get("metadata") or {}).get("labels") or {}


def _listed(found: list[Violation]) -> str:
    return ", ".join(map(str, found))


def _and_others(names: list[str]) -> str:
    first, more = min(names), len(names) - 1
    return f"{first} (and {more} other pod{'s' if more > 1 else ''})" if more else first


def _by_controller(pods: Iterable[Tree]) -> list[Tree]:
    """Return pods with one of each controller first: what is left out when there are too many is more of the same."""
    first: list[Tree] = []
    more: list[Tree] = []
    seen: set[str] = set()
    for pod in pods:
        owner = (controller_of(pod) or {}).get("uid")
        (more if owner in seen else first).append(pod)
        if owner is not None:
            seen.add(owner)
    return first + more


def _pod_part(storage: str, obj: Tree) -> Tree:
    """Return the pod, or the template of pods, that an object is or holds."""
    spec = obj.get("spec") or {}
    match storage:
        case "pods":
            return obj
        case "podtemplates":
            return obj.get("template") or {}
        case "cronjobs.batch":
            return ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template") or {}
        case _:
            return spec.get("template") or {}


def _is_significant(new: Tree, old: Tree) -> bool:
    """Tell whether an update of a pod matters: containers or their images changed."""
    for key in ("containers", "initContainers", "ephemeralContainers"):
        now, before = new.get(key) or [], old.get(key) or []
        if now is not before and [(each.get("name"), each.get("image")) for each in now] != [
            (each.get("name"), each.get("image")) for each in before
        ]:
            return True
    return False
