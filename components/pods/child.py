"""The first process of a container, and its one child.

The first process (PID 1) is sent the signals and inherits every orphan. The work is done by a child, so that a crash of
it, whatever it is, is seen from outside.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from types import FrameType

import psutil

from components.processes.guardian import PR_SET_CHILD_SUBREAPER, kill_descendants
from components.processes.stopping import STOPPING

FORWARDED = (signal.SIGTERM, signal.SIGINT)


class FirstProcess:
    """Runs one command, which receives every signal that comes while it lives."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self.received: set[signal.Signals] = set()
        """The signals that have come so far."""

    def run(self, command: Sequence[str]) -> int:
        """The exit code of the command once it has ended, 128 plus a signal's number where one ended it. What it leaves
        behind is ended."""
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # PID 1 is one anyway
        with self._signals():
            if STOPPING.requested:
                self.received.add(signal.SIGTERM)
            self._child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
            for number in self.received.copy():  # that came before there was a child
                self._pass_on(number)
            code = self._reap_until_exit(self._child)
        kill_descendants(psutil.Process())
        return 128 - code if code < 0 else code

    @staticmethod
    def _reap_until_exit(child: subprocess.Popen[bytes]) -> int:
        while True:
            pid, status = os.wait()
            if pid == child.pid:
                child.returncode = os.waitstatus_to_exitcode(status)
                return child.returncode

    def _pass_on(self, number: signal.Signals) -> None:
        if self._child is not None and self._child.returncode is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(self._child.pid).send_signal(number)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        def come(number: int, _: FrameType | None) -> None:
            self.received.add(signal.Signals(number))
            self._pass_on(signal.Signals(number))

        before = {number: signal.signal(number, come) for number in FORWARDED}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
