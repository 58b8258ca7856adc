"""A small shell for simulated containers: enough to look around, and honest about what it cannot do.

It knows simple commands joined by ``;``, ``&&``, ``||`` and newlines, quotes, ``$NAME`` and ``${NAME}``. Pipes, redirections and substitutions are refused
with a message; a program that is not simulated is not found, as in an image that lacks it.
"""

from __future__ import annotations

import posixpath
import re
from asyncio import StreamReader
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from kubemini.machinery.duration import seconds as parse_duration
from kubemini.server.exec.archives import Misused, ordered, packed, received, unpacked
from kubemini.server.exec.container import NAMESERVER, Inside
from kubemini.server.exec.disk import Disk, DiskError
from kubemini.server.exec.syntax import NotUnderstood, steps

Write = Callable[[bytes], Awaitable[None]]
Lookup = Callable[[str, str], tuple[str, Sequence[str]]]
"""Answers a name as a pod of a namespace asks for it: its full name and its addresses, none where it does not resolve."""

NOT_FOUND: Final = 127
SYNTAX: Final = 2
SHELLS: Final = ("sh", "bash", "ash", "dash")
_ASSIGNMENT: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PIPE: Final = 1 << 15
"""How much of an archive is sent at once."""
_PROMPT: Final = b"/ # "


class NotExecutable(Exception):
    """The program that was to be started does not exist in the container."""


