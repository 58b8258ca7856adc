"""What a pod does when it runs: a `Program`.

It comes, in this order, from a function given by a test (`Settings.program`), from ``kubemini.dev/*`` annotations on the pod, from its
commands when the cluster runs with ``--pods programs``, and else it runs for ever.

| annotation | meaning |
| --- | --- |
| ``kubemini.dev/hold`` | ``pending``: bound, but its containers never start; ``running``: running, but never ready |
| ``kubemini.dev/start-after`` | duration from binding to running (``2s``, ``1m30s``) |
| ``kubemini.dev/ready-after`` | duration from running to ready |
| ``kubemini.dev/run-for`` | duration from running to the exit of every container |
| ``kubemini.dev/exit-code`` | exit code at that exit (default 0); without ``run-for`` it exits at once |
| ``kubemini.dev/init-for`` | how long each init container runs (default: no time at all) |
| ``kubemini.dev/init-exit-code`` | exit code of each init container (default 0) |
| ``kubemini.dev/fail-at`` | attempt numbers that fail with code 1 instead, e.g. ``0`` or ``0,2``; the attempt is the container's restart count or the JobSet restart attempt |
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kubemini.api.trees import Tree
from kubemini.machinery.duration import asked
from kubemini.machinery.memo import by_identity

PREFIX = "kubemini.dev/"
DEFAULT_RUN_SECONDS = 5.0
"""How long a run-to-completion pod works with ``--pods programs`` when nothing says otherwise."""


class BadAnnotation(ValueError):
    """A ``kubemini.dev`` annotation that cannot be read; the message names it and the mend."""


@dataclass(frozen=True, slots=True)
class Program:
    """`run_for` None = until it is stopped. Times in seconds."""

    hold: str = ""
    start_after: float | None = None
    ready_after: float = 0.0
    run_for: float | None = None
    exit_code: int = 0
    fail_at: tuple[int, ...] = ()
    init_for: float = 0.0
    init_exit_code: int = 0
    init_steps: tuple[tuple[float, int], ...] = ()
    """What each init container does by its commands: (seconds, exit code)."""

    def init(self, index: int) -> tuple[float, int]:
        """Return what an init container does: (seconds, exit code)."""
        return self.init_steps[index] if self.init_steps else (self.init_for, self.init_exit_code)

    @property
    def quick_start(self) -> bool:
        """Whether init containers take no time and succeed: then a pod starts in one step."""
        return not self.init_for and not self.init_exit_code and not any(seconds or code for seconds, code in self.init_steps)

    def code_of(self, attempt: int) -> int:
        """Return the exit code of the n-th attempt (from 0)."""
        return (self.exit_code or 1) if attempt in self.fail_at else (0 if self.fail_at and not self.exit_code else self.exit_code)


FOREVER = Program()


def program_of(pod: Tree, mode: str) -> Program:
    """Return what a pod does by its annotations, and by its commands where `mode` is ``programs``. Raise `BadAnnotation`."""
    annotations = pod["metadata"].get("annotations")
    base = _by_commands(pod["spec"]) if mode == "programs" else FOREVER
    # One search through all keys together is much faster than asking each, and nearly always the last word
    if not annotations or PREFIX not in "\n".join(annotations):
        return base
    program = base
    if (hold := annotations.get(PREFIX + "hold")) is not None:
        if hold not in ("pending", "running"):
            raise BadAnnotation(f'kubemini.dev/hold: "{hold}" must be "pending" or "running"')
        program = replace(program, hold=hold)
    if (after := _seconds(annotations, "start-after")) is not None:
        program = replace(program, start_after=after)
    if (after := _seconds(annotations, "ready-after")) is not None:
        program = replace(program, ready_after=after)
    if (code := annotations.get(PREFIX + "exit-code")) is not None:
        if not code.isdigit() or int(code) > 255:
            raise BadAnnotation(f'kubemini.dev/exit-code: "{code}" must be a number from 0 to 255')
        program = replace(program, exit_code=int(code), run_for=program.run_for if program.run_for is not None else 0.0)
    if (attempts := annotations.get(PREFIX + "fail-at")) is not None:
        if not re.fullmatch(r"\d+(,\d+)*", attempts):
            raise BadAnnotation(f'kubemini.dev/fail-at: "{attempts}" must be attempt numbers separated by commas, from 0')
        failing = tuple(int(each) for each in attempts.split(","))
        program = replace(program, fail_at=failing, run_for=program.run_for if program.run_for is not None else DEFAULT_RUN_SECONDS)
    if (run_for := _seconds(annotations, "run-for")) is not None:
        program = replace(program, run_for=run_for)
    if (init_for := _seconds(annotations, "init-for")) is not None:
        program = replace(program, init_for=init_for, init_steps=())
    if (code := annotations.get(PREFIX + "init-exit-code")) is not None:
        if not code.isdigit() or int(code) > 255:
            raise BadAnnotation(f'kubemini.dev/init-exit-code: "{code}" must be a number from 0 to 255')
        program = replace(program, init_exit_code=int(code), init_steps=())
    return program


def _seconds(annotations: Tree, name: str) -> float | None:
    text = annotations.get(PREFIX + name)
    if text is None:
        return None
    try:
        return asked(PREFIX + name, text)
    except ValueError as wrong:
        raise BadAnnotation(str(wrong)) from None


def attempt_of(pod: Tree, restarts: int) -> int:
    """Return which attempt a pod is: the JobSet's restart attempt plus the restarts of its containers."""
    labels = pod["metadata"].get("labels") or {}
    try:
        return int(labels.get("jobset.sigs.k8s.io/restart-attempt", "0")) + restarts
    except ValueError:
        return restarts


