"""``console`` blocks of documents: commands after ``$``, and the output that they should print."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / ".tools" / "bin"
PATIENCE = 60.0
"""Seconds for one command, or for a server in the background to serve."""


class Console:
    """A shell in a scratch folder that looks like the repository, from whose files a command may read."""

    def __init__(self, folder: Path, extra: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.background: list[subprocess.Popen[bytes]] = []
        for entry in ROOT.iterdir():
            if not entry.name.startswith("."):
                (folder / entry.name).symlink_to(entry)
        path = os.pathsep.join((str(Path(sys.executable).parent), str(TOOLS), os.environ["PATH"]))
        fixed = {"PATH": path, "HOME": str(folder), "KUBECONFIG": str(folder / "kubeconfig"), "COLUMNS": "150", "NO_COLOR": "1", "TERM": "dumb"}
        self.env = {**os.environ, **fixed, **(extra or {})}

    def run(self, block: str) -> str:
        """Run a block; return what is wrong with it, "" when all its commands hold."""
        for command, wanted in commands(block):
            wrong = self._start(command[:-1]) if command.endswith(" &") else self._command(command, wanted)
            if wrong:
                return f"$ {command}\n{wrong}"
        return ""

    def close(self) -> None:
        """Stop what is in the background."""
        for process in self.background:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(timeout=PATIENCE)

    def _command(self, command: str, wanted: str) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self.folder,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        if done.returncode:
            return f"ended with status {done.returncode}:\n{done.stdout}"
        if wanted and not matches(wanted, done.stdout):
            return f"should print\n{wanted}\nand printed\n{done.stdout}"
        return ""

    def _start(self, command: str) -> str:
        """Start a command in the background; one that writes a kubeconfig serves when the file is there."""
        log = self.folder / f"background-{len(self.background)}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.background.append(process)
        if not re.match(r"kubemini\s+serve\b", command):
            return ""
        chosen = re.search(r"--kubeconfig[ =](\S+)", command)
        kubeconfig = self.folder / (chosen.group(1) if chosen else "kubeconfig")
        deadline = time.monotonic() + PATIENCE
        while not kubeconfig.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                return f"does not serve:\n{log.read_text()}"
            time.sleep(0.05)
        return ""


def commands(block: str) -> Iterator[tuple[str, str]]:
    r"""Split a block into commands and what each should print. Lines after ``> `` continue a command.

    >>> list(commands("$ echo a\\\n>   b\na b\n$ true"))
    [('echo a\\\n  b', 'a b'), ('true', '')]
    """
    command: list[str] = []
    wanted: list[str] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            if command:
                yield "\n".join(command), "\n".join(wanted).strip()
            command, wanted = [line[2:]], []
        elif line.startswith("> ") and command and not wanted:
            command.append(line[2:])
        else:
            wanted.append(line)
    if command:
        yield "\n".join(command), "\n".join(wanted).strip()


def matches(wanted: str, found: str) -> bool:
    r"""Tell whether an output is as wanted, where ``...`` alone on a line stands for any lines and in a line for any text.

    >>> matches("NAME ...\n...\nend", "NAME  AGE\n1\n2\nend\n")
    True
    >>> matches("NAME ...", "NAME  AGE\nmore")
    False
    """
    pattern = ""
    for line in wanted.strip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:.*\n)*"
        else:
            words = (r"[ \t]+".join(map(re.escape, piece.split())) for piece in re.split(r"\s*\.\.\.\s*", line.strip()))
            pattern += r"[ \t]*" + r".*".join(words) + r"[ \t]*\n"
    return re.fullmatch(pattern, found.strip() + "\n") is not None
