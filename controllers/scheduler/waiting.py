"""Pods that could not be scheduled: what wakes them, and how long they back off.

A pod sleeps until something happened that may cure what refused it (upstream's queueing hints). It backs off (1 s doubling to 10 s since the last attempt) only while other
pods are waiting in line: an idle scheduler takes pods out of back-off early, as upstream does since 1.33.

Pods that ask for the same (`group`) have the same fate: when a pod leaves a node, only the first of a group is tried, and the next one when that one has been
placed. So a backlog of 10,000 equal pods costs one attempt per event. What happens while one is tried for all is kept for the next: the one that tries may be placed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass

BACKOFF_BASE, BACKOFF_LIMIT = 1.0, 10.0

NODE, NODE_GONE, POD_GONE, POD_CAME, STORAGE, DEVICES, GROUP = "node", "node gone", "pod gone", "pod came", "storage", "devices", "group"
"""What can happen: a node came or changed, or went; a placed pod left, or asks for less; a pod was placed, or its labels or those of a namespace changed;
and changes of volumes, devices and pod groups."""

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
    "PodTopologySpread": (NODE, NODE_GONE, POD_GONE, POD_CAME),
    "InterPodAffinity": (NODE, POD_GONE, POD_CAME),
    "DynamicResources": (NODE, DEVICES),
    "GangScheduling": (GROUP,),
    "TopologyPlacement": (NODE, POD_GONE, GROUP),
}
"""What may cure a plugin's refusal. A plugin that is not listed is cured by anything."""
ANYTHING = (NODE, NODE_GONE, POD_GONE, POD_CAME, STORAGE, DEVICES, GROUP)


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
    plugins: tuple[str, ...]
    """What refused it; nothing where that is not told."""
    number: int
    """Orders attempts of equal priority."""

    def ready_in(self, now: float) -> float:
        """Return the seconds of back-off that are left."""
        return max(self.at + min(BACKOFF_BASE * 2.0 ** min(self.count - 1, 10), BACKOFF_LIMIT) - now, 0.0)


@dataclass(slots=True)
class Turn:
    """One pod of a group is tried for all."""

    key: str
    events: dict[str, None]
    """What happened since it was woken, and woke it: the next one is due for the same."""


Entry = tuple[int, int, str]
"""(-priority, number of the attempt, key): the order in which equal pods are tried."""