# ----------------------------------------------------------------------------------------------- commands


def _by_commands(spec: Tree) -> Program:
    finishing = spec.get("restartPolicy", "Always") in ("Never", "OnFailure")
    program = _command_program(spec["containers"])
    if program is None:
        program = Program(run_for=DEFAULT_RUN_SECONDS) if finishing else FOREVER
    inits = spec.get("initContainers")
    return replace(program, init_steps=_read_inits(inits)) if inits else program


@by_identity()
def _read_inits(containers: list[Tree]) -> tuple[tuple[float, int], ...]:
    found = [_container_program(container) or FOREVER for container in containers]
    return tuple((program.run_for or 0.0, program.exit_code) for program in found)


_UNKNOWN = Program(hold="unknown")


@by_identity()
def _read(containers: list[Tree]) -> Program:
    found = [_container_program(container) for container in containers]
    known = [program for program in found if program is not None]
    if not known or len(known) < len(found):
        return _UNKNOWN
    longest = max(known, key=lambda program: float("inf") if program.run_for is None else program.run_for)
    failing = next((program for program in known if program.exit_code), longest)
    return replace(longest, exit_code=failing.exit_code)


def _command_program(containers: list[Tree]) -> Program | None:
    program = _read(containers)
    return None if program is _UNKNOWN else program


def _container_program(container: Tree) -> Program | None:
    words = [*(container.get("command") or ()), *(container.get("args") or ())]
    if not words:
        return None
    name = words[0].rsplit("/", 1)[-1]
    if name in ("sh", "bash", "ash") and len(words) >= 3 and words[1] in ("-c", "-ec", "-lc", "-xc"):
        return _script(words[2])
    return _script(" ".join(words))


_STATEMENT = re.compile(r"[;\n]|&&")


def _script(text: str) -> Program | None:
    """Read a script of sleep, exit, true, false and echo; None for any other."""
    seconds, code = 0.0, 0
    for statement in filter(None, (part.strip() for part in _STATEMENT.split(text))):
        word, _, rest = statement.partition(" ")
        rest = rest.strip()
        if word == "sleep":
            if rest in ("infinity", "inf"):
                return FOREVER
            matched = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd]?)", rest)
            if matched is None:
                return None
            seconds += float(matched[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[matched[2]]
        elif word == "exit":
            if rest and not rest.isdigit():
                return None
            return Program(run_for=seconds, exit_code=int(rest or code))
        elif word == "false":
            code = 1
        elif word in ("true", ":", "echo", "printf", "set", "date", "hostname"):
            code = 0
        else:
            return None
    return Program(run_for=seconds, exit_code=code)
