"""Pods that could not be scheduled: what wakes them, and how long they back off.

A pod sleeps until something happened that may cure what refused it (upstream's queueing hints). It backs off (1 s doubling to 10 s since the last attempt) only while other
pods are waiting in line: an idle scheduler takes pods out of back-off early, as upstream does since 1.33.

Pods that ask for the same (`group`) have the same fate: when a pod leaves a node, only the first of a group is tried, and the next one when that one has been
placed. So a backlog of 10,000 equal pods costs one attempt per event.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

BACKOFF_BASE, BACKOFF_LIMIT = 1.0, 10.0

NODE, POD_GONE, POD_CAME, STORAGE, DEVICES, GROUP = "node", "pod gone", "pod came", "storage", "devices", "group"
"""What can happen: a node came or changed, a placed pod left, a pod was placed or its labels changed, and changes of volumes, devices and pod groups."""

HINTS: Mapping[str, tuple[str, ...]] = {
    "NodeUnschedulable": (NODE,),
    "NodeName": (NODE,),
    "TaintToleration": (NODE,),
    "NodeAffinity": (NODE,),
    "NodePorts": (NODE, POD_GONE),
    "NodeResourcesFit": (NODE, POD_GONE),
    "VolumeRestrictions": (POD_GONE, STORAGE),
    "NodeVolumeLimits": (NODE, POD_GONE, STORAGE),
    "VolumeBinding": (NODE, STORAGE),
    "VolumeZone": (NODE, STORAGE),
    "PodTopologySpread": (NODE, POD_GONE, POD_CAME),
    "InterPodAffinity": (NODE, POD_GONE, POD_CAME),
    "DynamicResources": (NODE, DEVICES),
    "GangScheduling": (GROUP,),
    "TopologyPlacement": (NODE, POD_GONE, GROUP),
}
"""What may cure a plugin's refusal. A plugin that is not listed is cured by anything."""
ANYTHING = (NODE, POD_GONE, POD_CAME, STORAGE, DEVICES, GROUP)


def events_of(plugins: Iterable[str]) -> tuple[str, ...]:
    """Return what may cure the refusals of some plugins; a node at least, as there may be none yet."""
    return tuple(dict.fromkeys(event for plugin in plugins for event in HINTS.get(plugin, ANYTHING))) or (NODE,)


@dataclass(slots=True)
class Attempt:
    """The last failed attempt of a pod."""

    at: float
    count: int
    priority: int
    group: Hashable
    events: tuple[str, ...]
    number: int
    """Orders attempts of equal priority."""

    def ready_in(self, now: float) -> float:
        """Return the seconds of back-off that are left."""
        return max(self.at + min(BACKOFF_BASE * 2.0 ** min(self.count - 1, 10), BACKOFF_LIMIT) - now, 0.0)


class Waiting:
    """The unschedulable pods. `retry(key, seconds, priority)` puts one back in line; `busy()` tells whether others stand there."""

    def __init__(self, retry: Callable[[str, float, int], None], busy: Callable[[], bool]) -> None:
        self._retry = retry
        self._busy = busy
        self._attempts: dict[str, Attempt] = {}
        self._asleep: dict[str, dict[str, None]] = {event: {} for event in ANYTHING}
        """Event → sleeping keys."""
        self._groups: dict[Hashable, dict[str, None]] = {}
        """Group → its sleeping keys."""
        self._open: dict[Hashable, tuple[str, str]] = {}
        """Groups one of which is being tried for all: the event that woke it, and its key."""
        self._number = 0

    def failed(self, key: str, now: float, priority: int, group: Hashable, events: tuple[str, ...]) -> None:
        """Note a failed attempt: the pod sleeps until one of `events` happens."""
        before = self._attempts.get(key)
        self._rouse(key)
        self._number += 1
        self._attempts[key] = Attempt(now, before.count + 1 if before is not None else 1, priority, group, events, self._number)
        self._groups.setdefault(group, {})[key] = None
        if group in self._open and self._open[group][1] == key:
            del self._open[group]
        for event in events:
            self._asleep[event][key] = None

    def _rouse(self, key: str) -> Attempt | None:
        """Take a key out of the sleepers; its attempt stays known for its back-off."""
        attempt = self._attempts.get(key)
        if attempt is None:
            return None
        for event in attempt.events:
            self._asleep[event].pop(key, None)
        group = self._groups.get(attempt.group)
        if group is not None:
            group.pop(key, None)
            if not group:
                del self._groups[attempt.group]
        return attempt

    def done(self, key: str, now: float) -> None:
        """Forget a pod that was placed or is gone; the next of its group may try in its place."""
        attempt = self._rouse(key)
        if attempt is None:
            return
        del self._attempts[key]
        tried = self._open.get(attempt.group)
        if tried is not None and tried[1] == key:
            del self._open[attempt.group]
            if attempt.group in self._groups:
                self._wake_first(attempt.group, tried[0], now)

    def asleep(self, key: str) -> bool:
        """Tell whether a pod waits to be woken."""
        attempt = self._attempts.get(key)
        return attempt is not None and key in self._groups.get(attempt.group, ())

    def wake(self, key: str, now: float, *, busy: bool | None = None) -> None:
        """Let one pod be tried again. `busy` is what `busy()` told before others were woken with it."""
        if self.asleep(key) and (attempt := self._rouse(key)) is not None:
            held = self._busy() if busy is None else busy
            self._retry(key, attempt.ready_in(now) if held else 0.0, attempt.priority)

    def happened(self, event: str, now: float) -> None:
        """Wake whom it may help: all for what is rare, the first of each group where pods come and go."""
        sleepers = self._asleep[event]
        if not sleepers:
            return
        busy = self._busy()
        if event not in (POD_GONE, POD_CAME):
            for key in list(sleepers):
                self.wake(key, now, busy=busy)
            return
        for group in dict.fromkeys(self._attempts[key].group for key in sleepers):
            if group not in self._open:
                self._wake_first(group, event, now, busy=busy)

    def _wake_first(self, group: Hashable, event: str, now: float, *, busy: bool | None = None) -> None:
        candidates = [key for key in self._groups[group] if event in self._attempts[key].events]
        if candidates:
            first = min(candidates, key=lambda key: (-self._attempts[key].priority, self._attempts[key].number))
            self._open[group] = (event, first)
            self.wake(first, now, busy=busy)
