"""Forks a child for each item, from a process that has everything loaded and has never seen a prompt."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import tempfile
import time
from io import FileIO
from pathlib import Path
from typing import NoReturn

from components.rewards.code.child import FAILED, READY, Limits, run
from components.rewards.privileges import drop_capabilities, hide, installation, read_only_beneath
from components.rewards.seccomp import this_machine

ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Numpy starts its threads when it is imported, and there can be none."""
MAX_RESULT_BYTES = 1 << 20
_LENGTH = struct.Struct("<I")


class Template:
    """The verifier's end of it.

    Raises:
        RuntimeError: this machine has no fence for untrusted code, or the template could not be confined.
        OSError: no process, pipe or temporary folder could be made.
    """

    def __init__(self, limits: Limits) -> None:
        this_machine()
        requests, replies = os.pipe(), os.pipe()
        self._requests, self._replies = requests[1], replies[0]
        try:
            self.pid = os.fork()
        except OSError:
            for handle in (*requests, *replies):
                os.close(handle)
            raise
        if self.pid == 0:
            _serve(requests[0], replies[1], limits)
        os.close(requests[0])
        os.close(replies[1])
        problem = _receive(self._replies)
        if problem != b"":
            self.close()
            raise RuntimeError(f"the template process was not confined: {(problem or b'it has ended').decode()}")

    def run(self, source: str, tests: list[str]) -> list[str]:
        """The lines that a child reported in the time it had.

        Raises:
            RuntimeError: the template has ended, or the child could not be confined and ran nothing.
        """
        _send(self._requests, source.encode("utf-8", "replace"))
        _send(self._requests, ascii(tests).encode())
        reply = _receive(self._replies)
        if reply is None:
            raise RuntimeError("the template process has ended")
        if not reply.startswith(READY):
            reason = reply.removeprefix(FAILED).decode("ascii", "replace")
            raise RuntimeError(f"the code was not run: {reason or 'its process was not confined'}")
        return reply.removeprefix(READY).decode("ascii", "replace").splitlines()

    def close(self) -> None:
        """End it, whether it still lives or not."""
        os.close(self._requests)
        os.close(self._replies)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _keep_only(*handles: int) -> None:
    """Close what the verifier's process has open: its protocol is nothing to play with, and its death must be seen."""
    null = os.open(os.devnull, os.O_RDWR)
    for handle in range(3):
        os.dup2(null, handle)
    begin = 3
    for handle in sorted(handles):
        os.closerange(begin, handle)
        begin = handle + 1
    os.closerange(begin, max(256, begin))


def _serve(requests: int, replies: int, limits: Limits) -> NoReturn:
    try:
        try:
            _keep_only(requests, replies)
            _confine()
        except Exception as error:
            _send(replies, f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace"))
        else:
            _send(replies, b"")
            while (source := _receive(requests)) is not None:
                _send(replies, _one(source, requests, limits))
    finally:
        os._exit(0)


def _confine() -> None:
    """Give up, for itself and all of its children, what neither needs."""
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    readable = [os.open(path, os.O_PATH) for path in (Path(), *installation())]
    os.rmdir(folder)  # an empty place that nothing can be put into, with nothing to clean up
    os.environ.clear()
    for name in ONE_THREAD:
        os.putenv(name, "1")  # for the C libraries; `os.environ` stays empty
    hide()
    read_only_beneath(readable)
    for handle in readable:
        os.close(handle)
    drop_capabilities()


def _one(source: bytes, requests: int, limits: Limits) -> bytes:
    """One child. Its tests are read after it was forked, so that they are nowhere in its memory."""
    results, tests = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(results[0])
        os.close(tests[1])
        run(source.decode(), limits, results[1], tests[0])
    os.close(results[1])
    os.close(tests[0])
    try:
        with open(tests[1], "wb", buffering=0) as unread:
            return _watch(results[0], unread, _receive(requests) or b"", time.monotonic() + limits.seconds)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(results[0])


def _watch(results: int, tests: FileIO, unsent: bytes, deadline: float) -> bytes:
    """Hand over the tests and collect results until the child is done or the time is up."""
    os.set_blocking(tests.fileno(), False)
    found, poll = b"", select.poll()
    poll.register(results, select.POLLIN)
    poll.register(tests, select.POLLOUT)
    while (left := deadline - time.monotonic()) > 0 and len(found) < MAX_RESULT_BYTES:
        for handle, _ in poll.poll(1000 * left):
            if handle == results:
                block = os.read(results, 1 << 16)
                if not block:
                    return found
                found += block
                continue
            try:
                unsent = unsent[tests.write(unsent) or 0 :]
            except BrokenPipeError:
                unsent = b""
            if not unsent:
                poll.unregister(tests)
                tests.close()
    return found


def _send(handle: int, data: bytes) -> None:
    data = _LENGTH.pack(len(data)) + data
    while data:
        data = data[os.write(handle, data) :]


def _receive(handle: int) -> bytes | None:
    head = _exactly(handle, _LENGTH.size)
    return None if head is None else _exactly(handle, _LENGTH.unpack(head)[0])


def _exactly(handle: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        block = os.read(handle, size - len(data))
        if not block:
            return None
        data += block
    return data
