"""One process that runs the DVC commands of a workspace, started by the first one and again when it has ended."""

from __future__ import annotations

import contextlib
import json
import math
import os
import select
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import TimeoutExpired

from components.files import os_errors
from components.processes import Child
from flows.host.processes import GRACE

CODE = Path(__file__).resolve().parents[2]
"""Where this project's own code is; a workspace may have another version of it."""
POLL = 0.5
"""Seconds between two looks whether the process lives; its answer is taken at once."""
LOADED = b"loaded\n"
"""What it sends before it takes the first command."""
_open: dict[Path, DvcProcess] = {}


class DvcProcess:
    """Runs commands in the DVC repository ``root``, one at a time. It starts at once, and the folder may come later.

    Any exception while one runs (a signal, a cancelled flow, its time) ends the process and all that it started, as
    `flows.host.processes.run` does.
    """

    _socket: socket.socket
    _is_loaded: bool
    _limit: float
    """Seconds that the present command may take."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._child: Child | None = None
        self._start()

    def run(self, arguments: Sequence[str], *, env: Mapping[str, str], log: Path, timeout: float | None = None) -> int:
        """Its exit code; 128 plus a signal's number where one ended the process.

        Raises:
            TimeoutExpired: ``timeout`` seconds were not enough.
        """
        command = {"arguments": list(arguments), "folder": str(self._root), "env": dict(env), "log": str(log)}
        request = json.dumps(command).encode() + b"\n"
        with os_errors("write", log):
            log.parent.mkdir(parents=True, exist_ok=True)
        self._limit = math.inf if timeout is None else timeout
        until = time.monotonic() + self._limit
        try:
            child = self._child
            if child is None or not self._loaded(child, until) or not self._send(request):
                child = self._start(log)  # what it could not load is in the log then
                if self._loaded(child, until):
                    self._send(request)
            answer = self._answer(child, until)
            return int(answer) if answer else child.wait()
        except BaseException:
            self.end()
            raise

    def _loaded(self, child: Child, until: float) -> bool:
        """Whether it has loaded DVC, after waiting for that."""
        if not self._is_loaded:
            self._is_loaded = self._answer(child, until, len(LOADED)) == LOADED
        return self._is_loaded and child.alive

    def _answer(self, child: Child, until: float, count: int = 16) -> bytes:
        """What it sends next, or `TimeoutExpired` when nothing came until then; nothing where it has ended."""
        while child.alive:
            if time.monotonic() > until:
                raise TimeoutExpired("dvc", self._limit)
            if select.select([self._socket], [], [], POLL)[0]:
                with contextlib.suppress(ConnectionResetError):
                    return self._socket.recv(count)
                break
        return b""

    def _send(self, request: bytes) -> bool:
        """Whether the process was there to take it."""
        try:
            self._socket.sendall(request)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def _start(self, log: Path = Path(os.devnull)) -> Child:
        self.end()
        self._is_loaded = False
        self._socket, theirs = socket.socketpair()
        with theirs:
            number = theirs.fileno()
            self._child = Child(
                "dvc",
                [sys.executable, "-P", "-m", "flows.host.dvc_commands", str(number)],
                log=log,
                env={"PYTHONPATH": str(CODE)},
                grace=GRACE,
                group=True,
                keep=[number],
            )
        return self._child

    def end(self) -> None:
        """End it, with all that it started."""
        if self._child is not None:
            self._socket.close()
            self._child.stop()
            self._child = None


@contextlib.contextmanager
def one_process(root: Path) -> Iterator[None]:
    """Inside the block one process runs all commands of `run_dvc` in ``root``; inside such a block it is the same."""
    if root in _open:
        yield
        return
    _open[root] = DvcProcess(root)
    try:
        yield
    finally:
        _open.pop(root).end()


def run_dvc(
    arguments: Sequence[str], *, root: Path, env: Mapping[str, str], log: Path, timeout: float | None = None
) -> int:
    """Run a DVC command in ``root``; see `DvcProcess.run`."""
    with one_process(root):
        return _open[root].run(arguments, env=env, log=log, timeout=timeout)
