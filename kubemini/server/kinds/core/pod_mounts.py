"""Rules of a container's volume mounts and raw block devices."""

from __future__ import annotations

from collections.abc import Mapping

from kubemini.api.trees import Tree
from kubemini.machinery.errors import forbidden, invalid, not_found, not_supported, required
from kubemini.server.kinds.core.formats import Errors, descending_path

_PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
_RECURSIVE = ("Disabled", "Enabled", "IfPossible")


def mounts(container: Tree, volumes: Mapping[str, Tree], path: str) -> Errors:
    """Check the mounts of a container against the pod's valid volumes."""
    device_paths = {each.get("name", ""): each.get("devicePath", "") for each in container.get("volumeDevices") or ()}
    seen: set[str] = set()
    for index, mount in enumerate(container.get("volumeMounts") or ()):
        here, name, at = f"{path}[{index}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            yield required(f"{here}.name")
        if name not in volumes:
            yield not_found(f"{here}.name", name)
        if not at:
            yield required(f"{here}.mountPath")
        if at in seen:
            yield invalid(f"{here}.mountPath", at, "must be unique")
        seen.add(at)
        if name in device_paths:
            yield invalid(f"{here}.name", name, "must not already exist in volumeDevices")
        if at in device_paths.values():
            yield invalid(f"{here}.mountPath", at, "must not already exist as a path in volumeDevices")
        # Upstream reports the following at the list, not at its element.
        if mount.get("subPath"):
            yield from descending_path(mount["subPath"], f"{path}.subPath")
        if mount.get("subPathExpr"):
            if mount.get("subPath"):
                yield invalid(f"{here}.subPathExpr", mount["subPathExpr"], "subPathExpr and subPath are mutually exclusive")
            yield from descending_path(mount["subPathExpr"], f"{path}.subPathExpr")
        yield from _propagation(mount, container, path)


def _propagation(mount: Tree, container: Tree, path: str) -> Errors:
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            yield not_supported(f"{path}.mountPropagation", propagation, _PROPAGATIONS)
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            yield forbidden(f"{path}.mountPropagation", "Bidirectional mount propagation is available only to privileged containers")
    recursive = mount.get("recursiveReadOnly")
    if recursive is None or recursive == "Disabled":
        return
    if recursive not in _RECURSIVE:
        yield not_supported(f"{path}.recursiveReadOnly", recursive, _RECURSIVE)
        return
    if not mount.get("readOnly"):
        yield forbidden(f"{path}.recursiveReadOnly", "may only be specified when readOnly is true")
    if propagation not in (None, "None"):
        yield forbidden(f"{path}.recursiveReadOnly", "may only be specified when mountPropagation is None or not specified")


def devices(container: Tree, volumes: Mapping[str, Tree], path: str) -> Errors:
    """Check the raw block devices of a container."""
    entries = container.get("volumeDevices") or ()
    if not entries:
        return
    mount_paths = {each.get("name", ""): each.get("mountPath", "") for each in container.get("volumeMounts") or ()}
    seen_names: set[str] = set()
    seen_paths: set[str] = set()
    for index, device in enumerate(entries):
        here, name, at = f"{path}[{index}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            yield required(f"{here}.name")
        if name in seen_names:
            yield invalid(f"{here}.name", name, "must be unique")
        volume = volumes.get(name)
        if volume is None:
            yield not_found(f"{here}.name", name)
        elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
            yield invalid(f"{here}.name", name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode")
        if not at:
            yield required(f"{here}.devicePath")
        if at in seen_paths:
            yield invalid(f"{here}.devicePath", at, "must be unique")
        if ".." in at.split("/"):
            yield invalid(f"{here}.devicePath", at, "can not contain backsteps ('..')")
        else:
            seen_paths.add(at)
        if name in mount_paths:
            yield invalid(f"{here}.name", name, "must not already exist in volumeMounts")
        if at in mount_paths.values():
            yield invalid(f"{here}.devicePath", at, "must not already exist as a path in volumeMounts")
        if name:
            seen_names.add(name)
