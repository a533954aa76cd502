"""The state of a run's stages, read from its progress file. `flows.display.console` draws it."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
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
        """Apply one line: a change of state (`flows.run.stages`), progress of the running stage, a remark on it, or
        what DVC is doing with it (`flows.run.idle_progress`)."""
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
    """The complete lines that were added to a file since the last look. The file need not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the new events. A stage killed while it wrote leaves half a line, which only the display misses."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                yield json.loads(line)
