"""One child process of the run, which never outlives it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from components.files import os_errors
from components.processes.guardian import kill_descendants
from components.processes.ranked import without_rank

GRACE = 10.0
"""Seconds between asking a process to end and killing it."""
TAIL = 20
"""Lines of a log that an error shows."""
READ = 64 * 1024
POLL = 0.02
"""Seconds between two looks whether a process has ended."""
GUARDIAN = Path(__file__).with_name("guardian.py")


class Child:
    """A command under a guardian, its output appended to ``log``. It is started at once.

    It receives SIGTERM before the processes that it has started: it may need them to end cleanly.

    Args:
        name: what people call it, as in ``rollout-0``.
        env: set over ``base``.
        base: the environment otherwise; None: this process's own.
        grace: seconds between asking it to end and killing it.
        group: its process group receives SIGTERM with it, and what left that group receives none.
        keep: descriptors that the command inherits.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        base: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        grace: float = GRACE,
        group: bool = False,
        keep: Sequence[int] = (),
    ) -> None:
        self.name, self.log, self._grace = name, log, grace
        with os_errors("write", log):
            log.parent.mkdir(parents=True, exist_ok=True)
            output = log.open("ab")
        with output:
            self._guardian = subprocess.Popen(
                [sys.executable, "-P", str(GUARDIAN), str(grace), "group" if group else "command", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**without_rank(os.environ if base is None else base), **(env or {})},
                cwd=cwd,
                pass_fds=keep,
                start_new_session=True,  # a Ctrl-C in the terminal is the run's to deal with
            )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Of the guardian; the command is its only child."""
        return self._guardian.pid

    @property
    def exit_code(self) -> int | None:
        """None while it runs; 128 plus a signal's number where one ended it."""
        if self._guardian.returncode is None and self._guardian_was_killed():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)  # no other process can have this number until the next line
        code = self._guardian.poll()
        return 128 - code if code is not None and code < 0 else code

    @property
    def alive(self) -> bool:
        return self.exit_code is None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, once it has ended.

        Raises:
            TimeoutExpired: it has not ended within ``timeout`` seconds.
        """
        began = time.monotonic()
        while (code := self.exit_code) is None:
            if timeout is not None and time.monotonic() - began > timeout:
                raise subprocess.TimeoutExpired(self.name, timeout)
            time.sleep(POLL)
        return code

    def stop(self) -> None:
        """End the command and all that it started; returns when they are gone. One that has ended stays as it is.

        An exception meanwhile, such as a second Ctrl-C, ends the time of grace: what is left is killed. Where the
        guardian itself was killed, what left its process group is not found any more.
        """
        if self.alive:
            self._guardian.terminate()  # as well as the end of its input, which a fork of this process may hold open
        if self._guardian.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._guardian.stdin.close()
        give_up = time.monotonic() + self._grace + GRACE
        try:
            while self.alive and time.monotonic() < give_up:
                time.sleep(POLL)
        finally:
            if self.alive:
                with contextlib.suppress(psutil.NoSuchProcess):
                    kill_descendants(psutil.Process(self.pid))
                self._guardian.kill()
                self._guardian.wait()

    def _guardian_was_killed(self) -> bool:
        """Whether a signal ended the guardian, which is not reaped by looking."""
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return found is not None and found.si_code in (os.CLD_KILLED, os.CLD_DUMPED)

    def ending(self) -> str:
        """How it ended and what it last said, for an error."""
        code = self.exit_code
        if code is None:
            how = "is running"
        elif code > 128:
            how = f"was ended by {_signal_name(code - 128)}"
        else:
            how = f"ended with exit code {code}"
        return f"{self.name} {how}; the end of {self.log}:\n{self.tail()}"

    def tail(self, lines: int = TAIL) -> str:
        """The last lines of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - READ))
                text = file.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(f"  {line}" for line in text.splitlines()[-lines:])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
