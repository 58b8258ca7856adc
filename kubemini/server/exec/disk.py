"""What programs write in a simulated container: over the files that Kubernetes puts there, until the container restarts or its pod goes.

An ``emptyDir`` is shared by the containers of its pod and outlives a restart. Other volumes are read-only here: their content is that of objects.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import Final

from kubemini.api.trees import Tree
from kubemini.server.exec.container import Inside
from kubemini.server.strategy import Reader

CAPACITY: Final = 64 << 20
"""How many bytes the containers of one pod may write."""
_STANDARD: Final = ("/", "/bin", "/dev", "/etc", "/home", "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys", "/tmp", "/usr", "/var")  # noqa: S108  of a simulated container
"""Folders of every image."""
_MANY: Final = 8

Layer = dict[str, bytes | None]
"""Files by path, None for a folder."""


class DiskError(Exception):
    """What cannot be done, in the words of the C library."""


class Disks:
    """What was written in the pods of one cluster."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._pods: dict[str, tuple[str, str, dict[tuple[str, str], Layer]]] = {}

    def of(self, inside: Inside) -> Disk:
        """Return the disk of a container."""
        meta = inside.pod["metadata"]
        if len(self._pods) >= _MANY:
            self._pods = {uid: kept for uid, kept in self._pods.items() if self._lives(uid, *kept[:2])}
        kept = self._pods.setdefault(meta["uid"], (meta["namespace"], meta["name"], {}))
        return Disk(inside, kept[2])

    def _lives(self, uid: str, namespace: str, name: str) -> bool:
        pod = self._reader.get("pods", namespace, name)
        return pod is not None and pod["metadata"]["uid"] == uid


class Disk:
    """The files of one container, by absolute path. `layers` is what was written in its pod."""

    def __init__(self, inside: Inside, layers: dict[tuple[str, str], Layer]) -> None:
        self._inside = inside
        self._layers = layers
        name = inside.container["name"]
        statuses: list[Tree] = (inside.pod.get("status") or {}).get("containerStatuses") or []
        restarts = next((each.get("restartCount", 0) for each in statuses if each.get("name") == name), 0)
        self._own = ("container", f"{name}/{restarts}")
        self._mounts = dict(inside.mounts())

    def files(self) -> dict[str, bytes]:
        """Return all files."""
        found = self._inside.files()
        found |= {path: data for path, data in self._written() if data is not None}
        return found

    def is_folder(self, path: str) -> bool:
        """Tell whether a path is a folder."""
        if path in _STANDARD or path in self._mounts or (path, None) in self._written():
            return True
        head = f"{path.rstrip('/')}/"
        return any(each.startswith(head) for each in self.files()) or any(each.startswith(head) for each in self._mounts)

    def folders(self) -> list[str]:
        """Return the folders that were made, and those of volumes."""
        return [*self._mounts, *(path for path, data in self._written() if data is None)]

    def write(self, path: str, data: bytes) -> None:
        """Write a file. Raise `DiskError`."""
        if self.is_folder(path):
            raise DiskError("Is a directory")
        layer, key = self._place(path)
        used = sum(len(each) for one in self._layers.values() for each in one.values() if each)
        if used + len(data) - len(layer.get(key) or b"") > CAPACITY:
            raise DiskError("No space left on device")
        layer[key] = data

    def make_folder(self, path: str) -> None:
        """Make a folder. Raise `DiskError`."""
        layer, key = self._place(path)
        if path in self.files() or self.is_folder(path):
            raise DiskError("File exists")
        layer[key] = None

    def remove(self, path: str) -> None:
        """Remove a file or a folder with what is in it. Raise `DiskError`."""
        layer, key = self._place(path)
        doomed = [each for each in layer if each == key or each.startswith(f"{key}/")]
        if not doomed:
            raise DiskError("Operation not permitted" if path in self.files() or self.is_folder(path) else "No such file or directory")
        for each in doomed:
            del layer[each]

    def _written(self) -> Iterator[tuple[str, bytes | None]]:
        yield from self._layers.get(self._own, {}).items()
        for mount, volume in self._mounts.items():
            for key, data in self._layers.get(("volume", volume), {}).items():
                yield f"{mount.rstrip('/')}{key}", data

    def _place(self, path: str) -> tuple[Layer, str]:
        """Return where a path is kept. Raise `DiskError` for what cannot be written."""
        if not self.is_folder(posixpath.dirname(path)):
            raise DiskError("No such file or directory")
        mount = max((each for each in self._mounts if path == each or path.startswith(f"{each.rstrip('/')}/")), key=len, default="")
        if not mount:
            return self._layers.setdefault(self._own, {}), path
        if not self._mounts[mount]:
            raise DiskError("Read-only file system")
        return self._layers.setdefault(("volume", self._mounts[mount]), {}), path.removeprefix(mount.rstrip("/")) or "/"
