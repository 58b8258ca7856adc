"""PodSecurity: the Pod Security Standards that a namespace asks for by its labels.

Refuses pods (``enforce``) and warns about pods and pod templates (``warn``). Verdicts are kept by the identity of a pod's subtrees,
so that the pods of one template are looked at once. Mirrors ``pod-security-admission/policy`` (1.36), texts included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import Forbidden
from kubemini.server.admission import Admission, AdmissionRequest

PREFIX = "pod-security.kubernetes.io/"
_TEMPLATES = (
    "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch", "cronjobs.batch",
    "replicationcontrollers", "podtemplates",
)  # fmt: skip
_LEVELS = ("baseline", "restricted")
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
_PARTS = ("containers", "initContainers", "ephemeralContainers", "volumes", "securityContext", "os")
_FLAGS = ("hostNetwork", "hostPID", "hostIPC", "hostUsers")
"""The fields of a pod that the standards speak of; a change of others is nobody's business here."""
_LIMIT = 2048

Check = Callable[[Tree], Iterator[str]]


class PodSecurity(Admission):
    """Holds pods against the level of their namespace."""

    name = "PodSecurity"
    resources = ("pods", *_TEMPLATES)
    subresources = ("", "ephemeralcontainers")

    def __init__(self) -> None:
        self._verdicts: dict[tuple[Any, ...], tuple[Tree, str]] = {}

    def validate(self, request: AdmissionRequest) -> None:
        """Refuse or warn. Raise `Forbidden`."""
        namespace = request.ctx.reader.get("namespaces", "", request.namespace)
        labels = ((namespace or {}).get("metadata") or {}).get("labels") or {}
        if not any(key.startswith(PREFIX) for key in labels) or request.obj is None:
            return
        spec = _pod_spec(request.kind.storage, request.obj)
        if spec is None:
            return
        if request.old is not None and _same(_pod_spec(request.kind.storage, request.old) or {}, spec):
            return
        enforced = labels.get(f"{PREFIX}enforce")
        if request.kind.storage == "pods" and enforced in _LEVELS:
            problems = self._verdict(spec, enforced)
            if problems:
                version = labels.get(f"{PREFIX}enforce-version", "latest")
                raise Forbidden.of("pods", "", request.name, f'violates PodSecurity "{enforced}:{version}": {problems}')
        warned = labels.get(f"{PREFIX}warn")
        if warned in _LEVELS:
            problems = self._verdict(spec, warned)
            if problems:
                version = labels.get(f"{PREFIX}warn-version", "latest")
                request.warnings.append(f'would violate PodSecurity "{warned}:{version}": {problems}')

    def _verdict(self, spec: Tree, level: str) -> str:
        key = (level, *(id(spec.get(each)) for each in _PARTS), *(spec.get(each) for each in _FLAGS))
        found = self._verdicts.get(key)
        if found is None:
            if len(self._verdicts) > _LIMIT:
                self._verdicts.clear()
            checks = _BASELINE if level == "baseline" else (*_BASELINE, *_RESTRICTED)
            texts = [text for check in checks for text in check(spec)]
            found = self._verdicts[key] = (spec, ", ".join(texts))
        return found[1]


def _pod_spec(storage: str, obj: Tree) -> Tree | None:
    spec = obj.get("spec") or {}
    match storage:
        case "pods":
            return spec
        case "podtemplates":
            template = obj.get("template")
        case "cronjobs.batch":
            template = ((spec.get("jobTemplate") or {}).get("spec") or {}).get("template")
        case _:
            template = spec.get("template")
    found: Tree | None = (template or {}).get("spec")
    return found


def _same(one: Tree, other: Tree) -> bool:
    return all(one.get(key) == other.get(key) for key in (*_PARTS, *_FLAGS))


def _containers(spec: Tree) -> list[Tree]:
    return [each for key in ("initContainers", "containers", "ephemeralContainers") for each in spec.get(key) or ()]


def _context(container: Tree) -> Tree:
    return container.get("securityContext") or {}


def _named(names: list[str]) -> str:
    """Return ``container "a"`` or ``containers "a", "b"``."""
    listed = ", ".join(f'"{each}"' for each in names)
    return f"container{'s' if len(names) > 1 else ''} {listed}"


