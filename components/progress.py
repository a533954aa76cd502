"""Progress of a stage, for the person who waits.

A stage reports when it advances. While it does not, a thread says every few seconds what the process is doing
(`components.working`), so that nothing looks stuck: not inside one batch, nor while a model is loaded.

Run by hand on a terminal a stage draws its own bar; without a terminal it prints lines. Run inside a flow
(``EVENKEEL_PROGRESS`` names a file) it appends JSON lines to that file, and the flow draws one picture of all stages;
the same as plain text is the stage's log.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from components.printing import message, printable
from components.working import clock, described, present

PROGRESS_VARIABLE = "EVENKEEL_PROGRESS"
INTERVAL = 2.0
"""Seconds without a report after which a stage states what it is doing."""
FIRST = 1.0
"""The same before the first report."""
RELAYED = 3.5
"""The same after a report that came from a stage elsewhere: the next one is likely to come from there, too."""


class Progress(Protocol):
    """What a stage may report."""

    def advance(self, done: int, note: str = "") -> None:
        """``done`` of the announced total are finished; ``note`` is a short live line (rich markup is not parsed)."""


LINE = re.compile(r"(?P<stage>[a-z]+)(?: (?P<done>\d+)/(?P<total>\d+)(?:  (?P<note>.*?))?)?(?: \| (?P<work>[^|]+))?")
"""What a stage inside a flow prints."""


@dataclass(frozen=True, slots=True)
class Report:
    """How far a stage is: ``done`` of ``total`` (0 where it has not announced any), a note, and its present work."""

    stage: str
    done: int = 0
    total: int = 0
    note: str = ""
    work: str = ""

    @classmethod
    def parse(cls, line: str) -> Report | None:
        """The report behind a line of a stage's log; None for any other line."""
        found = LINE.fullmatch(line)
        if found is None or (found["done"] is None and found["work"] is None):
            return None
        note, work = found["note"] or "", found["work"] or ""
        return cls(found["stage"], int(found["done"] or 0), int(found["total"] or 0), note, work)

    @property
    def line(self) -> str:
        """For the log, e.g. ``triage 12/32 | sampling 14,300 of at most 51,200 tokens, 1,240/s, 0:31 left``."""
        amount = f" {self.done}/{self.total}" if self.total else ""
        note = f"  {self.note}" if self.note and self.total else ""
        return f"{self.stage}{amount}{note}" + (f" | {self.work}" if self.work else "")

    @property
    def event(self) -> dict[str, Any]:
        """For the file of a flow."""
        event = {"stage": self.stage, "done": self.done, "total": self.total, "note": self.note}
        return {**event, "work": self.work} if self.work else event


Show = Callable[[Report], None]
"""Shows a report; where it names no work, with the `present` work of this process."""


class Reporter:
    """Reports of one stage, in order. `tick` repeats the last one with the present work where it is due."""

    def __init__(self, stage: str, show: Show, now: Callable[[], float] = time.monotonic) -> None:
        self._show, self._now = show, now
        self._report = Report(stage)
        self._one_at_a_time = threading.Lock()
        self._changed = now()
        self._due = self._changed + FIRST

    @property
    def stage(self) -> str:
        return self._report.stage

    def begin(self, total: int) -> None:
        """Announce ``total`` units of work."""
        self._take(Report(self.stage, total=total))

    def advance(self, done: int, note: str = "") -> None:
        """As `Progress.advance`."""
        self._take(replace(self._report, done=done, note=note))

    def relay(self, report: Report) -> None:
        """Report what the stage, which runs elsewhere, has reported there."""
        self._take(report, RELAYED)

    def tick(self) -> None:
        """Say what the process is doing, if nothing was reported for some time."""
        with self._one_at_a_time:
            now = self._now()
            if now >= self._due:
                work = "" if present() else f"working, {clock(now - self._changed)}"
                self._show(replace(self._report, work=work))
                self._due = now + INTERVAL

    @property
    def wait(self) -> float:
        """Seconds until the next `tick` that may say something."""
        return max(INTERVAL / 50, self._due - self._now())

    def _take(self, report: Report, patience: float | None = None) -> None:
        with self._one_at_a_time:
            self._report, self._changed = replace(report, work=""), self._now()
            self._show(report)
            self._due = self._now() + (INTERVAL if patience is None else patience)


_current: Reporter | None = None
"""Of the stage that this process runs."""


@contextmanager
def reporting(stage: str) -> Iterator[Reporter]:
    """The block is ``stage``. Until its end a thread ticks; inside, the same again is the same reporter."""
    global _current
    if _current is not None and _current.stage == stage:
        yield _current
        return
    before = _current
    with _shown(stage) as show:
        _current = reporter = Reporter(stage, show)
        over = threading.Event()

        def tick() -> None:
            while not over.wait(reporter.wait):
                reporter.tick()

        ticker = threading.Thread(target=tick, name="progress", daemon=True)
        ticker.start()
        try:
            yield reporter
        finally:
            _current = before
            over.set()
            ticker.join()


@contextmanager
def progress(stage: str, total: int) -> Iterator[Progress]:
    """Report the progress of ``stage`` towards ``total`` units of work."""
    with reporting(stage) as reporter:
        reporter.begin(total)
        yield reporter


def relayed(line: str, stage: str) -> bool:
    """Report again what a line of the log of a stage that runs elsewhere says of its progress; False if it is none."""
    report = Report.parse(line)
    if report is None or report.stage != stage:
        return False
    if _current is not None and _current.stage == stage:
        _current.relay(report)
    else:
        _write(report)
    return True


def remarked(stage: str, text: str) -> None:
    """Report the state of a stage that runs elsewhere and has nothing to count yet: where it is, what it waits for."""
    print(message(text), file=sys.stderr, flush=True)
    _append({"stage": stage, "remark": text})


def _write(report: Report) -> None:
    """To the log, and to the file of a flow where there is one."""
    report = _with_work(report)
    _append(report.event)
    print(printable(report.line), flush=True)


def _append(event: dict[str, Any]) -> None:
    if target := os.environ.get(PROGRESS_VARIABLE):
        with Path(target).open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")


def _with_work(report: Report) -> Report:
    return report if report.work else replace(report, work=described())


@contextmanager
def _shown(stage: str) -> Iterator[Show]:
    """Where the reports of a stage go."""
    if os.environ.get(PROGRESS_VARIABLE):
        yield _write
    elif not _on_a_terminal():
        yield lambda report: print(printable(_with_work(report).line), file=sys.stderr, flush=True)
    else:
        with _bar(stage) as show:
            yield show


def _on_a_terminal() -> bool:
    return sys.stderr.isatty()


@contextmanager
def _bar(stage: str) -> Iterator[Show]:
    """A bar with the note and the present work below it, each in a line of its own: next to it a terminal of 80 columns
    has no room for them. One that never had a total leaves nothing behind."""
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Noted(RichProgress):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            for task in self.tasks:
                for text in filter(None, (task.fields["note"], task.fields["work"] or described())):
                    yield Text(printable(text), no_wrap=True, overflow="ellipsis")

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Noted(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(stage, total=None, note="", work="")

        def show(report: Report) -> None:
            bar.update(task, total=report.total or None, completed=report.done, note=report.note, work=report.work)

        try:
            yield show
        finally:
            bar.live.transient = bar.tasks[0].total is None
