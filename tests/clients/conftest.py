"""Other people's clients against a served cluster: the server, the binaries, a namespace for each test."""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.clients.binaries import Unavailable, binary

PATIENCE = 60
"""Seconds for one command, or for a server to serve."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running `kubemini serve`."""

    kubeconfig: Path
    log: Path


@dataclass(frozen=True, slots=True)
class Command:
    """A client binary, bound to a server by its kubeconfig, and to the namespace of the test."""

    path: Path
    kubeconfig: Path
    namespace: str
    home: Path
    env: dict[str, str] = field(default_factory=dict)

    def __call__(self, *args: str, stdin: str | None = None, status: int = 0) -> str:
        """Run it; return what it prints. Fail the test where it ends with another status than `status`."""
        done = self.run(*args, stdin=stdin)
        assert done.returncode == status, f"{self.path.name} {' '.join(args)}: status {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def json(self, *args: str) -> Any:
        """Run it with ``-o json``; return what it prints as a tree."""
        return json.loads(self(*args, "-o", "json"))

    def run(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run it; return both streams and the status."""
        return subprocess.run(
            [self.path, "--kubeconfig", self.kubeconfig, "--namespace", self.namespace, *args],
            input=stdin or "",
            env={**os.environ, "HOME": str(self.home), "HELM_CACHE_HOME": str(self.home / "helm"), **self.env},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )


@contextmanager
def serving(folder: Path, *flags: str) -> Generator[Server]:
    """Serve a cluster on a free port until the block ends, which must stop it at once and with status 0."""
    server = Server(folder / "kubeconfig", folder / "serve.log")
    kubemini = str(Path(sys.executable).with_name("kubemini"))
    command = [kubemini, "serve", "--port", "0", "--kubeconfig", str(server.kubeconfig), *flags]
    with server.log.open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + PATIENCE
        while not server.kubeconfig.exists():  # written as soon as it serves
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"kubemini does not serve:\n{server.log.read_text()}")
            time.sleep(0.02)
        yield server
    finally:
        process.terminate()
        try:
            status = process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert status == 0, f"kubemini serve ended with status {status}:\n{server.log.read_text()}"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A served cluster with four plain nodes whose pods run for ever; tests share it and keep to their namespace."""
    with serving(tmp_path_factory.mktemp("server"), "--fleet", "cpu", "--pods", "forever") as running:
        yield running


@pytest.fixture(scope="session")
def binaries() -> dict[str, Path]:
    """The real kubectl and helm; skip with the reason where they are not to be had."""
    try:
        return {name: binary(name) for name in ("kubectl", "helm")}
    except Unavailable as reason:
        pytest.skip(str(reason))


_numbers = itertools.count(1)


@pytest.fixture
def namespace(server: Server, binaries: dict[str, Path], tmp_path: Path) -> str:
    """A namespace of the test's own."""
    name = f"test-{next(_numbers)}"
    Command(binaries["kubectl"], server.kubeconfig, "default", tmp_path)("create", "namespace", name)
    return name


@pytest.fixture
def kubectl(server: Server, binaries: dict[str, Path], namespace: str, tmp_path: Path) -> Command:
    """The real kubectl in the test's namespace."""
    return Command(binaries["kubectl"], server.kubeconfig, namespace, tmp_path)


@pytest.fixture
def helm(server: Server, binaries: dict[str, Path], namespace: str, tmp_path: Path) -> Command:
    """The real helm in the test's namespace."""
    return Command(binaries["helm"], server.kubeconfig, namespace, tmp_path)
