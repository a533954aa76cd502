"""A verifier behind a fence: whatever it does, every completion gets a score or a reason for having none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from components.config.base import Section
from components.config.verifiers import SandboxSettings
from components.rewards.process import WORKER, WorkerProcess
from components.types import Prompt, Score


class Sandbox:
    """Judges texts in a worker process, which is started at first use and again after it had to be killed.

    Args:
        verifier: settings of one of `components.rewards.VERIFIERS`.
        model: what that verifier has learned, where it is one that learns.
    """

    def __init__(
        self,
        verifier: Section,
        limits: SandboxSettings,
        command: Sequence[str] = WORKER,
        model: Mapping[str, Any] | None = None,
    ) -> None:
        learned = {} if model is None else {"model": model}
        self._hello = {"verifier": verifier.model_dump(mode="json") | learned, **limits.model_dump(mode="json")}
        self._timeout, self._command = limits.timeout, command
        self._worker: WorkerProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker process."""
        if self._worker is not None:
            self._worker.kill()
            self._worker = None

    def judge(self, items: Sequence[tuple[Prompt, str]]) -> list[Score]:
        """One score per prompt and text, in order; its parts are not weighted yet.

        An error, a timeout, a death of the worker or a lack of memory makes that one item unscorable; a fresh worker
        goes on with the next.
        """
        requests = [encode({"prompt": prompt.to_dict(), "text": text}) for prompt, text in items]
        scores: list[Score] = []
        while len(scores) < len(requests):
            replies, failure = self._exchange(requests[len(scores) :])
            scores += [to_score(reply) for reply in replies]
            if failure is not None:
                scores.append(Score(None, unscorable=failure))
        return scores

    def _exchange(self, requests: Sequence[bytes]) -> tuple[list[dict[str, Any]], str | None]:
        """Replies in order, and why the next one is missing. Replies never outlive an interrupted exchange."""
        if self._worker is None:
            self._worker = WorkerProcess(self._command, encode(self._hello))
        failure: str | None = "interrupted"
        try:
            replies, failure = self._worker.exchange(requests, self._timeout)
            return replies, failure
        finally:
            if failure is not None:
                self.close()


def encode(message: dict[str, Any]) -> bytes:
    """One JSON line. ASCII only, so that no text can break the line protocol."""
    return json.dumps(message).encode() + b"\n"


def to_score(reply: dict[str, Any]) -> Score:
    """A reply holds ``accuracy``, ``parts`` and ``metrics``, or ``unscorable`` with the reason."""
    if "unscorable" in reply:
        return Score(None, unscorable=reply["unscorable"])
    return Score(reply["accuracy"], reply["parts"], metrics=reply["metrics"])
