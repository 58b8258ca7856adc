"""The inside of a simulated container, worked out from its pod: host name, environment variables, mounted files.

No process runs there, but what Kubernetes gives to a container is all in objects: variables with their references resolved, files of ConfigMap, Secret,
downward API and projected volumes. Mirrors ``pkg/kubelet`` (``makeEnvironmentVariables``, the volume plugins' payloads, 1.36).
"""

from __future__ import annotations

import posixpath
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Final

from kubemini.api.trees import Tree, get_in
from kubemini.machinery.quantity import nano
from kubemini.server.strategy import Reader

CLUSTER_DOMAIN: Final = "cluster.local"
NAMESERVER: Final = "10.96.0.10"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_REFERENCE: Final = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_KEYED: Final = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class Inside:
    """One container of a pod, seen from inside."""

    def __init__(self, pod: Tree, container: str, reader: Reader) -> None:
        self.pod = pod
        self.reader = reader
        spec = pod["spec"]
        everything = (each for key in ("containers", "initContainers", "ephemeralContainers") for each in spec.get(key) or ())
        self.container: Tree = next(each for each in everything if each["name"] == container)
        self.namespace: str = pod["metadata"]["namespace"]

    @property
    def hostname(self) -> str:
        """What ``hostname`` prints."""
        name: str = self.pod["spec"].get("hostname") or self.pod["metadata"]["name"]
        return name[:63].rstrip("-.")

    @property
    def working_directory(self) -> str:
        """Where commands start."""
        return str(self.container.get("workingDir") or "/")

    # ------------------------------------------------------------------ environment

    def environment(self) -> dict[str, str]:
        """Return the variables in the order in which a container runtime sets them."""
        values = {"PATH": _PATH, "HOSTNAME": self.hostname}
        values |= dict(self._service_variables())
        given: dict[str, str] = {}
        for source in self.container.get("envFrom") or ():
            given |= self._all_of(source)
        for entry in self.container.get("env") or ():
            value = self._value(entry)
            if value is not None:
                given[entry["name"]] = _expanded(value, {**values, **given})
        return {**values, **given, "HOME": given.get("HOME", "/root")}

    def _service_variables(self) -> Iterator[tuple[str, str]]:
        kubernetes = self.reader.get("services", "default", "kubernetes")
        yield from _variables_of(kubernetes)
        if self.pod["spec"].get("enableServiceLinks", True):
            for service in self.reader.list("services", self.namespace):
                if service is not kubernetes:
                    yield from _variables_of(service)

    def _all_of(self, source: Tree) -> dict[str, str]:
        prefix = source.get("prefix") or ""
        for key in ("configMapRef", "secretRef"):
            if key in source:
                data = self._data("configmaps" if key == "configMapRef" else "secrets", source[key].get("name", ""))
                return {f"{prefix}{name}": value for name, value in data.items()}
        return {}

    def _value(self, entry: Tree) -> str | None:
        source: Tree | None = entry.get("valueFrom")
        if source is None:
            return str(entry.get("value") or "")
        if "fieldRef" in source:
            return self.field(source["fieldRef"].get("fieldPath", ""))
        if "resourceFieldRef" in source:
            return self.resource(source["resourceFieldRef"])
        for key, plural in (("configMapKeyRef", "configmaps"), ("secretKeyRef", "secrets")):
            if key in source:
                return self._data(plural, source[key].get("name", "")).get(source[key].get("key", ""))
        return None

    def _data(self, plural: str, name: str) -> dict[str, str]:
        """Return the data of a ConfigMap or Secret as text."""
        return {key: value.decode(errors="replace") for key, value in self._bytes(plural, name).items()}

    def _bytes(self, plural: str, name: str) -> dict[str, bytes]:
        """Return the data of a ConfigMap or Secret."""
        found = self.reader.get(plural, self.namespace, name)
        if found is None:
            return {}
        data: Mapping[str, str] = found.get("data") or {}
        if plural == "configmaps":
            binary: Mapping[str, str] = found.get("binaryData") or {}
            return {**{key: value.encode() for key, value in data.items()}, **{key: b64decode(value) for key, value in binary.items()}}
        return {key: b64decode(value) for key, value in data.items()}

    def field(self, path: str) -> str:
        """Return what the downward API gives for a field path."""
        meta, spec, status = self.pod["metadata"], self.pod["spec"], self.pod.get("status") or {}
        keyed = _KEYED.fullmatch(path)
        if keyed:
            return str((meta.get(keyed[1]) or {}).get(keyed[2], ""))
        if path in ("metadata.labels", "metadata.annotations"):
            entries: Mapping[str, str] = meta.get(path.removeprefix("metadata.")) or {}
            return "\n".join(f'{key}="{entries[key]}"' for key in sorted(entries))
        if path == "status.podIPs":
            return ",".join(each["ip"] for each in status.get("podIPs") or ())
        if path == "spec.serviceAccountName":
            return str(spec.get("serviceAccountName") or "default")
        return str(get_in(self.pod, *path.split(".")) or "")

    def resource(self, reference: Tree) -> str:
        """Return what the downward API gives for a resource of the container; without a limit, what the node has."""
        name = reference.get("containerName") or self.container["name"]
        container: Tree = next((each for each in self.pod["spec"]["containers"] if each["name"] == name), self.container)
        kind, _, resource = str(reference.get("resource", "")).partition(".")
        amount = get_in(container, "resources", kind, resource)
        if amount is None and kind == "limits":
            node = self.reader.get("nodes", "", self.pod["spec"].get("nodeName") or "") or {}
            amount = get_in(node, "status", "allocatable", resource)
        if amount is None:
            return "0"
        divisor = nano(str(reference.get("divisor") or "1")) or nano("1")
        return str(-(-nano(str(amount)) // divisor))  # rounded up

    # ------------------------------------------------------------------ files

    def mounts(self) -> Iterator[tuple[str, str]]:
        """Yield where whole volumes are mounted, and the name of each that can be written (an ``emptyDir``), "" for others."""
        empty = {volume["name"] for volume in self.pod["spec"].get("volumes") or () if "emptyDir" in volume}
        for mount in self.container.get("volumeMounts") or ():
            if not mount.get("subPath"):
                yield posixpath.normpath(mount["mountPath"]), mount["name"] if mount["name"] in empty and not mount.get("readOnly") else ""

    def files(self) -> dict[str, bytes]:
        """Return the files that Kubernetes puts into the container, by absolute path."""
        texts = {"/etc/hostname": f"{self.hostname}\n", "/etc/hosts": self._hosts(), "/etc/resolv.conf": self._resolver()}
        found = {path: text.encode() for path, text in texts.items()}
        volumes: dict[str, Tree] = {volume["name"]: volume for volume in self.pod["spec"].get("volumes") or ()}
        for mount in self.container.get("volumeMounts") or ():
            volume = volumes.get(mount["name"])
            if volume is None:
                continue
            inside = self._payload(volume)
            if mount.get("subPath"):
                if mount["subPath"] in inside:
                    found[mount["mountPath"]] = inside[mount["subPath"]]
                continue
            found |= {f"{mount['mountPath'].rstrip('/')}/{path}": text for path, text in inside.items()}
        return found

    def _payload(self, volume: Tree) -> dict[str, bytes]:
        if "configMap" in volume:
            return _picked(volume["configMap"], self._bytes("configmaps", volume["configMap"].get("name", "")))
        if "secret" in volume:
            return _picked(volume["secret"], self._bytes("secrets", volume["secret"].get("secretName", "")))
        if "downwardAPI" in volume:
            return dict(self._downward(volume["downwardAPI"]))
        found: dict[str, bytes] = {}
        for source in (volume.get("projected") or {}).get("sources") or ():
            if "configMap" in source:
                found |= _picked(source["configMap"], self._bytes("configmaps", source["configMap"].get("name", "")))
            elif "secret" in source:
                found |= _picked(source["secret"], self._bytes("secrets", source["secret"].get("name", "")))
            elif "downwardAPI" in source:
                found |= dict(self._downward(source["downwardAPI"]))
        return found

    def _downward(self, source: Tree) -> Iterator[tuple[str, bytes]]:
        for item in source.get("items") or ():
            if "fieldRef" in item:
                yield item["path"], self.field(item["fieldRef"].get("fieldPath", "")).encode()
            elif "resourceFieldRef" in item:
                yield item["path"], self.resource(item["resourceFieldRef"]).encode()

    def _hosts(self) -> str:
        lines = ["# Kubernetes-managed hosts file.", "127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"]
        spec, address = self.pod["spec"], (self.pod.get("status") or {}).get("podIP", "")
        if address:
            domain = f"{self.hostname}.{spec['subdomain']}.{self.namespace}.svc.{CLUSTER_DOMAIN}\t" if spec.get("subdomain") else ""
            lines.append(f"{address}\t{domain}{self.hostname}")
        lines += [f"{alias['ip']}\t" + "\t".join(alias.get("hostnames") or ()) for alias in spec.get("hostAliases") or ()]
        return "\n".join([*lines, ""])

    def _resolver(self) -> str:
        searches = " ".join(f"{head}{CLUSTER_DOMAIN}" for head in (f"{self.namespace}.svc.", "svc.", ""))
        return f"search {searches}\nnameserver {NAMESERVER}\noptions ndots:5\n"


def _expanded(text: str, values: Mapping[str, str]) -> str:
    """Return a value with ``$(NAME)`` replaced where NAME is known; ``$$`` is a dollar."""

    def one(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else values.get(name, match[0])

    return _REFERENCE.sub(one, text)


def _variables_of(service: Tree | None) -> Iterator[tuple[str, str]]:
    """Yield the Docker-links style variables of a service."""
    address = (service or {}).get("spec", {}).get("clusterIP")
    ports: list[Tree] = (service or {}).get("spec", {}).get("ports") or []
    if service is None or not address or address == "None" or not ports:
        return
    name = service["metadata"]["name"].upper().replace("-", "_")
    yield f"{name}_SERVICE_HOST", address
    yield f"{name}_SERVICE_PORT", str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            yield f"{name}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}", str(port["port"])


def _picked(source: Tree, data: Mapping[str, bytes]) -> dict[str, bytes]:
    items: list[Tree] = source.get("items") or []
    if not items:
        return dict(data)
    return {item["path"]: data[item["key"]] for item in items if item.get("key") in data}
