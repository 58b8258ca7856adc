"""``pods/log``: what `kubectl logs` shows of a simulated pod. Choice of the container and errors as upstream's; the text is made up.

A simulated container writes a line when it starts and one when it ends. What stands in the pod's annotation
``kubemini.dev/log`` (or ``kubemini.dev/log.CONTAINER``) is written in between. Mirrors ``LogLocation`` of
``pkg/registry/core/pod`` and the kubelet's texts (1.36).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, FieldError, Invalid, forbidden, invalid
from kubemini.runtime.env import from_stamp

LOG_ANNOTATION: Final = "kubemini.dev/log"


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Options of a log request, as the query gives them; None = not given."""

    container: str = ""
    previous: bool = False
    timestamps: bool = False
    tail_lines: int | None = None
    limit_bytes: int | None = None
    since_seconds: int | None = None
    since_time: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> LogOptions:
        """Return the options of a query. Raise `BadRequest` for a number that is none."""
        return cls(
            container=query.get("container", ""),
            previous=_flag(query.get("previous")),
            timestamps=_flag(query.get("timestamps")),
            tail_lines=_number(query.get("tailLines")),
            limit_bytes=_number(query.get("limitBytes")),
            since_seconds=_number(query.get("sinceSeconds")),
            since_time=query.get("sinceTime", ""),
        )


def _flag(text: str | None) -> bool:
    return text is not None and text.lower() not in {"false", "0"}


