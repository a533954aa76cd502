"""Runs one command and ends it, with everything that it started, when the run that started it is gone.

``python guardian.py GRACE command|group COMMAND...`` needs nothing else of this project. The run holds the other end of
the standard input. It may die of anything, a SIGKILL included; then the input ends, or the guardian has another parent.
What the command started in sessions of its own stays below the guardian, which is a subreaper (Linux). Exits with the
command's own code, 128 plus the number of the signal that ended it, as a shell does.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

import psutil

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
POLL = 0.1
"""Seconds between two looks at the command and at the run."""
LEFT = 1.0
"""Seconds that what the command has left has in any case."""


def guard(command: Sequence[str], grace: float, *, group: bool) -> int:
    """Run ``command`` until it ends or is no longer wanted; returns the exit code. ``group``: see `end_all`."""
    libc, run = ctypes.CDLL(None, use_errno=True), os.getppid()
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    received: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda got, _frame: received.append(got))
    try:
        # This process has one thread, so code between fork and exec is safe.
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            close_fds=False,  # the run has left open what the command shall inherit
            preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0),
        )
    except OSError as error:
        print(f"cannot start {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    _close_inherited()  # the other end has to notice when the command closes what it inherited
    while child.poll() is None and not received and os.getppid() == run and not _run_closed_stdin():
        pass
    end_all(child, grace, group=group)
    code = child.wait()
    return 128 - code if code < 0 else code


def _close_inherited() -> None:
    """Close what is open but the standard streams; to try all possible numbers can take minutes."""
    for name in os.listdir("/dev/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # that of the listing itself
                os.close(int(name))


def _run_closed_stdin() -> bool:
    """Whether the run has closed its end of the standard input; looks for `POLL` seconds."""
    readable, _, _ = select.select([0], [], [], POLL)
    return bool(readable) and not os.read(0, 1)


def end_all(command: subprocess.Popen[bytes], grace: float, *, group: bool) -> None:
    """End the command and all its descendants, those that are orphaned meanwhile included: politely, within ``grace``
    seconds, and then for good.

    The command receives SIGTERM first, for it knows best in which order to end what it has started; then what is left.
    With ``group`` its whole process group receives it at once, and nothing else.
    """
    until = time.monotonic() + grace
    _signal(psutil.Process(), signal.SIGCONT)  # one that is stopped could not die of a polite signal
    if group:
        os.killpg(0, signal.SIGTERM)  # this process, which is in it, takes note of the signal and goes on
    else:
        command.terminate()  # does nothing where it has ended
    with contextlib.suppress(subprocess.TimeoutExpired):
        command.wait(grace)
    signalled = _living(psutil.Process()) if group else _signal(psutil.Process(), signal.SIGTERM)
    psutil.wait_procs(signalled, timeout=max(LEFT, until - time.monotonic()))
    kill_descendants(psutil.Process())


def kill_descendants(process: psutil.Process) -> None:
    """Kill all descendants of a process."""
    while left := _signal(process, signal.SIGKILL):
        psutil.wait_procs(left, timeout=1)


def _living(above: psutil.Process) -> list[psutil.Process]:
    return [process for process in above.children(recursive=True) if not _ended(process)]


def _signal(above: psutil.Process, number: signal.Signals) -> list[psutil.Process]:
    living = _living(above)
    for process in living:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)
    return living


def _ended(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


if __name__ == "__main__":
    sys.exit(guard(sys.argv[3:], float(sys.argv[1]), group=sys.argv[2] == "group"))
