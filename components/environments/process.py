"""The parent's end of an environment's process: starts it, sends requests, and ends it when it does not answer."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import psutil

from components.config.environments import VerifiersSource
from components.config.pins import check_version
from components.config.targets import check_code, locate
from components.errors import InputError
from components.processes.guardian import kill_descendants
from components.rewards.process import STARTUP_SECONDS, WorkerProcess, wait
from components.types import Prompt

Message = dict[str, Any]
Answer = Callable[[list[Message]], list[Message]]
WORKER = (sys.executable, "-P", "-m", "components.environments.worker")
MARGIN = 15.0
"""Seconds beyond an environment's own time-out after which its process counts as stuck."""
END_SECONDS = 20.0
"""How long it has to end what it has started, such as tool servers."""
HOW = "run the environment's module by itself, and check data.source"


class EnvironmentProcess:
    """Starts at the first request; where it had to be ended, the next request starts another one."""

    def __init__(self, source: VerifiersSource, command: Sequence[str] = WORKER) -> None:
        self._source, self._command = source, command
        self._worker: WorkerProcess | None = None
        self._home: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tasks(self, rows: int) -> list[Message]:
        """What the environment says of its first tasks.

        Raises:
            InputError: its process ends, or does not answer.
        """
        reply = self._request({"rows": rows}, STARTUP_SECONDS)
        if "tasks" not in reply:
            raise InputError(f"the environment gives no tasks: {reply['unscorable']}", where="data.source", how=HOW)
        found: list[Message] = reply["tasks"]
        return found

    def wanted(self, prompt: Prompt) -> Message:
        """The task of a prompt, as `play` takes it.

        Raises:
            InputError: the prompt was made by other settings or other code of the environment.
        """
        found: Message = json.loads(prompt.reference)
        if found["environment"] != self._source.digest:
            raise InputError(
                "the prompts are of this environment with other settings or other code",
                where="data.source",
                how="run the data stage again",
            )
        return found

    def play(self, episodes: Sequence[Message], answer: Answer) -> list[Message]:
        """The outcome of every episode, in order. Where the process dies or is stuck, all of them are unscorable.

        Args:
            answer: what the policy says to all requests of one time, in order.
        """
        patience = self._source.timeout + MARGIN
        reply = self._request({"play": list(episodes)}, patience)
        while "requests" in reply:
            try:
                answers = answer(reply["requests"])
            except BaseException:  # the process still waits for these answers, and the next request is another one
                self.close(0.0)
                raise
            reply = self._request(answers, patience)
        outcomes: list[Message] = reply.get("outcomes", [reply] * len(episodes))
        return outcomes

    def close(self, seconds: float = END_SECONDS) -> None:
        """End the process within ``seconds``, and everything that it has started."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        with contextlib.suppress(psutil.NoSuchProcess):
            if not worker.finish(seconds):
                kill_descendants(psutil.Process(worker.pid))
        worker.kill()
        if self._home is not None:
            _kill_those_with_home(self._home.name)
            self._home.cleanup()

    def _request(self, message: Any, seconds: float) -> Message:
        """The reply; the reason for there being none where the process has ended, or had to be ended."""
        worker = self._worker or self._start()
        try:
            return self._reply(worker, message, seconds)
        except BaseException:
            self.close(0.0)
            raise

    def _reply(self, worker: WorkerProcess, message: Any, seconds: float) -> Message:
        worker.send([json.dumps(message).encode() + b"\n"])
        began, limit = time.monotonic(), seconds if worker.started else seconds + STARTUP_SECONDS
        while True:
            readable, writable = wait([worker], began + limit - time.monotonic())
            if worker in writable:
                worker.flush()
            if worker in readable:
                waiting, lines = not worker.started, worker.receive()
                if lines is None:
                    return self._gone(worker.exit_description())
                if waiting and worker.started:
                    began, limit = time.monotonic(), seconds
                if lines:
                    reply: Message = json.loads(lines[0])
                    return reply
            elif time.monotonic() - began > limit:
                return self._gone(f"timeout: the environment's process did not answer within {limit:g} s")

    def _gone(self, reason: str) -> Message:
        self.close(0.0)
        return {"unscorable": reason}

    def _start(self) -> WorkerProcess:
        check_version(self._source.version, "verifiers")
        check_code(self._source, locate(self._source))
        self._home = tempfile.TemporaryDirectory(prefix="evenkeel-environment-")
        hello = {"source": self._source.model_dump(mode="json"), "folder": os.getcwd()}
        self._worker = WorkerProcess(
            self._command,
            json.dumps(hello).encode() + b"\n",
            role="environment",
            where="data.source",
            how=HOW,
            env={"HOME": self._home.name, "PATH": os.environ.get("PATH", os.defpath)},
        )
        return self._worker


def _kill_those_with_home(home: str) -> None:
    """End what the library has started in sessions of its own: once its parent has died, only its environment shows
    whose it was."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == home:
                process.kill()
