"""Rules of security contexts, of pods and of containers, and of the operating system that a pod is for."""

from __future__ import annotations

import re
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import duplicate, forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import Errors, descending_path, user_or_group
from kubemini.server.kinds.core.internal_pod import SECURITY_CONTEXT

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_sysctl = re.compile(r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?").fullmatch
_NET = ("net.",)
_IPC = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_NOT_ON_WINDOWS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "fsGroup", "fsGroupChangePolicy", "sysctls", "runAsUser", "runAsGroup",
    "supplementalGroups", "supplementalGroupsPolicy", "seLinuxChangePolicy",
)  # fmt: skip
_NOT_IN_WINDOWS_CONTAINERS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip


def container_security(tree: Tree, path: str, host_users: bool) -> Errors:
    """Check the security context of a container."""
    yield from user_or_group(tree.get("runAsUser"), f"{path}.runAsUser")
    yield from user_or_group(tree.get("runAsGroup"), f"{path}.runAsGroup")
    mount = tree.get("procMount")
    if mount is not None:
        if mount not in ("Default", "Unmasked"):
            yield not_supported(f"{path}.procMount", mount, ("Default", "Unmasked"))
        if host_users and mount == "Unmasked":
            yield invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    yield from _seccomp(tree.get("seccompProfile"), f"{path}.seccompProfile")
    if tree.get("allowPrivilegeEscalation") is False:
        if tree.get("privileged"):
            yield invalid(path, SECURITY_CONTEXT.shown(tree), "cannot set `allowPrivilegeEscalation` to false and `privileged` to true")
        if "CAP_SYS_ADMIN" in ((tree.get("capabilities") or {}).get("add") or ()):
            yield invalid(path, SECURITY_CONTEXT.shown(tree), "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN")
    yield from _app_armor(tree.get("appArmorProfile"), f"{path}.appArmorProfile")


def pod_security(spec: Tree, path: str) -> Errors:
    """Check the security context of a pod."""
    tree: Tree = spec.get("securityContext") or {}
    if not tree:
        return
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from user_or_group(tree.get(key), f"{path}.{key}")
    for index, group in enumerate(tree.get("supplementalGroups") or ()):
        yield from user_or_group(group, f"{path}.supplementalGroups[{index}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        yield invalid(f"{path}.shareProcessNamespace", True, "ShareProcessNamespace and HostPID cannot both be enabled")
    yield from _sysctls(tree.get("sysctls") or (), spec, f"{path}.sysctls")
    if tree.get("fsGroupChangePolicy") not in (None, "Always", "OnRootMismatch"):
        yield not_supported(f"{path}.fsGroupChangePolicy", tree["fsGroupChangePolicy"], ("Always", "OnRootMismatch"))
    yield from _seccomp(tree.get("seccompProfile"), f"{path}.seccompProfile")
    yield from _app_armor(tree.get("appArmorProfile"), f"{path}.appArmorProfile")
    if tree.get("supplementalGroupsPolicy") not in (None, "Merge", "Strict"):
        yield not_supported(f"{path}.supplementalGroupsPolicy", tree["supplementalGroupsPolicy"], ("Merge", "Strict"))
    if tree.get("seLinuxChangePolicy") not in (None, "MountOption", "Recursive"):
        yield not_supported(f"{path}.seLinuxChangePolicy", tree["seLinuxChangePolicy"], ("MountOption", "Recursive"))


def _sysctls(entries: Any, spec: Tree, path: str) -> Errors:
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        here, name = f"{path}[{index}].name", entry.get("name", "")
        if not name:
            yield required(here)
        elif len(name) > 253 or not _sysctl(name):
            text = r"must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
            yield invalid(here, name, text)
        elif name in seen:
            yield duplicate(here, name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith(_NET):
            yield invalid(here, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and dotted.startswith(_IPC):
            yield invalid(here, name, "may not be specified when 'hostIPC' is true")
        seen.add(name)


def _seccomp(tree: Tree | None, path: str) -> Errors:
    if tree is None:
        return
    kind, profile = tree.get("type", ""), tree.get("localhostProfile")
    if not kind:
        yield required(f"{path}.type", "type is required when seccompProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(f"{path}.type", kind, _PROFILES)
    if kind != "Localhost":
        if profile is not None:
            yield invalid(f"{path}.localhostProfile", tree, "can only be set when seccomp type is Localhost")
    elif profile is None:
        yield required(f"{path}.localhostProfile", "must be set when seccomp type is Localhost")
    else:
        yield from descending_path(profile, f"{path}.localhostProfile")


def _app_armor(tree: Tree | None, path: str) -> Errors:
    if tree is None:
        return
    kind, profile = tree.get("type", ""), tree.get("localhostProfile")
    if kind == "Localhost":
        if not profile:
            yield required(f"{path}.localhostProfile", "must be set when AppArmor type is Localhost")
        elif profile != profile.strip():
            yield invalid(f"{path}.localhostProfile", profile, "must not be padded with whitespace")
    elif not kind:
        yield required(f"{path}.type", "type is required when appArmorProfile is set")
    elif kind not in _PROFILES:
        yield not_supported(f"{path}.type", kind, _PROFILES)
    elif profile is not None:
        yield invalid(f"{path}.localhostProfile", profile, "can only be set when AppArmor type is Localhost")


def host_users(spec: Tree, path: str) -> Errors:
    """Refuse host namespaces together with user namespaces."""
    if spec.get("hostUsers") is False:
        for key, shown in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
            if spec.get(key):
                yield forbidden(f"{path}.{shown}", "when `pod.Spec.HostUsers` is false")


def operating_system(spec: Tree, path: str) -> Errors:
    """Check the operating system and what may not be set for it."""
    tree = spec.get("os")
    if tree is None:
        return
    system = tree.get("name", "")
    if not system:
        yield required(f"{path}.os.name", "cannot be empty")
    elif system not in ("linux", "windows"):
        yield not_supported(f"{path}.os", system, ("linux", "windows"))
    elif system == "linux":
        for context, here in _contexts(spec, path):
            if context.get("windowsOptions") is not None:
                yield forbidden(f"{here}.windowsOptions", "windows options cannot be set for a linux pod")
    else:
        for key in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
            if spec.get(key) is not None and (spec[key] or key in ("hostUsers", "shareProcessNamespace")):
                yield forbidden(f"{path}.{key}", "cannot be set for a windows pod")
        for index, (context, here) in enumerate(_contexts(spec, path)):
            for key in _NOT_IN_WINDOWS_CONTAINERS if index else _NOT_ON_WINDOWS:
                if context.get(key) is not None:
                    yield forbidden(f"{here}.{key}", "cannot be set for a windows pod")


def _contexts(spec: Tree, path: str) -> list[tuple[Tree, str]]:
    """Return the security contexts of pod and containers with their paths, the pod's first."""
    found: list[tuple[Tree, str]] = [(spec.get("securityContext") or {}, f"{path}.securityContext")]
    for key in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(key) or ()):
            found.append((container.get("securityContext") or {}, f"{path}.{key}[{index}].securityContext"))
    return found
