"""Progress of a stage, for the person who waits.

Run by hand a stage draws its own bar. Run inside a flow (``EVENKEEL_PROGRESS`` names a file) it appends JSON lines to
that file instead, and the flow draws one picture of all stages; the same in plain words is the stage's log.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

PROGRESS_VARIABLE = "EVENKEEL_PROGRESS"


class Progress(Protocol):
    """What a stage may report."""

    def advance(self, done: int, note: str = "") -> None:
        """``done`` of the announced total are finished; ``note`` is a short live line (rich markup is not parsed)."""


class _FileProgress:
    def __init__(self, path: Path, stage: str, total: int) -> None:
        self._path, self._stage, self._total = path, stage, total
        self.advance(0)

    def advance(self, done: int, note: str = "") -> None:
        event: dict[str, Any] = {"stage": self._stage, "done": done, "total": self._total, "note": note}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")
        print(f"{self._stage} {done}/{self._total}  {note}".rstrip(), flush=True)


LINE = re.compile(r"(?P<stage>[a-z]+) (?P<done>\d+)/(?P<total>\d+)(?:  (?P<note>.*))?")
"""What a stage inside a flow prints."""


def relayed(line: str, stage: str) -> bool:
    """Take a line of the log of a stage that runs elsewhere; whether it tells of progress, which is then reported here.

    By hand it is printed, and inside a flow it is written to the flow's file as well.
    """
    found = LINE.fullmatch(line)
    if found is None or found["stage"] != stage:
        return False
    target = os.environ.get(PROGRESS_VARIABLE)
    if target:
        event = {"stage": stage, "done": int(found["done"]), "total": int(found["total"]), "note": found["note"] or ""}
        with Path(target).open("a", encoding="utf-8") as file:
            file.write(json.dumps(event) + "\n")
    print(line, flush=True)
    return True


def remarked(stage: str, text: str) -> None:
    """Tell what becomes of a stage that runs elsewhere and has nothing to count yet: where it is, what it waits for."""
    print(text, file=sys.stderr, flush=True)
    if target := os.environ.get(PROGRESS_VARIABLE):
        with Path(target).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"stage": stage, "remark": text}) + "\n")


class _BarProgress:
    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task

    def advance(self, done: int, note: str = "") -> None:
        self._bar.update(self._task, completed=done, note=note)


@contextmanager
def progress(stage: str, total: int) -> Iterator[Progress]:
    """Report the progress of ``stage`` towards ``total`` units of work."""
    target = os.environ.get(PROGRESS_VARIABLE)
    if target:
        yield _FileProgress(Path(target), stage, total)
        return
    from rich.console import Console, RenderableType
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Noted(RichProgress):
        """The bar with the note in a line of its own: beside it a terminal of 80 columns has no room for both."""

        def get_renderables(self) -> Iterator[RenderableType]:
            yield from super().get_renderables()
            yield from (Text(task.fields["note"], no_wrap=True, overflow="ellipsis") for task in self.tasks)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Noted(*columns, console=Console(stderr=True)) as bar:
        yield _BarProgress(bar, bar.add_task(stage, total=total, note=""))
