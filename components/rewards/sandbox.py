"""A verifier behind a fence: whatever it does, every completion gets a score or a reason for having none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from components.checkpoints.checks import check_checkpoint
from components.config.base import Section
from components.config.load import check_digest
from components.config.runners import ClassifierVerifier
from components.config.sandbox import SandboxSettings
from components.rewards.pool import Pool
from components.rewards.process import WORKER
from components.types import Prompt, Score


class Sandbox:
    """Judges texts in worker processes, which are started at first use and replaced when they had to be killed.

    Args:
        verifier: settings of one of `components.rewards.VERIFIERS`.
        model: what that verifier has learned, where it is one that learns.

    Raises:
        InputError: the folder of a classifier is missing, not what it should be, or holds anything that could run code.
    """

    def __init__(
        self,
        verifier: Section,
        limits: SandboxSettings,
        command: Sequence[str] = WORKER,
        model: Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(verifier, ClassifierVerifier):
            check_digest(verifier.path, verifier.sha256)
            check_checkpoint(verifier.path)
        learned = {} if model is None else {"model": model}
        hello = {"verifier": verifier.model_dump(mode="json") | learned, "limits": limits.model_dump(mode="json")}
        self._pool = Pool(command, encode(hello), limits.workers, limits.timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker processes."""
        self._pool.close()

    def judge(self, items: Sequence[tuple[Prompt, str]]) -> list[Score]:
        """One score per prompt and text, in order; its parts are not weighted yet.

        What overruns a limit, an error and a death make that one item unscorable and leave every other what it is.

        Raises:
            EvenkeelError: a worker process did not start.
        """
        replies = self._pool.ask([encode({"prompt": prompt.to_dict(), "text": text}) for prompt, text in items])
        return [to_score(reply) for reply in replies]


def encode(message: dict[str, Any]) -> bytes:
    """One JSON line. ASCII only, so that no text can break the line protocol."""
    return json.dumps(message).encode() + b"\n"


def to_score(reply: dict[str, Any]) -> Score:
    """A reply holds ``accuracy``, ``parts`` and ``metrics``, or ``unscorable`` with the reason."""
    if "unscorable" in reply:
        return Score(None, unscorable=reply["unscorable"])
    return Score(reply["accuracy"], reply["parts"], metrics=reply["metrics"])
