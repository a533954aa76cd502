"""The state of a run's stages, read from its progress file. `flows.display.console` draws it."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

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
            with contextlib.suppress(ValueError):
                rows.append(json.loads(line))
        return [row for row in rows if isinstance(row, dict)]
