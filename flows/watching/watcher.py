"""Shows a stage in the Prefect UI while it works: its progress, and of training the health signals.

A separate thread reads what the stage writes. It starts after `SHOW_AFTER` seconds, sends fewer requests the longer the
stage takes, and a slow server does not delay the run.
"""

from __future__ import annotations

import contextvars
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from prefect.context import FlowRunContext, TaskRunContext

from components.health.summaries.markdown import plain
from components.working import clock
from flows.display.board import ENDED, Board, StageView, Tail
from flows.run.workspace import Workspace
from flows.watching.channel import Artifact, Channel
from flows.watching.signals import SignalTable

SHOW_AFTER = 5.0
"""Seconds after which a stage is shown."""
LEAST, MOST, SHARE = 3.0, 30.0, 1 / 50
"""Seconds between two looks: this share of the time so far, within these bounds. A look costs this process 4 ms of
computing, and the server 40."""
LAST = 2.0
"""Seconds that the last look is waited for."""
SIGNALS = "run-signals"


@contextmanager
def watched(workspace: Workspace, stage: str) -> Iterator[None]:
    """Show the stage that runs inside the block. Use it in the stage's task."""
    flow, task = FlowRunContext.get(), TaskRunContext.get()
    flow_run = flow.flow_run.id if flow and flow.flow_run else None
    watcher = Watcher(workspace, stage, flow_run, task.task_run.id if task else None)
    watcher.start()
    waited = False
    try:
        yield
        waited = True
    except Exception:
        waited = True
        raise
    finally:
        watcher.end(shown=waited)  # a stopped run does not wait for its last update


def pace(elapsed: float) -> float:
    """Seconds until the next request for an artifact of a stage that has worked for ``elapsed`` seconds."""
    return min(MOST, max(LEAST, elapsed * SHARE))


class Watcher:
    """The thread of one stage."""

    def __init__(self, workspace: Workspace, stage: str, flow_run: UUID | None, task_run: UUID | None) -> None:
        self._stage, self._channel = stage, Channel(flow_run, task_run)
        self._board, self._tail = Board.of([stage]), Tail(workspace.progress)
        self._signals = SignalTable(workspace.layout) if stage == "train" else None
        self._progress = Artifact(f"stage-{stage}", "progress")
        self._table = Artifact(SIGNALS, "table")
        self._what = f"of {workspace.run_id}"
        self._over, self._shown = threading.Event(), True
        context = contextvars.copy_context()  # the thread logs as the task does
        self._thread = threading.Thread(target=context.run, args=(self._run,), name=f"watch-{stage}", daemon=True)

    def start(self) -> None:
        """Begin to watch; what the progress file holds already is of earlier runs."""
        for _ in self._tail.read():
            pass
        self._began = time.monotonic()
        self._thread.start()

    def end(self, *, shown: bool) -> None:
        """Show how the stage ended, unless ``shown`` is False or that would delay the run."""
        self._shown = shown
        self._over.set()
        if shown and self._channel.works:
            self._thread.join(LAST)

    def _run(self) -> None:
        if self._over.wait(SHOW_AFTER):
            return
        with self._channel:
            self._look()
            while not self._over.wait(pace(time.monotonic() - self._began)):
                self._look()
            if self._shown:
                self._look()

    def _look(self) -> None:
        for event in self._tail.read():
            if event["stage"] == self._stage:
                self._board.apply(event)
        view = self._board.stages[self._stage]
        note = ", ".join(view.note.split("  "))  # Markdown would run its parts together
        self._channel.show(self._progress, self._line(view, note), self._share(view))
        if self._signals is not None and view.total and self._signals.update():
            standing = f"**{plain(note) or 'training'}**\n\nThe latest steps {self._what}, the newest first."
            self._channel.show(self._table, standing, json.dumps(self._signals.rows(), ensure_ascii=False))

    def _share(self, view: StageView) -> float:
        """Per cent, as Prefect draws it."""
        if view.state == "done":
            return 100.0
        return round(100 * view.done / view.total, 1) if view.total else 0.0

    def _line(self, view: StageView, note: str) -> str:
        elapsed = clock(time.monotonic() - self._began)
        amount = f"{view.done} of {view.total}" if view.total else ""
        state = f"{view.state} in {elapsed}" if view.state in ENDED else f"running for {elapsed}"
        return f"{self._stage} {self._what}: {', '.join(part for part in (state, amount, note, view.work) if part)}"