def _number(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def log_text(pod: Tree, options: LogOptions, now: float) -> str:
    """Return the log of one container of a pod; nothing for a pod without a node. `now` in Unix seconds. Raise `Invalid`, `BadRequest`."""
    return "".join(Log(pod, options, now).lines)


class Log:
    """The log of one container as a request sees it, to be followed where it still runs. Raise `Invalid`, `BadRequest` for a log that cannot be had."""

    def __init__(self, pod: Tree, options: LogOptions, now: float) -> None:
        name = pod["metadata"]["name"]
        problems = list(_problems(options))
        if problems:
            raise Invalid.of("PodLogOptions", "", name, problems)
        self._options = options
        self._container = chosen_container(pod, options.container)
        self._since = _since(options, now)
        self._room = options.limit_bytes
        self.running = False
        """Whether more may come."""
        self.lines: list[str] = []
        """What is there already, as it is sent."""
        self._written = 0
        self._started = ""
        if not pod["spec"].get("nodeName"):
            return
        state = _state(pod, self._container, previous=options.previous)
        lines = list(_lines(pod, self._container, state))
        self.running = "running" in state
        self._written, self._started = len(lines), _started(state)
        recent = [(stamp, text) for stamp, text in lines if not stamp or from_stamp(stamp) >= self._since]
        if options.tail_lines is not None:
            recent = recent[len(recent) - min(options.tail_lines, len(recent)) :]
        self.lines = self._shown(recent)

    def more(self, pod: Tree) -> list[str]:
        """Return what was written since, from the pod as it is now. Once it returns with `running` false, the log is at its end."""
        try:
            state = _state(pod, self._container, previous=False)
        except BadRequest:
            state = {}
        if state and _started(state) != self._started:
            # Another run of the container: what is followed ended with the run before.
            try:
                state = _state(pod, self._container, previous=True)
            except BadRequest:
                state = {}
        if not state:
            self.running = False
            return []
        self.running = "running" in state
        lines = list(_lines(pod, self._container, state))
        fresh, self._written = lines[self._written :], max(self._written, len(lines))
        return self._shown(fresh)

    def _shown(self, lines: list[tuple[str, str]]) -> list[str]:
        shown = []
        for stamp, line in lines:
            text = f"{stamp} {line}\n" if self._options.timestamps else f"{line}\n"
            if self._room is not None:
                text = text.encode()[: self._room].decode(errors="ignore")
                self._room -= len(text.encode())
                if self._room <= 0:
                    self.running = False
            shown.append(text)
        return [text for text in shown if text]


def _since(options: LogOptions, now: float) -> float:
    if options.since_seconds is not None:
        return now - options.since_seconds
    return from_stamp(options.since_time) if options.since_time else 0.0


def _started(state: Tree) -> str:
    return str((state.get("terminated") or state.get("running") or {}).get("startedAt") or "")


def _problems(options: LogOptions) -> Iterator[FieldError]:
    if options.tail_lines is not None and options.tail_lines < 0:
        yield invalid("tailLines", options.tail_lines, "must be greater than or equal to 0")
    if options.limit_bytes is not None and options.limit_bytes < 1:
        yield invalid("limitBytes", options.limit_bytes, "must be greater than 0")
    if options.since_seconds is not None and options.since_time:
        yield forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif options.since_seconds is not None and options.since_seconds < 1:
        yield invalid("sinceSeconds", options.since_seconds, "must be greater than 0")


def chosen_container(pod: Tree, container: str) -> str:
    """Return the container that a request means: the named one, or the only one. Raise `BadRequest`."""
    name, spec = pod["metadata"]["name"], pod["spec"]
    containers, inits, ephemeral = (_names(spec, key) for key in ("containers", "initContainers", "ephemeralContainers"))
    if container:
        if container not in (*containers, *inits, *ephemeral):
            raise BadRequest(f"container {container} is not valid for pod {name}")
        return container
    if len(containers) == 1:
        return containers[0]
    if not containers:
        raise BadRequest(f"a container name must be specified for pod {name}")
    text = f"a container name must be specified for pod {name}, choose one of: [{' '.join(containers)}]"
    for what, others in (("init containers", inits), ("ephemeral containers", ephemeral)):
        if others:
            text += f" or one of the {what}: [{' '.join(others)}]"
    raise BadRequest(text)


def _names(spec: Tree, key: str) -> list[str]:
    return [each.get("name", "") for each in spec.get(key) or ()]


def _state(pod: Tree, container: str, *, previous: bool) -> Tree:
    """Return the state (``running`` or ``terminated``) whose log is meant. Raise `BadRequest` where the container has none."""
    name, status = pod["metadata"]["name"], pod.get("status") or {}
    statuses = (each for key in ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses") for each in status.get(key) or ())
    found: Tree = next((each for each in statuses if each.get("name") == container), {})
    state, last = found.get("state") or {}, found.get("lastState") or {}
    if previous:
        if "terminated" not in last:
            raise BadRequest(f'previous terminated container "{container}" in pod "{name}" not found')
        ended: Tree = last
        return ended
    if "running" in state or "terminated" in state:
        shown: Tree = state
        return shown
    if "terminated" in last:
        crashed: Tree = last
        return crashed
    if found:
        reason = (state.get("waiting") or {}).get("reason") or "ContainerCreating"
        raise BadRequest(f'container "{container}" in pod "{name}" is waiting to start: {reason}')
    if status.get("phase") in {"Running", "Succeeded", "Failed"}:
        # A status written from outside need not tell of containers.
        return {"running": {"startedAt": status.get("startTime") or pod["metadata"]["creationTimestamp"]}}
    raise BadRequest(f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating')


def _lines(pod: Tree, container: str, state: Tree) -> Iterator[tuple[str, str]]:
    """Yield time and text of each line."""
    ended: Tree | None = state.get("terminated")
    started = (ended if ended is not None else state["running"] or {}).get("startedAt") or ""
    yield started, f"{container}: started on {pod['spec']['nodeName']}"
    annotations: Tree = pod["metadata"].get("annotations") or {}
    written: str = annotations.get(f"{LOG_ANNOTATION}.{container}") or annotations.get(LOG_ANNOTATION) or ""
    for line in written.splitlines():
        yield started, line
    if ended is not None:
        yield ended.get("finishedAt") or started, f"{container}: exited with code {ended.get('exitCode', 0)}"
