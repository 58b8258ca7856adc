"""The command line itself."""

import subprocess
import sys

import pytest

import kubemini


@pytest.mark.parametrize("word", ["--version", "version"])
def test_version(word: str) -> None:
    """The version is told in both ways that people try."""
    done = subprocess.run([sys.executable, "-m", "kubemini", word], capture_output=True, text=True, check=True)
    assert done.stdout == f"kubemini {kubemini.__version__}\n"


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["serve", "--pods", "sometimes"], "pods: unknown 'sometimes'"),
        (["serve", "--fleet", "nope"], "no fleet is called 'nope'"),
        (["serve", "--feature-gates", "RestartJob"], "must be NAME=true or NAME=false"),
        (["serve", "--kueue-config", "missing.yaml"], "--kueue-config missing.yaml: cannot be read: No such file or directory"),
        (["serve", "--host", "nowhere.invalid"], "name an address of this machine"),
        (["serve", "--kubeconfig", "/proc/nowhere/config"], "--kubeconfig /proc/nowhere/config: cannot be written"),
        (["bench", "--only", "("], "is no regular expression"),
    ],
)
def test_wrong_use(arguments: list[str], words: str) -> None:
    """What cannot be had is told in one line that names the option, with status 2, and without a traceback."""
    where = ["--port", "0", "--controllers", "namespaces"] if arguments[0] == "serve" else []
    if where and "--kubeconfig" not in arguments:
        where += ["--kubeconfig", "/dev/null"]
    done = subprocess.run([sys.executable, "-m", "kubemini", *arguments, *where], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("kubemini: error: ")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
