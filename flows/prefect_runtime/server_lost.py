"""The Prefect server becomes unreachable during a run that was started by hand: the run continues, and its workspace
holds the outcome."""

from __future__ import annotations

import os
import queue
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx

from components.errors import EvenkeelError, InputError
from flows.run.workspace import Outcome, Workspace
from flows.watching.execution import read

NOTE = (
    "the Prefect server became unreachable: the UI does not show how this run ended; its record and its outcome are "
    "complete"
)


def outcome_on_disk(workspace: Workspace, lost: httpx.HTTPError) -> Outcome:
    """The outcome of this process's run, read from its workspace because the server is unreachable.

    Raises:
        InputError: the server became unreachable before the run ended.
        EvenkeelError: the run failed, for the reason that it carries.
    """
    drop_queued_events()
    last = read(workspace.root)
    mine = last is not None and last.pid == os.getpid() and last.ended is not None
    if last is None or not mine or last.state not in ("candidate", "refused", "failed"):
        raise _unreachable(lost) from lost
    if last.state == "failed":
        raise EvenkeelError(last.reason) from lost
    return Outcome(workspace.run_id, str(workspace.root), last.candidate, last.reason)


def _unreachable(lost: httpx.HTTPError) -> InputError:
    how = "`evenkeel serve` starts it; the same command continues from the last checkpoint"
    return InputError(f"the Prefect server became unreachable ({type(lost).__name__})", how=how)


@contextmanager
def server_needed() -> Iterator[None]:
    """The loss of the server in the block as an error of ours."""
    try:
        yield
    except httpx.HTTPError as lost:
        drop_queued_events()
        raise _unreachable(lost) from lost


def drop_queued_events() -> None:
    """Drop events that wait to be sent: Prefect would retry each for seconds before the process ends."""
    from prefect.events.worker import EventsWorker

    services: Any = EventsWorker
    for worker in list(services._instances.values()):
        if isinstance(worker, EventsWorker):
            with suppress(queue.Empty):
                while True:
                    worker._queue.get_nowait()
