"""The parent's end of a worker process: start it, exchange JSON lines with deadlines, kill it."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from components.errors import EvenkeelError

WORKER = (sys.executable, "-P", "-m", "components.rewards.worker")
STARTUP_SECONDS = 300.0
"""A verifier that loads a model on a busy machine takes a minute; one that dies is noticed at once."""
BLOCK = 1 << 16


class WorkerProcess:
    """A live worker in a session of its own, with a stripped environment.

    Raises:
        EvenkeelError: the worker did not get ready.
    """

    def __init__(self, command: Sequence[str], hello: bytes) -> None:
        root = Path(__file__).resolve().parents[2]
        with tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                bufsize=0,
                start_new_session=True,
                env={"PYTHONPATH": str(root), "LC_ALL": "C.UTF-8"},
            )
            assert self._process.stdin and self._process.stdout
            self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
            os.set_blocking(self._in, False)
            self._unread = b""
            _, failure = self.exchange([hello], STARTUP_SECONDS)
            if failure is not None:
                self.kill()
                errors.seek(0)
                said = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
                raise EvenkeelError(
                    f"the verifier's worker process did not start: {said or failure}",
                    where="reward",
                    how="check the settings of that verifier and raise memory_mb of its sandbox",
                )

    def exchange(self, requests: Sequence[bytes], timeout: float) -> tuple[list[dict[str, Any]], str | None]:
        """Send all lines, read one reply for each, in order, each within ``timeout`` seconds of the one before.

        Writing and reading are interleaved, so neither side waits for the other with a full pipe. Returns the replies
        and the reason why the next one is missing, or None.
        """
        unsent = memoryview(b"".join(requests))
        replies: list[dict[str, Any]] = []
        deadline = time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            selector.register(self._out, selectors.EVENT_READ)
            selector.register(self._in, selectors.EVENT_WRITE)
            while len(replies) < len(requests):
                ready = {key.fd for key, _ in selector.select(max(0.0, deadline - time.monotonic()))}
                if not ready:
                    return replies, f"timeout: no verdict within {timeout:g} s"
                if self._in in ready:
                    unsent = self._send(unsent)
                    if not unsent:
                        selector.unregister(self._in)
                if self._out in ready:
                    lines = self._receive()
                    if lines is None:
                        return replies, self._death()
                    if lines:
                        deadline = time.monotonic() + timeout
                    replies += [json.loads(line) for line in lines]
        return replies, None

    def kill(self) -> None:
        """End the worker and everything that it started."""
        assert self._process.stdin and self._process.stdout
        with contextlib.suppress(ProcessLookupError):  # it may have ended by itself
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._in, unsent[:BLOCK]) :]
        except BlockingIOError:
            return unsent
        except BrokenPipeError:
            return unsent[:0]  # it is dead; reading tells after which reply

    def _receive(self) -> list[bytes] | None:
        """The complete lines that have arrived, or None at the end of the stream."""
        data = os.read(self._out, BLOCK)
        if not data:
            return None
        *lines, self._unread = (self._unread + data).split(b"\n")
        return lines

    def _death(self) -> str:
        code = self._process.wait()
        return f"crash: the verifier's process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"
