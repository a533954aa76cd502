"""The parent's end of one worker process: start it, send and receive JSON lines without waiting, kill it."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from components.errors import EvenkeelError

WORKER = (sys.executable, "-P", "-m", "components.rewards.worker")
STARTUP_SECONDS = 300.0
"""A verifier that loads a model on a busy machine takes a minute; one that dies is noticed at once."""
GRACE_SECONDS = 2.0
"""How long a process that has closed its end may take to be gone."""
BLOCK = 1 << 16
LINE_BYTES = 1 << 20
"""A verdict is shorter by far."""
MEANING = {signal.SIGPROF: "cpu: no verdict within the processor time of one item"}
"""Deaths that the fence itself brings about."""


class WorkerProcess:
    """A process in a session of its own, with a stripped environment, which answers once it has `started`.

    Args:
        role: whose process it is, for messages; ``where`` and ``how`` say what to do where it does not start.
        env: set over the stripped environment.
    """

    def __init__(
        self,
        command: Sequence[str],
        hello: bytes,
        *,
        role: str = "verifier",
        where: str = "reward",
        how: str = "check the settings of that verifier and raise memory_mb of its sandbox",
        env: Mapping[str, str] | None = None,
    ) -> None:
        root = Path(__file__).resolve().parents[2]
        self._role, self._where, self._how = role, where, how
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, closed by kill
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,
            env={
                "PYTHONPATH": str(root),
                "LC_ALL": "C.UTF-8",
                "OMP_NUM_THREADS": "1",
                "PYTHONHASHSEED": "0",
                **(env or {}),
            },
        )
        assert self._process.stdin and self._process.stdout
        self.input, self.output = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self.input, False)
        self._unread, self._unsent = b"", memoryview(hello)
        self.started = False
        self.pid = self._process.pid
        """Number of the process, and of its group."""

    @property
    def unsent(self) -> bool:
        """There is something left to write."""
        return bool(self._unsent)

    @property
    def endless(self) -> bool:
        """It writes a line that is longer than any verdict."""
        return len(self._unread) > LINE_BYTES

    def failure(self) -> EvenkeelError:
        """Why it has not started; ends it."""
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        said = re.split(r"\n(?=\S)", said)[-1]  # further lines of an error begin with white space
        self.kill()
        return EvenkeelError(
            f"the {self._role}'s worker process did not start: {said or self.exit_description()}",
            where=self._where,
            how=self._how,
        )

    def send(self, lines: Sequence[bytes]) -> None:
        """Queue lines; `flush` writes them."""
        self._unsent = memoryview(bytes(self._unsent) + b"".join(lines))

    def flush(self) -> None:
        """Write as much as the pipe takes."""
        try:
            self._unsent = self._unsent[os.write(self.input, self._unsent[:BLOCK]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._unsent = self._unsent[:0]  # it is dead; `receive` finds out after which reply

    def receive(self) -> list[bytes] | None:
        """The replies that have arrived, or None at the end of the stream.

        Raises:
            EvenkeelError: that, or an endless line, came before the first line, which means that it has started.
        """
        data = os.read(self.output, BLOCK)
        if not data and not self.started:
            raise self.failure()
        if not data:
            return None
        *lines, self._unread = (self._unread + data).split(b"\n")
        if lines and not self.started:
            self.started = True
            return lines[1:]
        if self.endless and not self.started:
            raise self.failure()
        return lines

    def exit_description(self) -> str:
        """Why a process that has closed its end is gone."""
        try:
            code = self._process.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return f"crash: the {self._role}'s process closed its pipe"
        if -code in MEANING:
            return MEANING[signal.Signals(-code)]
        ending = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"crash: the {self._role}'s process ended with {ending}"

    def finish(self, seconds: float) -> bool:
        """Close its input and wait for its end; returns whether it has come."""
        assert self._process.stdin
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.poll() is not None

    def kill(self) -> None:
        """End the worker and everything that it started."""
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself, and left nothing
            os.killpg(self.pid, signal.SIGKILL)
        self._process.stdin.close()
        self._process.stdout.close()
        self._errors.close()
        self._process.wait()


def wait(workers: Sequence[WorkerProcess], seconds: float) -> tuple[set[WorkerProcess], set[WorkerProcess]]:
    """Those that can be read and those that can be written to, as soon as there are any, at most ``seconds`` later."""
    poll = select.poll()
    owners: dict[int, WorkerProcess] = {}
    for worker in workers:
        owners |= {worker.output: worker, worker.input: worker}
        poll.register(worker.output, select.POLLIN)
        if worker.unsent:
            poll.register(worker.input, select.POLLOUT)
    found = [handle for handle, _ in poll.poll(max(0, 1000 * seconds))]
    readable = {owners[handle] for handle in found if owners[handle].output == handle}
    return readable, {owners[handle] for handle in found if owners[handle].input == handle}
