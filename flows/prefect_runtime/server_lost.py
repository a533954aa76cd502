"""The Prefect server goes away while a run by hand works: the run goes on, and its workspace says what it came to."""

from __future__ import annotations

import os
import queue
from typing import Any

import httpx

from components.errors import EvenkeelError, InputError
from flows.run.outcome import Outcome
from flows.run.workspace import Workspace
from flows.watching.execution import read

NOTE = "the Prefect server went away: the UI does not show how this run ended; its record and its answer are whole"


def outcome_on_disk(workspace: Workspace, lost: httpx.HTTPError) -> Outcome:
    """What this process's run came to, when the server could not be told.

    Raises:
        InputError: the server went away before the run came to its end.
        EvenkeelError: the run failed, for the reason that it carries.
    """
    drop_queued_events()
    last = read(workspace.root)
    mine = last is not None and last.pid == os.getpid() and last.ended is not None
    if last is None or not mine or last.state not in ("candidate", "refused", "failed"):
        how = "`evenkeel serve` starts it; the same command continues from the last checkpoint"
        raise InputError(f"the Prefect server went away ({type(lost).__name__})", how=how) from lost
    if last.state == "failed":
        raise EvenkeelError(last.reason) from lost
    return Outcome(workspace.run_id, str(workspace.root), last.candidate, last.reason)


def drop_queued_events() -> None:
    """Drop what waits to be told to the server: Prefect would try each event for seconds before the process ends."""
    from prefect.events.worker import EventsWorker

    services: Any = EventsWorker
    for worker in list(services._instances.values()):
        if isinstance(worker, EventsWorker):
            try:
                while True:
                    worker._queue.get_nowait()
            except queue.Empty:
                pass
