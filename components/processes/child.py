"""One process beside the run, which never outlives it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from components.files import os_errors

GRACE = 10.0
"""Seconds between asking a process to end and killing it."""
TAIL = 20
"""Lines of a log that an error shows."""
READ = 64 * 1024
GUARDIAN = Path(__file__).with_name("guardian.py")


class Child:
    """A command under a guardian, its output appended to ``log``. It is started at once.

    Args:
        name: what people call it, as in ``rollout-0``.
        env: set over this process's own environment.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        grace: float = GRACE,
    ) -> None:
        self.name, self.log, self._grace = name, log, grace
        with os_errors("write", log):
            log.parent.mkdir(parents=True, exist_ok=True)
            output = log.open("ab")
        with output:
            self._guardian = subprocess.Popen(
                [sys.executable, "-P", str(GUARDIAN), str(grace), *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**os.environ, **(env or {})},
                cwd=cwd,
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
        code = self._guardian.poll()
        return 128 - code if code is not None and code < 0 else code

    @property
    def alive(self) -> bool:
        return self.exit_code is None

    def stop(self) -> None:
        """End the command and all that it started; returns when they are gone. One that has ended stays as it is."""
        if self._guardian.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._guardian.stdin.close()
        try:
            self._guardian.wait(self._grace + GRACE)
        except subprocess.TimeoutExpired:
            self._guardian.kill()  # its children die with it
            self._guardian.wait()

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