class Waiting:
    """The unschedulable pods. `retry(key, seconds, priority)` puts one back in line; `busy()` tells whether others stand there.

    An event costs what it wakes: one pod of each group that it may help, or all of them.
    """

    def __init__(self, retry: Callable[[str, float, int], None], busy: Callable[[], bool]) -> None:
        self._retry = retry
        self._busy = busy
        self._attempts: dict[str, Attempt] = {}
        self._sleeping: dict[str, None] = {}
        self._beds: dict[str, dict[Hashable, list[Entry]]] = {event: {} for event in ANYTHING}
        """Event → group → heap of sleepers; entries of pods that sleep no longer are dropped when they are met."""
        self._open: dict[Hashable, Turn] = {}
        """Groups one of which is being tried for all."""
        self._number = 0

    def failed(self, key: str, now: float, priority: int, group: Hashable, events: tuple[str, ...], plugins: tuple[str, ...] = ()) -> None:
        """Note a failed attempt: the pod sleeps until one of `events` happens. One that has left its group (it was nominated meanwhile) speaks for that no longer."""
        before = self._attempts.get(key)
        self._number += 1
        self._attempts[key] = Attempt(now, before.count + 1 if before is not None else 1, priority, group, events, plugins, self._number)
        self._sleeping[key] = None
        turn = self._ended(before.group, key) if before is not None else None
        if before is not None and turn is not None and before.group != group:
            self._next(before.group, turn, now)
        self._lie_down(key, self._attempts[key], events)

    def also(self, key: str, plugins: Iterable[str]) -> None:
        """Let what cures more plugins wake a pod that sleeps."""
        if key in self._sleeping:
            attempt = self._attempts[key]
            more = tuple(event for event in events_of(plugins) if event not in attempt.events)
            attempt.events += more
            if attempt.plugins:
                attempt.plugins += tuple(plugins)
            self._lie_down(key, attempt, more)

    def _lie_down(self, key: str, attempt: Attempt, events: tuple[str, ...]) -> None:
        for event in events:
            bed = self._beds[event].setdefault(attempt.group, [])
            heapq.heappush(bed, (-attempt.priority, attempt.number, key))
            if len(bed) > 2 * len(self._sleeping) + 64:
                bed[:] = sorted(entry for entry in bed if self._valid(entry))

    def _valid(self, entry: Entry) -> bool:
        _, number, key = entry
        attempt = self._attempts.get(key)
        return attempt is not None and attempt.number == number and key in self._sleeping

    def done(self, key: str, now: float) -> None:
        """Forget a pod that was placed or is gone; the next of its group may try in its place."""
        attempt = self._attempts.pop(key, None)
        if attempt is None:
            return
        self._sleeping.pop(key, None)
        turn = self._ended(attempt.group, key)
        if turn is not None:
            self._next(attempt.group, turn, now)

    def _ended(self, group: Hashable, key: str) -> Turn | None:
        """End the turn that a pod has for its group, and return it."""
        turn = self._open.get(group)
        if turn is None or turn.key != key:
            return None
        del self._open[group]
        return turn

    def _next(self, group: Hashable, turn: Turn, now: float) -> None:
        """Give the turn to the next of a group, for all that happened since it began."""
        busy = self._busy()
        events = list(turn.events)
        for position, event in enumerate(events):
            if self._wake_first(group, event, now, busy=busy):
                self._open[group].events |= dict.fromkeys(events[position:])
                return

    def asleep(self, key: str) -> bool:
        """Tell whether a pod waits to be woken."""
        return key in self._sleeping

    def wake(self, key: str, now: float, *, busy: bool | None = None) -> None:
        """Let one pod be tried again. `busy` is what `busy()` told before others were woken with it."""
        if key in self._sleeping:
            del self._sleeping[key]
            attempt = self._attempts[key]
            held = self._busy() if busy is None else busy
            self._retry(key, attempt.ready_in(now) if held else 0.0, attempt.priority)

    def happened(self, event: str, now: float, helps: Callable[[str, tuple[str, ...]], bool] | None = None) -> None:
        """Wake whom it may help: all for what is rare, the first of each group where pods come and go.

        `helps` is asked about each pod, of which it is known what refused it, whether what happened can turn that.
        """
        beds = self._beds[event]
        if not beds:
            return
        busy = self._busy()
        if event not in (POD_GONE, POD_CAME):
            woken, self._beds[event] = self._parted(beds, helps)
            for _, _, key in sorted(woken, key=lambda entry: entry[1]):
                self.wake(key, now, busy=busy)
            return
        for group in list(beds):
            turn = self._open.get(group)
            if turn is None:
                self._wake_first(group, event, now, busy=busy)
            else:
                turn.events[event] = None

    def _parted(
        self, beds: Mapping[Hashable, list[Entry]], helps: Callable[[str, tuple[str, ...]], bool] | None
    ) -> tuple[list[Entry], dict[Hashable, list[Entry]]]:
        """Return those who are to be woken, and the beds of those who sleep on."""
        woken: list[Entry] = []
        left: dict[Hashable, list[Entry]] = {}
        for group, bed in beds.items():
            for entry in bed:
                if not self._valid(entry):
                    continue
                plugins = self._attempts[entry[2]].plugins
                if helps is None or not plugins or helps(entry[2], plugins):
                    woken.append(entry)
                else:
                    left.setdefault(group, []).append(entry)
        for bed in left.values():
            heapq.heapify(bed)
        return woken, left

    def _wake_first(self, group: Hashable, event: str, now: float, *, busy: bool) -> bool:
        """Wake the first of a group that an event may help, and open its turn; tell whether there was one."""
        bed = self._beds[event].get(group)
        woken = False
        while bed and not woken:
            entry = heapq.heappop(bed)
            if self._valid(entry):
                self._open[group] = Turn(entry[2], {event: None})
                self.wake(entry[2], now, busy=busy)
                woken = True
        if not bed:
            self._beds[event].pop(group, None)
        return woken
