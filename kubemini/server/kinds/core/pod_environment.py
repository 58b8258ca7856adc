"""Rules of a container's environment: names, and where values come from."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery import names, quantity
from kubemini.machinery.errors import invalid, not_supported, required
from kubemini.server.kinds.core.formats import Errors, local_path, name_prefix, wrong

_LABELS = frozenset((
    "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.restartPolicy",
    "spec.serviceAccountName", "spec.schedulerName", "status.phase", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
))  # fmt: skip
ENV_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_RESOURCES = ("limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage", "requests.memory")
_BYTES = frozenset(("1", *(f"1{unit}" for unit in ("k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))))
_BYTES_TEXT = "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the {} resource"


def environment(container: Tree, path: str) -> Errors:
    """Check ``env`` and ``envFrom`` of a container."""
    for index, variable in enumerate(container.get("env") or ()):
        here, name = f"{path}.env[{index}]", variable.get("name", "")
        if name:
            yield from wrong(names.env_var_name, name, f"{here}.name")
        else:
            yield required(f"{here}.name")
        if variable.get("valueFrom") is not None:
            yield from _value_from(variable, f"{here}.valueFrom")
    for index, source in enumerate(container.get("envFrom") or ()):
        here = f"{path}.envFrom[{index}]"
        if source.get("prefix"):
            yield from wrong(names.env_var_name, source["prefix"], f"{here}.prefix")
        found = [key for key in ("configMapRef", "secretRef") if source.get(key) is not None]
        for key in found:
            name = source[key].get("name", "")
            if name:
                yield from wrong(name_prefix, name, f"{here}.{key}.name")
            else:
                yield required(f"{here}.{key}.name")
        if not found:
            yield invalid(f"{path}.envFrom", "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(found) > 1:
            yield invalid(f"{path}.envFrom", "", "may not have more than one field specified at a time")


def _value_from(variable: Tree, path: str) -> Errors:
    source = variable["valueFrom"]
    found = 0
    if source.get("fieldRef") is not None:
        found += 1
        yield from field_reference(source["fieldRef"], ENV_FIELDS, f"{path}.fieldRef")
    if source.get("resourceFieldRef") is not None:
        found += 1
        yield from resource_reference(source["resourceFieldRef"], f"{path}.resourceFieldRef", in_volume=False)
    for key in ("configMapKeyRef", "secretKeyRef"):
        if source.get(key) is not None:
            found += 1
            yield from _key_reference(source[key], f"{path}.{key}")
    if source.get("fileKeyRef") is not None:
        found += 1
        yield from _file_reference(source["fileKeyRef"], f"{path}.fileKeyRef")
    if not found:
        yield invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`")
    elif variable.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif found > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def field_reference(reference: Tree, supported: tuple[str, ...], path: str) -> Errors:
    """Check a reference to a field of the pod itself."""
    version, wanted = reference.get("apiVersion", "v1"), reference.get("fieldPath", "")
    if not version:
        yield required(f"{path}.apiVersion")
        return
    if not wanted:
        yield required(f"{path}.fieldPath")
        return
    if version != "v1":
        yield invalid(f"{path}.fieldPath", wanted, f"error converting fieldPath: unsupported pod version: {version}")
        return
    base, key = _subscript(wanted)
    if key is not None:
        if base == "metadata.annotations":
            yield from wrong(names.qualified_name, key.lower(), path)
        elif base == "metadata.labels":
            yield from wrong(names.qualified_name, key, path)
        else:
            yield invalid(path, base, "does not support subscript")
    elif base not in _LABELS and base != "spec.host":
        yield invalid(f"{path}.fieldPath", wanted, f"error converting fieldPath: field label not supported: {wanted}")
    elif base not in supported:
        yield not_supported(f"{path}.fieldPath", base, supported)


def _subscript(wanted: str) -> tuple[str, str | None]:
    """Split ``metadata.labels['a']`` into path and key; the key is None where there is none."""
    if wanted.endswith("']") and "['" in wanted:
        base, _, key = wanted[:-2].partition("['")
        if base in _LABELS:
            return base, key
    return wanted, None


def resource_reference(reference: Tree, path: str, *, in_volume: bool) -> Errors:
    """Check a reference to a container's requests or limits."""
    resource = reference.get("resource", "")
    if in_volume and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not resource:
        yield required(f"{path}.resource")
    elif resource not in _RESOURCES and not resource.startswith(("limits.hugepages-", "requests.hugepages-")):
        yield not_supported(f"{path}.resource", resource, _RESOURCES)
    divisor = reference.get("divisor", "0")
    if quantity.nano(divisor) == 0:
        return
    if resource.endswith(".cpu"):
        if divisor not in ("1", "1m"):
            yield invalid(f"{path}.divisor", resource, "only divisor's values 1m and 1 are supported with the cpu resource")
    elif divisor not in _BYTES:
        for suffix, word in ((".memory", "memory"), (".ephemeral-storage", "local ephemeral storage")):
            if resource.endswith(suffix):
                yield invalid(f"{path}.divisor", resource, _BYTES_TEXT.format(word))
        if ".hugepages-" in resource:
            yield invalid(f"{path}.divisor", resource, _BYTES_TEXT.format("hugepages"))


def _key_reference(reference: Tree, path: str) -> Errors:
    yield from wrong(names.dns1123_subdomain, reference.get("name", ""), f"{path}.name")
    if reference.get("key"):
        yield from wrong(names.config_map_key, reference["key"], f"{path}.key")
    else:
        yield required(f"{path}.key")


def _file_reference(reference: Tree, path: str) -> Errors:
    if reference.get("key"):
        yield from wrong(names.env_var_name, reference["key"], f"{path}.key")
    else:
        yield required(f"{path}.key")
    if reference.get("volumeName"):
        yield from wrong(names.dns1123_label, reference["volumeName"], f"{path}.volumeName")
    else:
        yield required(f"{path}.volumeName")
    if reference.get("path"):
        yield from local_path(reference["path"], f"{path}.path")
    else:
        yield required(f"{path}.path")
