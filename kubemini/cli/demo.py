"""``kubemini demo``: runs the story under virtual time, then plays what was seen: live in a terminal, or line by line."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from kubemini.demo.story import FLEET, play
from kubemini.demo.timeline import Line, PodTrack, Timeline
from kubemini.sim.cluster import simulate

if TYPE_CHECKING:
    from rich.text import Text

BAR = 48
"""Characters of the longest bar."""
COLORS = {
    "pending": "bright_black",
    "starting": "yellow",
    "running": "cyan",
    "ready": "green",
    "stopping": "magenta",
    "stopped": "bright_black",
    "failed": "red",
    "succeeded": "blue",
}
GLYPHS = {"pending": "·", "starting": "░", "running": "▒", "ready": "█", "stopping": "▓", "stopped": "─", "failed": "✗", "succeeded": "✓"}


def run(*, plain: bool, speed: float, seed: int) -> None:
    """Play the story; without a terminal, line by line and at once."""
    began = time.perf_counter()
    timeline = simulate(play, seed=seed, fleet=FLEET)
    took = time.perf_counter() - began
    if plain or not sys.stdout.isatty():
        for line in timeline.lines:
            print(plain_line(line))
        print()
        for row in summary(timeline, took):
            print(row)
        return
    _live(timeline, speed)
    _finale(timeline, took)


def plain_line(line: Line) -> str:
    """Return a line of the story as text."""
    if line.style == "plot":
        return f"{line.at:7.1f}s  ── {line.text}"
    return f"{line.at:7.1f}s     {line.who}: {line.text}"


def summary(timeline: Timeline, took: float) -> list[str]:
    """Return the closing words."""
    gangs = sum(1 for line in timeline.lines if "restarts" in line.text and "gang" in line.text)
    return [
        f"{timeline.duration:.0f} s of cluster time in {took:.2f} s: {len(timeline.pods)} pods, {timeline.writes} writes, {gangs} gang restart{'s' if gangs != 1 else ''}.",
        "The same seed gives the same run, byte for byte. Try: kubemini serve --fleet h100-2racks, and kubectl against it.",
    ]


# ----------------------------------------------------------------------------------------------- in a terminal


def _live(timeline: Timeline, speed: float) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    console = Console()

    def screen(now: float) -> Group:
        table = Table(box=None, pad_edge=False, expand=True)
        table.add_column("POD", no_wrap=True)
        table.add_column("NODE", no_wrap=True, style="bright_black")
        table.add_column(f"0 s{' ' * (BAR - 8)}{timeline.duration:4.0f} s", no_wrap=True)
        for track in timeline.pods.values():
            if track.states and track.states[0][0] <= now:
                table.add_row(track.name, track.node, _bar(track, now, timeline.duration))
        told = [line for line in timeline.lines if line.at <= now][-12:]
        log = Text()
        for line in told:
            log.append(plain_line(line) + "\n", style={"plot": "bold", "event": "yellow", "condition": "cyan"}.get(line.style, ""))
        legend = Text("  ").join(Text(f"{GLYPHS[state]} {state}", style=color) for state, color in COLORS.items())
        return Group(Panel(table, title=f"kubemini demo   {now:6.1f} s", title_align="left"), legend, Text(), log)

    with Live(console=console, refresh_per_second=15, screen=False) as live:
        began = time.monotonic()
        while True:
            now = timeline.duration if speed == 0 else min((time.monotonic() - began) * speed, timeline.duration)
            live.update(screen(now))
            if now >= timeline.duration:
                return
            time.sleep(1 / 15)


def _bar(track: PodTrack, now: float, duration: float) -> Text:
    from rich.text import Text

    bar = Text()
    for cell in range(BAR):
        moment = (cell + 0.5) * duration / BAR
        state = ""
        if moment <= now:
            for at, name in track.states:
                if at > moment:
                    break
                state = name
        bar.append(GLYPHS.get(state, " "), style=COLORS.get(state, ""))
    return bar


def _finale(timeline: Timeline, took: float) -> None:
    from rich.console import Console

    for row in summary(timeline, took):
        Console().print(row, highlight=False)
