"""The Pod Security Standards: what a level forbids of a pod.

Each check says in a word what is wrong and where (``reason (detail)``). Levels are those of the latest version, whatever version a
namespace asks for. Mirrors ``pod-security-admission/policy`` (1.36), texts and order included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kubemini.api.trees import Tree

BASELINE, RESTRICTED, PRIVILEGED = "baseline", "restricted", "privileged"
STRICTNESS: Final = {PRIVILEGED: 0, BASELINE: 1, RESTRICTED: 2}
PARTS: Final = ("containers", "initContainers", "ephemeralContainers", "volumes", "securityContext", "os")
FLAGS: Final = ("hostNetwork", "hostPID", "hostIPC", "hostUsers")
"""The fields of a pod spec that the checks look at: trees and plain values."""
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/"

_CAPABILITIES = frozenset((
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP", "SETGID", "SETPCAP", "SETUID",
    "SYS_CHROOT",
))  # fmt: skip
_SYSCTLS = frozenset((
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
))  # fmt: skip
_VOLUMES = frozenset(("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret"))
_SELINUX = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_CONFINED = ("Localhost", "RuntimeDefault")
_KEYS = ("initContainers", "containers", "ephemeralContainers")


class Violation(NamedTuple):
    """One thing that a level forbids."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class Pod(NamedTuple):
    """What the checks look at."""

    spec: Tree
    annotations: Mapping[str, str]
    containers: list[Tree]

    @property
    def context(self) -> Tree:
        """The security context of the pod as a whole."""
        return self.spec.get("securityContext") or {}

    @property
    def windows(self) -> bool:
        """Whether the pod says that it is for Windows, where some fields make no sense."""
        return (self.spec.get("os") or {}).get("name") == "windows"

    @property
    def own_users(self) -> bool:
        """Whether root inside of the pod is somebody else outside."""
        return self.spec.get("hostUsers") is False


Check = Callable[[Pod], Violation | None]


def violations(spec: Tree, annotations: Mapping[str, str], level: str) -> list[Violation]:
    """Return what a level forbids of a pod."""
    if level == PRIVILEGED:
        return []
    pod = Pod(spec, annotations, [each for key in _KEYS for each in spec.get(key) or ()])
    checks = _BASELINE_CHECKS if level == BASELINE else _RESTRICTED_CHECKS
    return [found for check in checks if (found := check(pod)) is not None]


# ------------------------------------------------------------------------------------------------------ words


def _context(container: Tree) -> Tree:
    return container.get("securityContext") or {}


def _quoted(values: Iterable[str]) -> str:
    return ", ".join(f'"{each}"' for each in values)


def _plural(word: str, values: Iterable[Any]) -> str:
    return word if len(list(values)) == 1 else f"{word}s"


def _named(containers: list[Tree]) -> str:
    """Return ``container "a"`` or ``containers "a", "b"``."""
    return f"{_plural('container', containers)} {_quoted(each.get('name', '') for each in containers)}"


def _setters(pod: bool, containers: list[Tree]) -> str:
    """Return who set something: the pod, containers, or both; "" for nobody."""
    return " and ".join([*(["pod"] if pod else []), *([_named(containers)] if containers else [])])


# ------------------------------------------------------------------------------------------------------ baseline


