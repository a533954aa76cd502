"""Processes that outlived their run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from flows.cleaning.action import CleanupAction
from flows.host.processes import OWNER_VARIABLE, end, leftovers, mark_of

GRACE = 6.0
"""Seconds that the children of a run that ended in order need to end of themselves: its own Prefect server, say."""


def end_leftovers(project: Path, grace: float = GRACE) -> Iterator[CleanupAction]:
    """End the processes of this project whose run is gone, and was gone some seconds ago as well."""
    seen = set(leftovers(project))
    if not seen:
        return
    time.sleep(grace)
    # Searched again: another run may have started in between, and its processes are not in `seen`.
    left = [process for process in leftovers(project) if process in seen]
    commands = {
        process.pid: (_command(process), mark_of(process, OWNER_VARIABLE).partition(":")[0]) for process in left
    }
    for pid in end(left):
        command, owner = commands.get(pid, ("", ""))
        yield CleanupAction("process", f"{pid} {command}".rstrip(), "ended", f"its run, process {owner}, is gone")


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())[:80]
    except psutil.Error:
        return ""