def _bad(spec: Tree, test: Callable[[Tree], bool]) -> list[str]:
    return [each.get("name", "") for each in _containers(spec) if test(each)]


# ------------------------------------------------------------------------------------------------------ baseline


def _host_namespaces(spec: Tree) -> Iterator[str]:
    found = [f"{key}=true" for key in ("hostNetwork", "hostPID", "hostIPC") if spec.get(key)]
    if found:
        yield f"host namespaces ({', '.join(found)})"


def _privileged(spec: Tree) -> Iterator[str]:
    found = _bad(spec, lambda each: bool(_context(each).get("privileged")))
    if found:
        yield f"privileged ({_named(found)} must not set securityContext.privileged=true)"


def _capabilities(spec: Tree) -> Iterator[str]:
    added: dict[str, None] = {}
    found: list[str] = []
    for container in _containers(spec):
        extra = [each for each in (_context(container).get("capabilities") or {}).get("add") or () if each not in _CAPABILITIES]
        if extra:
            found.append(container.get("name", ""))
            added.update(dict.fromkeys(extra))
    if found:
        listed = ", ".join(f'"{each}"' for each in sorted(added))
        yield f"non-default capabilities ({_named(found)} must not include {listed} in securityContext.capabilities.add)"


def _host_paths(spec: Tree) -> Iterator[str]:
    found = [each.get("name", "") for each in spec.get("volumes") or () if each.get("hostPath") is not None]
    if found:
        listed = ", ".join(f'"{each}"' for each in found)
        yield f"hostPath volumes (volume{'s' if len(found) > 1 else ''} {listed})"


def _host_ports(spec: Tree) -> Iterator[str]:
    ports: dict[int, None] = {}
    found: list[str] = []
    for container in _containers(spec):
        used = [port["hostPort"] for port in container.get("ports") or () if port.get("hostPort")]
        if used:
            found.append(container.get("name", ""))
            ports.update(dict.fromkeys(used))
    if found:
        verb = "uses" if len(found) == 1 else "use"
        yield f"hostPort ({_named(found)} {verb} hostPort{'s' if len(ports) > 1 else ''} {', '.join(map(str, sorted(ports)))})"


def _selinux(spec: Tree) -> Iterator[str]:
    contexts = [spec.get("securityContext") or {}, *map(_context, _containers(spec))]
    options = [each.get("seLinuxOptions") or {} for each in contexts]
    if any(each.get("type", "") not in _SELINUX or each.get("user") or each.get("role") for each in options):
        types = sorted({each["type"] for each in options if each.get("type", "") not in _SELINUX})
        parts = [f"type{'s' if len(types) > 1 else ''} {', '.join(chr(34) + each + chr(34) for each in types)}"] if types else []
        parts += [f"{key} may not be set" for key in ("user", "role") if any(each.get(key) for each in options)]
        yield f"seLinuxOptions (pod or containers set forbidden securityContext.seLinuxOptions: {'; '.join(parts)})"


def _proc_mount(spec: Tree) -> Iterator[str]:
    if spec.get("hostUsers") is False:
        return
    found = _bad(spec, lambda each: _context(each).get("procMount", "Default") != "Default")
    if found:
        kinds = sorted({_context(each)["procMount"] for each in _containers(spec) if _context(each).get("procMount", "Default") != "Default"})
        yield f"procMount ({_named(found)} must not set securityContext.procMount to {', '.join(chr(34) + each + chr(34) for each in kinds)})"


def _unconfined(spec: Tree) -> Iterator[str]:
    pod = ((spec.get("securityContext") or {}).get("seccompProfile") or {}).get("type") == "Unconfined"
    found = _bad(spec, lambda each: (_context(each).get("seccompProfile") or {}).get("type") == "Unconfined")
    if pod or found:
        who = " and ".join([*(["pod"] if pod else []), *([_named(found)] if found else [])])
        yield f'seccompProfile ({who} must not set securityContext.seccompProfile.type to "Unconfined")'


def _sysctls(spec: Tree) -> Iterator[str]:
    found = [each.get("name", "") for each in (spec.get("securityContext") or {}).get("sysctls") or () if each.get("name") not in _SYSCTLS]
    if found:
        yield f"forbidden sysctls ({', '.join(found)})"


