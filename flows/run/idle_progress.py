"""Progress lines about DVC's work while a stage writes none: before it starts, and after it has ended.

DVC hashes what a stage depends on, and later saves outputs to the cache and links them; with a model of gigabytes that
takes minutes. A stage that runs reports by itself (`components.progress`); one that could not for some seconds, such as
while libraries are loaded, is spoken for here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from components.files import append_line, dump_line
from components.status import read_status
from components.working import Work, describe
from flows.run.workspace import Workspace

INTERVAL = 3.5
"""Seconds without a line in the progress file after which one is written here."""
LOOKS = 10
"""Looks at the file in that time."""


@contextmanager
def report_idle(workspace: Workspace, stage: str) -> Iterator[None]:
    """Inside the block a command executes ``stage``; no silence in the progress file lasts longer than `INTERVAL`."""
    over = threading.Event()
    thread = threading.Thread(target=_watch, args=(workspace, stage, over), name=f"silence-{stage}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(workspace: Workspace, stage: str, over: threading.Event) -> None:
    looks, size, reported = 0, _size(workspace), False
    work = Work(_doing(workspace, stage, reported))
    while not over.wait(INTERVAL / LOOKS):
        if (now := _size(workspace)) != size:
            looks, size, reported = 0, now, True
        what, looks = _doing(workspace, stage, reported), looks + 1
        if what != work.what:
            work = Work(what)
        if looks > LOOKS:
            line = {"stage": stage, "work": describe(work, time.monotonic())}
            append_line(workspace.progress, line)
            looks, size = 0, size + len(dump_line(line).encode())


def _doing(workspace: Workspace, stage: str, reported: bool) -> str:
    if read_status(workspace.layout, stage) is not None:
        return "DVC saves the outputs to its cache"
    return "working" if reported else "DVC checks what has changed"


def _size(workspace: Workspace) -> int:
    return workspace.progress.stat().st_size if workspace.progress.exists() else 0
