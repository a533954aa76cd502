"""The picture of a run in the terminal: a line per stage, the running one with its bar and its live health line.

On anything but a terminal (a log file, a CI system) it is plain text: a line per finished stage, and every few seconds
how far the running one is. Between stages it shows what the flow itself is doing.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from components.printing import message, printable
from components.working import clock, described
from flows.display.output import OutputLost, say
from flows.run.workspace import Workspace

ENDED = ("done", "cached", "failed", "refused")


@dataclass
class StageView:
    """One stage as it stands now; ``total`` 0 while it has not said how much there is to do. ``note`` is its latest
    line, ``work`` what it is doing inside one unit."""

    name: str
    state: str = "waiting"
    done: int = 0
    total: int = 0
    note: str = ""
    work: str = ""
    seconds: float = 0.0
    since: float = field(default=0.0, repr=False)

    @property
    def elapsed(self) -> float:
        """Seconds so far, or in all."""
        return time.monotonic() - self.since if self.state == "running" else self.seconds


@dataclass
class Board:
    """The stages of a run, in order."""

    stages: dict[str, StageView]

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        """A board on which these stages wait."""
        return cls({name: StageView(name) for name in names})

    @property
    def running(self) -> StageView | None:
        return next((view for view in self.stages.values() if view.state == "running"), None)

    def apply(self, event: Mapping[str, Any]) -> None:
        """Apply one line: a change of state, or what DVC is doing with a stage (`flows.run.stages`); progress of the
        running stage, or a remark on it."""
        view = self.stages[event["stage"]]
        if "state" in event:
            view.state, view.seconds = event["state"], event["seconds"]
            if view.state == "running":
                view.since, view.done, view.total, view.note, view.work = time.monotonic(), 0, 0, "", ""
        elif "remark" in event:
            view.note = "; ".join(event["remark"].splitlines()[:2])
        else:
            view.work = event.get("work", "")
            if "done" in event:
                view.done, view.total = event["done"], event["total"]
                view.note = event["note"] or view.note


class Tail:
    """The objects of a JSON-lines file that another process appends to, each given once. The file need not exist yet.

    A file that was replaced or truncated, as a resumed run does with its log, is given again from its beginning.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: tuple[int, int] | None = None
        self._offset = 0
        self.replaced = False
        """Whether the latest look gave what is to replace all that was given before."""

    def read(self) -> list[dict[str, Any]]:
        """What was added since the last look. Half a line, as a killed writer leaves it, is left out."""
        self.replaced = False
        try:
            with self._path.open("rb") as file:
                found = os.fstat(file.fileno())
                identity = (found.st_dev, found.st_ino)
                self.replaced = identity != self._file or found.st_size < self._offset
                self._file, self._offset = identity, 0 if self.replaced else self._offset
                file.seek(self._offset)
                text = file.read()
        except OSError:
            return []  # not there yet, or not any more
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        rows = []
        for line in complete.splitlines():
            with suppress(ValueError):
                rows.append(json.loads(line))
        return [row for row in rows if isinstance(row, dict)]


REFRESH = 0.2
QUIET = 4.0
"""Seconds between two notes where there is no terminal."""
STYLES = {"running": "cyan", "done": "green", "cached": "blue", "failed": "red", "refused": "yellow", "waiting": "dim"}


class Display:
    """Shows stages while they run, ``with Display(workspace, console, stages): ...``; only reads the progress file."""

    def __init__(self, workspace: Workspace, console: Console, stages: Iterable[str]) -> None:
        self._tail = Tail(workspace.progress)
        self._board = Board.of(stages)
        self._console = console
        self._live = Live(console=console, get_renderable=lambda: draw(self._board), auto_refresh=False)
        self._printed: dict[str, str] = {}
        self._last_note = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="display", daemon=True)

    def __enter__(self) -> Display:
        if self._console.is_terminal:
            self._live.start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._update()
        if self._console.is_terminal:
            self._live.stop()

    def _watch(self) -> None:
        with suppress(OutputLost):  # the main thread reports it at the end of the run
            while not self._over.wait(REFRESH):
                self._update()

    def _update(self) -> None:
        for event in self._tail.read():
            self._board.apply(event)
            if "remark" in event:
                self._console.print(Text(message(event["remark"])), soft_wrap=True)
            if not self._console.is_terminal:
                self._print_change(self._board.stages[event["stage"]])
        if self._console.is_terminal:
            self._live.refresh()
        else:
            self._print_note()

    def _print_change(self, view: StageView) -> None:
        if view.state in ENDED and self._printed.get(view.name) != view.state:
            self._printed[view.name] = view.state
            self._console.print(f"{view.name:<10} {view.state:<8} {clock(view.elapsed)}", highlight=False)

    def _print_note(self) -> None:
        if time.monotonic() - self._last_note < QUIET:
            return
        self._last_note = time.monotonic()
        if view := self._board.running:
            amount = f"{view.done}/{view.total}" if view.total else "started"
            parts = (f"{view.name:<10} {amount}", clock(view.elapsed), view.note, view.work)
            say(self._console, "  ".join(filter(None, parts)))
        elif work := described():
            say(self._console, work)


def draw(board: Board) -> RenderableType:
    """The whole picture."""
    table = Table.grid(padding=(0, 2))
    for view in board.stages.values():
        total = view.total or 1
        completed = total if view.state in ("done", "cached") else view.done
        share = ProgressBar(total=total, completed=completed, width=28)
        amount = f"{view.done}/{view.total}" if view.total and view.state == "running" else ""
        elapsed = clock(view.elapsed) if view.state != "waiting" else ""
        table.add_row(view.name, Text(view.state, STYLES[view.state]), share, Text(elapsed, "dim"), Text(amount, "dim"))
    running = board.running
    below = (running.note, running.work) if running else (described(), "")
    lines = "\n".join(map(printable, filter(None, below)))
    note = Text(lines, "cyan", overflow="ellipsis", no_wrap=True)
    return Group(Padding(table, (1, 1, 0, 1)), Padding(note, (0, 1, 1, 1)))
