"""``tar`` in a simulated container, as far as ``kubectl cp`` and people use it: make and unpack an archive through a pipe."""

from __future__ import annotations

import posixpath
from asyncio import IncompleteReadError, StreamReader
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Final

from kubemini.server.exec.disk import CAPACITY, Disk, DiskError

_BLOCK: Final = 512
_END: Final = bytes(_BLOCK)
_HARMLESS: Final = frozenset(("--no-same-permissions", "--no-same-owner", "--no-overwrite-dir"))


class Misused(Exception):
    """The arguments are not understood; the text says why."""


@dataclass(slots=True)
class Order:
    """What a command line wants."""

    mode: str = ""
    folder: str = ""
    paths: list[str] = field(default_factory=list)


def ordered(words: Sequence[str]) -> Order:
    """Return what the arguments of tar mean. Raise `Misused`.

    >>> ordered(["-xmf", "-", "-C", "/tmp"])
    Order(mode='x', folder='/tmp', paths=[])
    """
    order, rest, archive = Order(), list(words), ""
    first = True
    while rest:
        word = rest.pop(0)
        if word in _HARMLESS:
            continue
        if word.startswith("--"):
            raise Misused(f"unrecognized option '{word}'")
        if not (first or word.startswith("-")) or word == "-":
            order.paths.append(word)
            continue
        first = False
        for letter in word.removeprefix("-"):
            if letter in "cx":
                order.mode = letter
            elif letter in "fC":
                if not rest:
                    raise Misused(f"option requires an argument -- '{letter}'")
                value = rest.pop(0)
                archive, order.folder = (value, order.folder) if letter == "f" else (archive, value)
            elif letter not in "mpvh":
                raise Misused(f"invalid option -- '{letter}'")
    if not order.mode:
        raise Misused("You must specify one of the '-ctx' options")
    if archive not in ("-", "/dev/stdin", "/dev/stdout"):
        raise Misused(f"{archive or 'stdin'}: only archives in a pipe are simulated; use 'f -'")
    return order


def packed(disk: Disk, folder: str, paths: Sequence[str]) -> tuple[bytes, list[str]]:
    """Return an archive of files and folders, and what is to be said about it; "Cannot stat" means failure."""
    import tarfile

    said: list[str] = []
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in paths:
            whole = posixpath.normpath(posixpath.join(folder, path))
            if path.startswith("/") and not said:
                said.append("Removing leading `/' from member names")
            found = list(_members(disk, whole))
            if not found:
                said.append(f"{path}: Cannot stat: No such file or directory")
            for member, data in found:
                info = tarfile.TarInfo(
                    posixpath.join(path.lstrip("/") or ".", posixpath.relpath(member, whole)) if member != whole else path.lstrip("/") or "."
                )
                info.mode, info.size = (0o755, 0) if data is None else (0o644, len(data))
                if data is None:
                    info.type = tarfile.DIRTYPE
                archive.addfile(info, BytesIO(data or b""))
    return out.getvalue(), said


def _members(disk: Disk, path: str) -> Iterator[tuple[str, bytes | None]]:
    files = disk.files()
    if path in files:
        yield path, files[path]
    elif disk.is_folder(path):
        head = f"{path.rstrip('/')}/"
        yield path, None
        for each in sorted({*files, *disk.folders()}):
            if each.startswith(head):
                yield each, files.get(each)


async def received(stdin: StreamReader) -> bytes:
    """Return an archive that comes in, to its end mark or the end of what is sent. Raise `DiskError` for one that is too large."""
    found = bytearray()
    try:
        while (head := await stdin.readexactly(_BLOCK)) != _END:
            size = int(head[124:136].rstrip(b"\0 ") or b"0", 8)
            if len(found) + size > CAPACITY:
                raise DiskError("No space left on device")
            found += head + await stdin.readexactly(-(-size // _BLOCK) * _BLOCK)
    except (IncompleteReadError, ValueError):
        pass
    return bytes(found) + 2 * _END


def unpacked(disk: Disk, folder: str, data: bytes) -> list[str]:
    """Write the content of an archive below a folder; return what went wrong."""
    import tarfile

    said: list[str] = []
    try:
        with tarfile.open(fileobj=BytesIO(data), mode="r:") as archive:
            for member in archive:
                path = posixpath.normpath(posixpath.join(folder, member.name.lstrip("/")))
                try:
                    _unpack(disk, path, archive, member)
                except DiskError as problem:
                    said.append(f"{member.name}: Cannot open: {problem}")
    except tarfile.TarError:
        said.append("This does not look like a tar archive")
    return said


def _unpack(disk: Disk, path: str, archive: object, member: object) -> None:
    import tarfile

    assert isinstance(archive, tarfile.TarFile)
    assert isinstance(member, tarfile.TarInfo)
    missing, parent = [], posixpath.dirname(path)
    while not disk.is_folder(parent):
        missing.append(parent)
        parent = posixpath.dirname(parent)
    for each in reversed(missing):
        disk.make_folder(each)
    if member.isdir():
        if not disk.is_folder(path):
            disk.make_folder(path)
        return
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        raise DiskError("Operation not permitted")
    disk.write(path, content.read())
