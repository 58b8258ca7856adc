"""Rules of the volumes of a pod: one source each, well-formed, names unique."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names, quantity
from kubemini.machinery.errors import duplicate, forbidden, invalid, not_supported, required, too_long
from kubemini.server.kinds.core.formats import Errors, descending_path, local_path, no_backsteps, one_of, wrong
from kubemini.server.kinds.core.pod_environment import VOLUME_FIELDS, field_reference, resource_reference

_MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_PULL_POLICIES = ("Always", "IfNotPresent", "Never")


def volumes(entries: list[Tree], path: str, pod_name: str, *, pod: bool) -> tuple[dict[str, Tree], list[Any]]:
    """Return the valid volumes by name, and what is wrong with the others.

    `pod_name` is "" where the pod has no name yet (templates): the names of claims for ephemeral volumes cannot be checked then.
    """
    valid: dict[str, Tree] = {}
    errors: list[Any] = []
    claims = {f"{pod_name}-{each.get('name', '')}" for each in entries if pod_name and each.get("ephemeral") is not None}
    for index, volume in enumerate(entries):
        here, name = f"{path}[{index}]", volume.get("name", "")
        found = [*_source(volume, here, pod_name, pod)]
        if name:
            found += wrong(names.dns1123_label, name, f"{here}.name")
        else:
            found.append(required(f"{here}.name"))
        if name in valid:
            found.append(duplicate(f"{here}.name", name))
        if found:
            errors += found
        else:
            valid[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in claims:
            text = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{here}.persistentVolumeClaim.claimName", claim, text))
    return valid, errors


def _source(volume: Tree, path: str, pod_name: str, pod: bool) -> Errors:
    found = [key for key in SOURCES if volume.get(key) is not None]
    if not found:
        yield required(path, "must specify a volume type")
        return
    first = found[0]
    yield from SOURCES[first](volume[first], f"{path}.{first}")
    if first == "ephemeral" and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        problem = names.dns1123_subdomain(claim)
        for each in names.faults(problem):
            yield invalid(f"{path}.name", volume["name"], f'PVC name "{claim}": {each}')
    if first == "image" and pod and not volume["image"].get("reference"):
        yield required(f"{path}.image.reference")
    for key in found[1:]:
        yield forbidden(f"{path}.{key}", "may not specify more than 1 volume type")


def _mode(tree: Tree, key: str, path: str) -> Errors:
    mode = tree.get(key)
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(f"{path}.{key}", mode, _MODE_TEXT)


def _needs(*keys: str) -> Callable[[Tree, str], Errors]:
    """Return a rule that only asks for some fields."""

    def check(tree: Tree, path: str) -> Errors:
        for key in keys:
            if not tree.get(key):
                yield required(f"{path}.{key}")

    return check


def _empty_dir(tree: Tree, path: str) -> Errors:
    limit = tree.get("sizeLimit")
    if limit is not None and quantity.nano(limit) < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _host_path(tree: Tree, path: str) -> Errors:
    if not tree.get("path"):
        yield required(f"{path}.path")
        return
    yield from no_backsteps(tree["path"], f"{path}.path")
    if tree.get("type", "") not in _HOST_PATH_TYPES:
        yield not_supported(f"{path}.type", tree["type"], _HOST_PATH_TYPES)


def _keyed(name_key: str) -> Callable[[Tree, str], Errors]:
    """Return the rule of Secret and ConfigMap volumes, which differ in the key of the name."""

    def check(tree: Tree, path: str) -> Errors:
        if not tree.get(name_key):
            yield required(f"{path}.{name_key}")
        yield from _mode(tree, "defaultMode", path)
        for index, item in enumerate(tree.get("items") or ()):
            yield from _key_to_path(item, f"{path}.items[{index}]")

    return check


def _key_to_path(item: Tree, path: str) -> Errors:
    yield from _needs("key", "path")(item, path)
    yield from local_path(item.get("path", ""), f"{path}.path")
    yield from _mode(item, "mode", path)


def _nfs(tree: Tree, path: str) -> Errors:
    yield from _needs("server", "path")(tree, path)
    if not tree.get("path", "").startswith("/"):
        yield invalid(f"{path}.path", tree.get("path", ""), "must be an absolute path")


def _downward(tree: Tree, path: str) -> Errors:
    yield from _mode(tree, "defaultMode", path)
    for item in tree.get("items") or ():
        yield from _downward_file(item, path)


def _downward_file(item: Tree, path: str) -> Errors:
    if not item.get("path"):
        yield required(f"{path}.path")
    yield from local_path(item.get("path", ""), f"{path}.path")
    if item.get("fieldRef") is not None:
        yield from field_reference(item["fieldRef"], VOLUME_FIELDS, f"{path}.fieldRef")
        if item.get("resourceFieldRef") is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif item.get("resourceFieldRef") is not None:
        yield from resource_reference(item["resourceFieldRef"], f"{path}.resourceFieldRef", in_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(item, "mode", path)


def _projected(tree: Tree, path: str) -> Errors:
    yield from _mode(tree, "defaultMode", path)
    seen: set[str] = set()
    for index, source in enumerate(tree.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        found = 0
        for key in ("secret", "configMap"):
            part = source.get(key)
            if part is None:
                continue
            found += 1
            if not part.get("name"):
                yield required(f"{here}.{key}.name")
            for at, item in enumerate(part.get("items") or ()):
                yield from _key_to_path(item, f"{here}.{key}.items[{at}]")
                yield from _once(item.get("path", ""), part.get("name", ""), seen, path)
        if source.get("downwardAPI") is not None:
            found += 1
            items: Any = source["downwardAPI"].get("items")
            for item in items or ():
                yield from _downward_file(item, f"{here}.downwardAPI")
                yield from _once(item.get("path", ""), item.get("path", ""), seen, path)
        if source.get("serviceAccountToken") is not None:
            found += 1
            yield from _token(source["serviceAccountToken"], f"{here}.serviceAccountToken", path)
        if source.get("clusterTrustBundle") is not None:
            found += 1
            yield from _trust_bundle(source["clusterTrustBundle"], f"{here}.clusterTrustBundle")
            where = source["clusterTrustBundle"].get("path", "")
            yield from _once(where, where, seen, path)
        found += source.get("podCertificate") is not None
        if found > 1:
            yield forbidden(here, "may not specify more than 1 volume type per source")


def _once(where: str, shown: str, seen: set[str], path: str) -> Errors:
    if where in seen:
        yield invalid(path, shown, "conflicting duplicate paths")
    if where:
        seen.add(where)


def _token(tree: Tree, path: str, volume: str) -> Errors:
    seconds = tree.get("expirationSeconds", 3600)
    if seconds < 600:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    if seconds > 1 << 32:
        yield invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if tree.get("path"):
        yield from local_path(tree["path"], f"{volume}.path")
    else:
        yield required(f"{volume}.path")


def _trust_bundle(tree: Tree, path: str) -> Errors:
    if tree.get("name") is not None and tree.get("signerName") is not None:
        yield invalid(path, tree, "only one of name and signerName may be used")
    elif tree.get("name") is not None:
        if tree.get("labelSelector") is not None:
            yield invalid(f"{path}.labelSelector", tree["labelSelector"], "labelSelector must be unset if name is specified")
    elif tree.get("signerName") is not None:
        yield from labels.validate_label_selector(tree.get("labelSelector"), f"{path}.labelSelector")
    else:
        yield required(path, "either name or signerName must be specified")
    if not tree.get("path"):
        yield required(f"{path}.path")
    yield from local_path(tree.get("path", ""), f"{path}.path")


def _csi(tree: Tree, path: str) -> Errors:
    yield from csi_driver_name(tree.get("driver", ""), f"{path}.driver")
    if tree.get("nodePublishSecretRef") is not None and not tree["nodePublishSecretRef"].get("name"):
        yield required(f"{path}.nodePublishSecretRef.name")


def csi_driver_name(value: str, path: str) -> Errors:
    """Check the name of a CSI driver."""
    if not value:
        yield required(path)
    if len(value) > 63:
        yield too_long(path, 63)
    yield from wrong(names.dns1123_subdomain, value.lower(), path)


def _ephemeral(tree: Tree, path: str) -> Errors:
    from kubemini.server.kinds.core.claims import claim_spec

    if tree.get("volumeClaimTemplate") is None:
        yield required(f"{path}.volumeClaimTemplate")
    else:
        yield from claim_spec(tree["volumeClaimTemplate"].get("spec") or {}, f"{path}.volumeClaimTemplate.spec")


def _image(tree: Tree, path: str) -> Errors:
    yield from one_of(tree.get("pullPolicy"), _PULL_POLICIES, f"{path}.pullPolicy")


def _git_repo(tree: Tree, path: str) -> Errors:
    yield from _needs("repository")(tree, path)
    yield from descending_path(tree.get("directory", ""), f"{path}.directory")


SOURCES: dict[str, Callable[[Tree, str], Errors]] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repo,
    "gcePersistentDisk": _needs("pdName"),
    "awsElasticBlockStore": _needs("volumeID"),
    "secret": _keyed("secretName"),
    "nfs": _nfs,
    "iscsi": _needs("targetPortal", "iqn"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _needs(),
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "quobyte": _needs("registry", "volume"),
    "downwardAPI": _downward,
    "fc": _needs(),
    "flexVolume": _needs("driver"),
    "configMap": _keyed("name"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "storageos": _needs(),
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
"""The rule of each kind of volume, in the order in which upstream looks at them."""
