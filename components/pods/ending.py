"""How a container ends.

The exit code decides how the run goes on: 2 and 3 end it, 143 starts it again without counting, all else counts. So
the one that is to blame must be seen first. Who has only lost another lingers before it says so.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from pathlib import Path

from components.errors import EXIT_LOST, EvenkeelError
from components.processes.stopping import STOPPING, StopRequested
from components.registry.base import Unavailable
from components.status import StageStatus

LINGER, LOG = "EVENKEEL_LINGER", "EVENKEEL_TERMINATION_LOG"
SECONDS = 30.0
"""Within which whatever ended first is on record."""
DEFAULT_LOG = Path("/dev/termination-log")
ROOM = 4096
"""Bytes of a termination message that Kubernetes keeps."""
CUT = b"... "


def status_of(error: EvenkeelError) -> StageStatus:
    """How a container ends with an error of its own. A store that does not answer may answer the next one."""
    return StageStatus(EXIT_LOST if isinstance(error, Unavailable) else error.exit_code, str(error))


def leave(status: StageStatus) -> int:
    """Write the last words down, linger where it is proper, and return the exit code. A request to stop ends the
    lingering. The words, which `kubectl describe` shows, are a help and no more: where they cannot be written the log
    has it all."""
    path = Path(os.environ.get(LOG) or DEFAULT_LOG)
    try:
        path.write_bytes(termination_message(status))
    except OSError as error:
        print(f"no termination message: {error.strerror}: {path}", file=sys.stderr)
    if status.exit_code == EXIT_LOST:
        with contextlib.suppress(StopRequested), STOPPING.on_signal():
            time.sleep(float(os.environ.get(LINGER) or SECONDS))
    return status.exit_code


def termination_message(status: StageStatus) -> bytes:
    """The message, at most `ROOM` bytes of it: of a long one the end stays, which states what to do."""
    data = status.message.encode()
    if len(data) <= ROOM:
        return data
    return CUT + data[len(CUT) - ROOM :].decode(errors="ignore").encode()
