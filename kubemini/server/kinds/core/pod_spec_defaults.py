"""Defaults of a pod that depend on other fields of it. Plain defaults are filled by the codec before.

Work on containers and volumes is done once per list: all pods of a template get the very same defaulted list.
Mirrors ``SetDefaults_Pod``, ``SetDefaults_PodSpec`` and the conversions of ``pkg/apis/core/v1`` (1.36).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import quantity
from kubemini.machinery.memo import by_identity
from kubemini.machinery.pod_requests import aggregate
from kubemini.server.kinds.core.pod_resources import is_huge

_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def default_pod_template(template: Tree) -> Tree:
    """Return a PodTemplateSpec with its defaults; the same tree where nothing is to be filled."""
    spec = template.get("spec")
    if not spec:
        return template
    new = default_pod_spec(spec)
    return template if new is spec else {**template, "spec": new}


@by_identity()
def default_pod_spec(spec: Tree) -> Tree:
    """Return the pod spec of a template with its defaults; the same tree where nothing is to be filled, and the same answer for the same tree."""
    changes: Tree = {}
    for key in _CONTAINERS:
        _replace(spec, key, _pull_policies, changes)
    _replace(spec, "volumes", _volume_sources, changes)
    _mirror_account(spec, changes)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        changes["terminationGracePeriodSeconds"] = 1
    return {**spec, **changes} if changes else spec


def default_pod(spec: Tree) -> Tree:
    """Return the spec of a pod proper with all its defaults: besides the common ones, requests from limits and host ports."""
    changes: Tree = {}
    step = _on_host if spec.get("hostNetwork") else _in_pod
    _replace(spec, "containers", step, changes)
    if "initContainers" in spec:
        _replace(spec, "initContainers", step, changes)
    if "ephemeralContainers" in spec:
        _replace(spec, "ephemeralContainers", _pull_policies, changes)
    if "volumes" in spec:
        _replace(spec, "volumes", _volume_sources, changes)
    _mirror_account(spec, changes)
    grace = spec.get("terminationGracePeriodSeconds")
    if grace is not None and grace < 0:
        changes["terminationGracePeriodSeconds"] = 1
    resources = spec.get("resources")
    if resources:
        whole = _pod_requests({**spec, **changes}, resources)
        if whole is not resources:
            changes["resources"] = whole
    return {**spec, **changes} if changes else spec


def pull_policy(image: str) -> str:
    """Return the pull policy of an image that names none: Always for ``:latest`` or no tag, otherwise IfNotPresent.

    >>> pull_policy("a"), pull_policy("a:1"), pull_policy("host:5000/a"), pull_policy("a@sha256:0")
    ('Always', 'IfNotPresent', 'Always', 'IfNotPresent')
    """
    if "@" in image:
        return "IfNotPresent"
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return "IfNotPresent" if colon and tag != "latest" else "Always"


def _mirror_account(spec: Tree, changes: Tree) -> None:
    """Keep the deprecated ``serviceAccount`` equal to ``serviceAccountName``."""
    name = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if name and (spec.get("serviceAccountName") != name or spec.get("serviceAccount") != name):
        changes["serviceAccountName"] = changes["serviceAccount"] = name


def _replace(spec: Tree, key: str, step: Callable[[list[Tree]], list[Tree]], changes: Tree) -> None:
    old = spec.get(key)
    if old:
        new = step(old)
        if new is not old:
            changes[key] = new


def _mapped(entries: list[Tree], new: list[Tree]) -> list[Tree]:
    """Return the old list where no element changed, so that later work on it is shared."""
    return entries if all(one is other for one, other in zip(entries, new, strict=True)) else new


@by_identity()
def _pull_policies(entries: list[Tree]) -> list[Tree]:
    return _mapped(
        entries,
        [each if each.get("imagePullPolicy") else {**each, "imagePullPolicy": pull_policy(each.get("image", ""))} for each in entries],
    )


@by_identity()
def _volume_sources(entries: list[Tree]) -> list[Tree]:
    return _mapped(entries, [_volume(each) for each in entries])


def _volume(volume: Tree) -> Tree:
    if not any(key != "name" for key in volume):
        return {**volume, "emptyDir": {}}
    image = volume.get("image")
    if image is not None and not image.get("pullPolicy"):
        return {**volume, "image": {**image, "pullPolicy": pull_policy(image.get("reference", ""))}}
    return volume


@by_identity()
def _in_pod(entries: list[Tree]) -> list[Tree]:
    entries = _pull_policies(entries)
    return _mapped(entries, [_container_requests(each) for each in entries])


def _container_requests(container: Tree) -> Tree:
    resources: Tree = container.get("resources") or {}
    limits: Tree = resources.get("limits") or {}
    requests: Tree = resources.get("requests") or {}
    missing = {name: value for name, value in limits.items() if name not in requests}
    return {**container, "resources": {**resources, "requests": {**requests, **missing}}} if missing else container


@by_identity()
def _on_host(entries: list[Tree]) -> list[Tree]:
    entries = _in_pod(entries)
    return _mapped(entries, [_container_host_ports(each) for each in entries])


def _container_host_ports(container: Tree) -> Tree:
    ports: list[Any] = container.get("ports") or []
    new = [{**port, "hostPort": port["containerPort"]} if port.get("containerPort") and not port.get("hostPort") else port for port in ports]
    return container if all(one is other for one, other in zip(ports, new, strict=True)) else {**container, "ports": new}


def _pod_requests(spec: Tree, resources: Tree) -> Tree:
    """Fill the requests of the pod as a whole: what its containers ask for together, else its own limit."""
    requests: Tree = resources.get("requests") or {}
    limits: Tree = resources.get("limits") or {}
    missing: Tree = {}
    for name, size in aggregate(spec, "requests").items():
        if name not in requests and (name in ("cpu", "memory") or is_huge(name)):
            missing[name] = quantity.shown(size, "DecimalSI" if name == "cpu" else "BinarySI")
    for name, value in limits.items():
        if name not in requests and name not in missing:
            missing[name] = value
    return {**resources, "requests": {**requests, **missing}} if missing else resources