def _app_armor(pod: Pod) -> Violation | None:
    def kind(context: Tree) -> str | None:
        found: str | None = (context.get("appArmorProfile") or {}).get("type")
        return None if found in _CONFINED else found

    bad = [each for each in pod.containers if kind(_context(each))]
    whole = kind(pod.context)
    values = sorted({each for each in (whole, *(kind(_context(one)) for one in bad)) if each})
    marks = sorted(
        f'{key}="{value}"'
        for key, value in pod.annotations.items()
        if key.startswith(APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    setters = [each for each in (_setters(bool(whole), bad), _plural("annotation", marks) if marks else "") if each]
    if not setters:
        return None
    listed = _quoted([*values, *marks])
    return Violation(
        _plural("forbidden AppArmor profile", [*values, *marks]), f"{' and '.join(setters)} must not set AppArmor profile type to {listed}"
    )


def _added(pod: Pod, allowed: Callable[[str], bool]) -> tuple[list[Tree], list[str]]:
    """Return the containers that add capabilities which are not allowed, and those capabilities."""
    bad: list[Tree] = []
    names: set[str] = set()
    for container in pod.containers:
        extra = [each for each in (_context(container).get("capabilities") or {}).get("add") or () if not allowed(each)]
        if extra:
            bad.append(container)
            names.update(extra)
    return bad, sorted(names)


def _capabilities(pod: Pod) -> Violation | None:
    bad, names = _added(pod, lambda each: each in _CAPABILITIES)
    detail = f"{_named(bad)} must not include {_quoted(names)} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail) if bad else None


def _host_namespaces(pod: Pod) -> Violation | None:
    found = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(key)]
    return Violation("host namespaces", ", ".join(found)) if found else None


def _host_paths(pod: Pod) -> Violation | None:
    found = [each.get("name", "") for each in pod.spec.get("volumes") or () if each.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{_plural('volume', found)} {_quoted(found)}") if found else None


def _host_ports(pod: Pod) -> Violation | None:
    def ports(container: Tree) -> list[str]:
        return [str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort")]

    bad = [each for each in pod.containers if ports(each)]
    if not bad:
        return None
    numbers = sorted({port for each in bad for port in ports(each)})
    verb = "uses" if len(bad) == 1 else "use"
    return Violation("hostPort", f"{_named(bad)} {verb} {_plural('hostPort', numbers)} {', '.join(numbers)}")


def _host_probes(pod: Pod) -> Violation | None:
    def hosts(container: Tree) -> set[str]:
        lifecycle = container.get("lifecycle") or {}
        handlers = [container.get(key) for key in ("livenessProbe", "readinessProbe", "startupProbe")]
        handlers += [lifecycle.get(key) for key in ("postStart", "preStop")]
        actions = [(each or {}).get(key) or {} for each in handlers for key in ("httpGet", "tcpSocket")]
        return {each["host"] for each in actions if each.get("host")}

    bad = sorted((each for each in pod.containers if hosts(each)), key=lambda each: str(each.get("name", "")))
    if not bad:
        return None
    found = sorted({host for each in bad for host in hosts(each)})
    verb = "uses" if len(bad) == 1 else "use"
    return Violation("probe or lifecycle host", f"{_named(bad)} {verb} {_plural('probe or lifecycle host', found)} {_quoted(found)}")


def _privileged(pod: Pod) -> Violation | None:
    bad = [each for each in pod.containers if _context(each).get("privileged")]
    return Violation("privileged", f"{_named(bad)} must not set securityContext.privileged=true") if bad else None


def _proc_mount(pod: Pod) -> Violation | None:
    bad = [each for each in pod.containers if _context(each).get("procMount", "Default") != "Default"]
    kinds = sorted({_context(each)["procMount"] for each in bad})
    return Violation("procMount", f"{_named(bad)} must not set securityContext.procMount to {_quoted(kinds)}") if bad else None


def _proc_mount_of_host_users(pod: Pod) -> Violation | None:
    return None if pod.own_users else _proc_mount(pod)


def _selinux(pod: Pod) -> Violation | None:
    def options(context: Tree) -> Tree:
        return context.get("seLinuxOptions") or {}

    def is_bad(found: Tree) -> bool:
        return found.get("type", "") not in _SELINUX or bool(found.get("user") or found.get("role"))

    bad = [each for each in pod.containers if is_bad(options(_context(each)))]
    whole = is_bad(options(pod.context))
    if not whole and not bad:
        return None
    found = [options(pod.context), *(options(_context(each)) for each in pod.containers)]
    types = sorted({each["type"] for each in found if each.get("type", "") not in _SELINUX})
    parts = [f"{_plural('type', types)} {_quoted(types)}"] if types else []
    parts += [f"{key} may not be set" for key in ("user", "role") if any(each.get(key) for each in found)]
    return Violation("seLinuxOptions", f"{_setters(whole, bad)} set forbidden securityContext.seLinuxOptions: {'; '.join(parts)}")


def _seccomp(context: Tree) -> str | None:
    found: str | None = (context.get("seccompProfile") or {}).get("type")
    return found


def _unconfined(pod: Pod) -> Violation | None:
    def is_bad(kind: str | None) -> bool:
        return kind is not None and kind not in _CONFINED

    bad = [each for each in pod.containers if is_bad(_seccomp(_context(each)))]
    whole = _seccomp(pod.context)
    who = _setters(is_bad(whole), bad)
    values = sorted({each for each in (whole, *(_seccomp(_context(one)) for one in bad)) if each is not None and is_bad(each)})
    return Violation("seccompProfile", f"{who} must not set securityContext.seccompProfile.type to {_quoted(values)}") if who else None


def _sysctls(pod: Pod) -> Violation | None:
    found = [each.get("name", "") for each in pod.context.get("sysctls") or () if each.get("name") not in _SYSCTLS]
    return Violation("forbidden sysctls", ", ".join(found)) if found else None


def _host_process(pod: Pod) -> Violation | None:
    def is_bad(context: Tree) -> bool:
        return bool((context.get("windowsOptions") or {}).get("hostProcess"))

    who = _setters(is_bad(pod.context), [each for each in pod.containers if is_bad(_context(each))])
    return Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true") if who else None


# ------------------------------------------------------------------------------------------------------ restricted


def _escalation(pod: Pod) -> Violation | None:
    bad = [] if pod.windows else [each for each in pod.containers if _context(each).get("allowPrivilegeEscalation") is not False]
    return Violation("allowPrivilegeEscalation != false", f"{_named(bad)} must set securityContext.allowPrivilegeEscalation=false") if bad else None


def _dropped(pod: Pod) -> Violation | None:
    if pod.windows:
        return None
    keeping = [each for each in pod.containers if "ALL" not in ((_context(each).get("capabilities") or {}).get("drop") or ())]
    adding, names = _added(pod, lambda each: each == "NET_BIND_SERVICE")
    parts = [f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        parts.append(f"{_named(adding)} must not include {_quoted(names)} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(parts)) if parts else None


def _volume_types(pod: Pod) -> Violation | None:
    bad = [each for each in pod.spec.get("volumes") or () if not any(key in _VOLUMES for key in each)]
    if not bad:
        return None
    types = sorted({next((key for key in each if key != "name"), "unknown") for each in bad})
    verb = "uses" if len(bad) == 1 else "use"
    listed = _quoted(each.get("name", "") for each in bad)
    return Violation(
        "restricted volume types", f"{_plural('volume', bad)} {listed} {verb} {_plural('restricted volume type', types)} {_quoted(types)}"
    )


def _non_root(pod: Pod) -> Violation | None:
    if pod.own_users:
        return None
    whole = pod.context.get("runAsNonRoot")
    who = _setters(whole is False, [each for each in pod.containers if _context(each).get("runAsNonRoot") is False])
    if who:
        return Violation("runAsNonRoot != true", f"{who} must not set securityContext.runAsNonRoot=false")
    unset = [] if whole else [each for each in pod.containers if _context(each).get("runAsNonRoot") is None]
    return Violation("runAsNonRoot != true", f"pod or {_named(unset)} must set securityContext.runAsNonRoot=true") if unset else None


def _root_user(pod: Pod) -> Violation | None:
    if pod.own_users:
        return None
    who = _setters(pod.context.get("runAsUser") == 0, [each for each in pod.containers if _context(each).get("runAsUser") == 0])
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def _confined(pod: Pod) -> Violation | None:
    if pod.windows:
        return None
    wrong = _unconfined(pod)
    if wrong is not None:
        return wrong
    unset = [] if _seccomp(pod.context) else [each for each in pod.containers if _seccomp(_context(each)) is None]
    detail = f'pod or {_named(unset)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", detail) if unset else None


_BASELINE_CHECKS: tuple[Check, ...] = (
    _app_armor, _capabilities, _host_namespaces, _host_paths, _host_ports, _host_probes, _privileged, _proc_mount_of_host_users, _selinux,
    _unconfined, _sysctls, _host_process,
)  # fmt: skip
_RESTRICTED_CHECKS: tuple[Check, ...] = (
    # What the level has stricter checks for is not checked twice.
    _app_armor, _host_namespaces, _host_ports, _host_probes, _privileged, _selinux, _sysctls, _host_process,
    _escalation, _dropped, _proc_mount, _volume_types, _non_root, _root_user, _confined,
)  # fmt: skip