class Leave(Exception):
    """``exit`` was called; the code is the argument."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Shell:
    """Runs commands inside one container. `out` and `err` write to the client, `stdin` is what it sends (None = nothing)."""

    def __init__(
        self,
        inside: Inside,
        disk: Disk,
        *,
        out: Write,
        err: Write,
        stdin: StreamReader | None,
        now: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        lookup: Lookup,
    ) -> None:
        self._inside = inside
        self._disk = disk
        self._out = out
        self._err = err
        self._stdin = stdin
        self._now = now
        self._sleep = sleep
        self._lookup = lookup
        self._variables = inside.environment()
        self._folder = inside.working_directory
        self._last = 0

    async def start(self, argv: Sequence[str], *, terminal: bool = False) -> int:
        """Run one program as exec does; return its exit code. Raise `NotExecutable`."""
        name = posixpath.basename(argv[0])
        if name not in SHELLS and name not in _COMMANDS:
            raise NotExecutable(argv[0])
        try:
            return await self._program(name, list(argv[1:]), terminal=terminal)
        except Leave as leave:
            return leave.code

    # ------------------------------------------------------------------ the language

    async def _program(self, name: str, arguments: list[str], *, terminal: bool = False) -> int:
        if name in SHELLS:
            return await self._shell(arguments, terminal=terminal)
        command = _COMMANDS.get(name)
        if command is None:
            await self._err(f"sh: {name}: not found\n".encode())
            return NOT_FOUND
        return await command(self, arguments)

    async def _shell(self, arguments: list[str], *, terminal: bool) -> int:
        flags = [each for each in arguments if each.startswith("-")]
        words = [each for each in arguments if not each.startswith("-")]
        if any("c" in flag for flag in flags):
            return await self.script(words[0]) if words else SYNTAX
        if words:
            await self._err(f"sh: can't open '{words[0]}': No such file or directory\n".encode())
            return NOT_FOUND
        while True:
            if terminal:
                await self._out(_PROMPT)
            line = await self._stdin.readline() if self._stdin is not None else b""
            if not line:
                return self._last
            await self.script(line.decode(errors="replace"))

    async def script(self, text: str) -> int:
        """Run a script; return the exit code of its last command. ``exit`` raises `Leave`."""
        try:
            for step in list(steps(text)):
                if (step.joint == "&&" and self._last) or (step.joint == "||" and not self._last):
                    continue
                variables = {**self._variables, "?": str(self._last)}
                await self._simple([each for word in step.words if (each := word.text(variables)) is not None])
        except NotUnderstood as problem:
            await self._err(f"sh: syntax error: {problem}\n".encode())
            self._last = SYNTAX
        return self._last

    async def _simple(self, words: list[str]) -> None:
        while words and (assigned := _ASSIGNMENT.fullmatch(words[0])):
            self._variables[assigned[1]] = assigned[2]
            del words[0]
        if words:
            self._last = await self._program(posixpath.basename(words[0]), words[1:])

    # ------------------------------------------------------------------ the commands

    async def _echo(self, words: list[str]) -> int:
        newline = not (words and words[0] == "-n")
        await self._out((" ".join(words if newline else words[1:]) + ("\n" if newline else "")).encode())
        return 0

    async def _env(self, words: list[str]) -> int:
        if words:
            values = [self._variables[name] for name in words if name in self._variables]
            await self._out("".join(f"{value}\n" for value in values).encode())
            return 0 if len(values) == len(words) else 1
        await self._out("".join(f"{name}={value}\n" for name, value in self._variables.items()).encode())
        return 0

    async def _export(self, words: list[str]) -> int:
        for word in words:
            name, _, value = word.partition("=")
            self._variables[name] = value
        return 0

    async def _hostname(self, words: list[str]) -> int:
        inside = self._inside
        if "-i" in words or "-I" in words:
            text = inside.field("status.podIP")
        elif "-f" in words and inside.pod["spec"].get("subdomain"):
            text = f"{inside.hostname}.{inside.pod['spec']['subdomain']}.{inside.namespace}.svc.cluster.local"
        else:
            text = inside.hostname
        await self._out(f"{text}\n".encode())
        return 0

    async def _nslookup(self, words: list[str]) -> int:
        names = [word for word in words if not word.startswith("-")]
        if not names:
            await self._err(b"Usage: nslookup HOST\n")
            return 1
        full, addresses = self._lookup(names[0], self._inside.namespace)
        await self._out(f"Server:\t\t{NAMESERVER}\nAddress:\t{NAMESERVER}#53\n\n".encode())
        if not addresses:
            await self._out(f"** server can't find {names[0]}: NXDOMAIN\n\n".encode())
            return 1
        await self._out("".join(f"Name:\t{full}\nAddress: {address}\n" for address in addresses).encode() + b"\n")
        return 0

    async def _getent(self, words: list[str]) -> int:
        if len(words) < 2 or words[0] not in ("hosts", "ahosts"):
            await self._err(f"getent: unknown database: {' '.join(words[:1])}\n".encode())
            return 1
        code = 0
        for name in words[1:]:
            full, addresses = self._lookup(name, self._inside.namespace)
            await self._out("".join(f"{address:<16}{full}\n" for address in addresses).encode())
            code = code if addresses else 2
        return code

    async def _cat(self, words: list[str]) -> int:
        if not words or words == ["-"]:
            while self._stdin is not None and (data := await self._stdin.read(1 << 16)):
                await self._out(data)
            return 0
        files, code = self._disk.files(), 0
        for word in words:
            path = self._path(word)
            if path in files:
                await self._out(files[path])
            else:
                why = "Is a directory" if self._disk.is_folder(path) else "No such file or directory"
                code = await self._fails("cat", word, why)
        return code

    async def _ls(self, words: list[str]) -> int:
        files, code = [*self._disk.files(), *self._disk.folders()], 0
        for word in [each for each in words if not each.startswith("-")] or ["."]:
            path = self._path(word)
            head = "/" if path == "/" else f"{path}/"
            names = sorted({each.removeprefix(head).partition("/")[0] for each in files if each.startswith(head)})
            if path in files and not self._disk.is_folder(path):
                names = [word]
            elif not names and not self._disk.is_folder(path):
                code = await self._fails("ls", word, "No such file or directory")
            await self._out("".join(f"{name}\n" for name in names).encode())
        return code

    async def _test(self, words: list[str]) -> int:
        return int(not self._holds([word for word in words if word != "]"]))

    def _holds(self, words: list[str]) -> bool:
        if words[:1] == ["!"]:
            return not self._holds(words[1:])
        if len(words) == 3 and words[1] in ("=", "==", "!="):
            return (words[0] == words[2]) == (words[1] != "!=")
        if len(words) == 2 and words[0] in ("-n", "-z"):
            return bool(words[1]) == (words[0] == "-n")
        if len(words) != 2:
            return bool(words and words[0])
        path = self._path(words[1])
        found = self._disk.files().get(path)
        folder = self._disk.is_folder(path)
        return {"-d": folder, "-f": found is not None, "-e": folder or found is not None, "-s": bool(found)}.get(words[0], False)

    async def _mkdir(self, words: list[str]) -> int:
        code, parents = 0, "-p" in words
        for word in words:
            path = self._path(word)
            if word.startswith("-") or (parents and self._disk.is_folder(path)):
                continue
            wanted = [path]
            while parents and not self._disk.is_folder(posixpath.dirname(wanted[0])):
                wanted.insert(0, posixpath.dirname(wanted[0]))
            try:
                for each in wanted:
                    self._disk.make_folder(each)
            except DiskError as problem:
                code = await self._fails("mkdir", f"can't create directory '{word}'", str(problem))
        return code

    async def _rm(self, words: list[str]) -> int:
        flags = "".join(word for word in words if word.startswith("-"))
        code = 0
        for word in [each for each in words if not each.startswith("-")]:
            path = self._path(word)
            if self._disk.is_folder(path) and "r" not in flags and "R" not in flags:
                code = await self._fails("rm", f"'{word}'", "is a directory")
                continue
            try:
                self._disk.remove(path)
            except DiskError as problem:
                if "f" not in flags or str(problem) != "No such file or directory":
                    code = await self._fails("rm", f"can't remove '{word}'", str(problem))
        return code

    async def _tee(self, words: list[str]) -> int:
        data = await self._stdin.read() if self._stdin is not None else b""
        await self._out(data)
        code = 0
        for word in [each for each in words if not each.startswith("-")]:
            path = self._path(word)
            try:
                before = self._disk.files().get(path, b"") if "-a" in words else b""
                self._disk.write(path, before + data)
            except DiskError as problem:
                code = await self._fails("tee", word, str(problem))
        return code

    async def _tar(self, words: list[str]) -> int:
        try:
            order = ordered(words)
        except Misused as problem:
            await self._err(f"tar: {problem}\n".encode())
            return 2
        folder = self._path(order.folder or ".")
        if not self._disk.is_folder(folder):
            await self._err(f"tar: {order.folder}: Cannot open: No such file or directory\ntar: Error is not recoverable: exiting now\n".encode())
            return 2
        if order.mode == "c":
            data, said = packed(self._disk, folder, order.paths)
            failed = any("Cannot stat" in text for text in said)
        else:
            data = b""
            try:
                said = unpacked(self._disk, folder, await received(self._stdin) if self._stdin is not None else b"")
            except DiskError as problem:
                said = [f"write error: {problem}"]
            failed = bool(said)
        said += ["Exiting with failure status due to previous errors"] if failed else []
        # First what is to be said: who reads an archive goes at its end
        await self._err("".join(f"tar: {text}\n" for text in said).encode())
        for start in range(0, len(data), _PIPE):
            await self._out(data[start : start + _PIPE])
        return 2 if failed else 0

    async def _fails(self, program: str, subject: str, why: str) -> int:
        await self._err(f"{program}: {subject}: {why}\n".encode())
        return 1

    async def _cd(self, words: list[str]) -> int:
        self._folder = self._path(words[0] if words else self._variables["HOME"])
        return 0

    async def _pwd(self, _: list[str]) -> int:
        await self._out(f"{self._folder}\n".encode())
        return 0

    async def _date(self, words: list[str]) -> int:
        moment = datetime.fromtimestamp(self._now(), UTC)
        form = next((word[1:] for word in words if word.startswith("+")), "%a %b %e %H:%M:%S UTC %Y")
        await self._out(f"{moment.strftime(form.replace('%s', str(int(self._now()))))}\n".encode())
        return 0

    async def _sleep_command(self, words: list[str]) -> int:
        for word in words:
            try:
                await self._sleep(float(word) if word.replace(".", "", 1).isdigit() else parse_duration(word))
            except ValueError:
                await self._err(f"sleep: invalid number '{word}'\n".encode())
                return 1
        return 0

    async def _uname(self, words: list[str]) -> int:
        flags = "".join(words)
        text = (
            f"Linux {self._inside.hostname} 6.8.0 x86_64 GNU/Linux"
            if "a" in flags
            else {"-n": self._inside.hostname, "-m": "x86_64"}.get(flags, "Linux")
        )
        await self._out(f"{text}\n".encode())
        return 0

    async def _whoami(self, _: list[str]) -> int:
        await self._out(b"root\n")
        return 0

    async def _id(self, _: list[str]) -> int:
        await self._out(b"uid=0(root) gid=0(root)\n")
        return 0

    async def _nproc(self, _: list[str]) -> int:
        cores = self._inside.resource({"resource": "limits.cpu"})
        await self._out(f"{cores}\n".encode())
        return 0

    async def _exit(self, words: list[str]) -> int:
        raise Leave(int(words[0]) & 0xFF if words and words[0].isdigit() else self._last)

    async def _true(self, _: list[str]) -> int:
        return 0

    async def _false(self, _: list[str]) -> int:
        return 1

    def _path(self, word: str) -> str:
        return posixpath.normpath(posixpath.join(self._folder, word))


_COMMANDS: Final[dict[str, Callable[[Shell, list[str]], Awaitable[int]]]] = {
    name: getattr(Shell, method)
    for name, method in {
        ":": "_true",
        "[": "_test",
        "cat": "_cat",
        "cd": "_cd",
        "date": "_date",
        "echo": "_echo",
        "env": "_env",
        "exit": "_exit",
        "export": "_export",
        "false": "_false",
        "getent": "_getent",
        "hostname": "_hostname",
        "id": "_id",
        "ls": "_ls",
        "mkdir": "_mkdir",
        "nproc": "_nproc",
        "nslookup": "_nslookup",
        "printenv": "_env",
        "pwd": "_pwd",
        "rm": "_rm",
        "sleep": "_sleep_command",
        "tar": "_tar",
        "tee": "_tee",
        "test": "_test",
        "true": "_true",
        "uname": "_uname",
        "whoami": "_whoami",
    }.items()
}