# ------------------------------------------------------------------------------------------------------ restricted


def _is_windows(spec: Tree) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"


def _volume_types(spec: Tree) -> Iterator[str]:
    names: list[str] = []
    types: dict[str, None] = {}
    for volume in spec.get("volumes") or ():
        kinds = [key for key in volume if key != "name" and key not in _VOLUMES]
        if kinds:
            names.append(volume.get("name", ""))
            types.update(dict.fromkeys(kinds))
    if names:
        several = len(names) > 1
        listed, used = ", ".join(f'"{each}"' for each in names), ", ".join(f'"{each}"' for each in sorted(types))
        verb = "use" if several else "uses"
        yield f"restricted volume types (volume{'s' if several else ''} {listed} {verb} restricted volume type{'s' if len(types) > 1 else ''} {used})"


def _escalation(spec: Tree) -> Iterator[str]:
    if _is_windows(spec):
        return
    found = _bad(spec, lambda each: _context(each).get("allowPrivilegeEscalation") is not False)
    if found:
        yield f"allowPrivilegeEscalation != false ({_named(found)} must set securityContext.allowPrivilegeEscalation=false)"


def _dropped(spec: Tree) -> Iterator[str]:
    if _is_windows(spec):
        return
    keeping = _bad(spec, lambda each: "ALL" not in ((_context(each).get("capabilities") or {}).get("drop") or ()))
    adding: list[str] = []
    added: dict[str, None] = {}
    for container in _containers(spec):
        extra = [each for each in (_context(container).get("capabilities") or {}).get("add") or () if each != "NET_BIND_SERVICE"]
        if extra:
            adding.append(container.get("name", ""))
            added.update(dict.fromkeys(extra))
    parts = [f'{_named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        listed = ", ".join(f'"{each}"' for each in sorted(added))
        parts.append(f"{_named(adding)} must not include {listed} in securityContext.capabilities.add")
    if parts:
        yield f"unrestricted capabilities ({'; '.join(parts)})"


def _non_root(spec: Tree) -> Iterator[str]:
    pod = (spec.get("securityContext") or {}).get("runAsNonRoot")
    wrong = _bad(spec, lambda each: _context(each).get("runAsNonRoot") is False)
    unset = _bad(spec, lambda each: _context(each).get("runAsNonRoot") is None)
    if spec.get("hostUsers") is False:
        return
    if wrong or (pod is False and unset):
        who = " and ".join([*(["pod"] if pod is False else []), *([_named(wrong)] if wrong else [])])
        yield f"runAsNonRoot != true ({who} must not set securityContext.runAsNonRoot=false)"
    elif unset and pod is not True:
        yield f"runAsNonRoot != true (pod or {_named(unset)} must set securityContext.runAsNonRoot=true)"


def _root_user(spec: Tree) -> Iterator[str]:
    if spec.get("hostUsers") is False:
        return
    pod = (spec.get("securityContext") or {}).get("runAsUser") == 0
    found = _bad(spec, lambda each: _context(each).get("runAsUser") == 0)
    if pod or found:
        who = " and ".join([*(["pod"] if pod else []), *([_named(found)] if found else [])])
        yield f"runAsUser=0 ({who} must not set runAsUser=0)"


def _confined(spec: Tree) -> Iterator[str]:
    if _is_windows(spec):
        return
    allowed = ("Localhost", "RuntimeDefault")
    pod = ((spec.get("securityContext") or {}).get("seccompProfile") or {}).get("type")
    unset = _bad(spec, lambda each: (_context(each).get("seccompProfile") or {}).get("type") is None)
    if pod not in allowed and pod != "Unconfined" and unset:
        yield f'seccompProfile (pod or {_named(unset)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'


_BASELINE: tuple[Check, ...] = (
    _host_namespaces, _privileged, _capabilities, _host_paths, _host_ports, _selinux, _proc_mount, _unconfined, _sysctls,
)  # fmt: skip
_RESTRICTED: tuple[Check, ...] = (_volume_types, _escalation, _dropped, _non_root, _root_user, _confined)
