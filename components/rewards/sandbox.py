"""A verifier behind a fence: whatever it does, every completion gets a score or a reason for having none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Self

from components.checkpoints.checks import check_checkpoint
from components.config.answers import ClassifierVerifier
from components.config.base import Section
from components.config.pins import check_digest
from components.config.sandbox import SandboxSettings
from components.rewards.pool import Pool
from components.rewards.process import WORKER
from components.types import Completion, Prompt, Score


class Sandbox:
    """Judges texts in worker processes, which are started at first use and replaced when they had to be killed.

    Args:
        verifier: settings of one of `components.rewards.VERIFIERS`, or a `FunctionSet`.
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

    def values(self, calls: Sequence[tuple[str, Prompt, Sequence[Completion]]]) -> list[list[float | None] | str]:
        """What the functions of these names say of groups, a value per completion; of a call that failed the reason.

        Raises:
            EvenkeelError: a worker process did not start.
        """
        requests = []
        for name, prompt, group in calls:
            texts, ids = [one.text for one in group], [one.token_ids for one in group]
            requests.append(encode({"name": name, "prompt": prompt.to_dict(), "texts": texts, "ids": ids}))
        replies = self._pool.ask(requests)
        return [
            reply["values"] if "values" in reply else named(name, reply["unscorable"])
            for (name, *_), reply in zip(calls, replies, strict=True)
        ]


def encode(message: dict[str, Any]) -> bytes:
    """One JSON line. ASCII only, so that no text can break the line protocol."""
    return json.dumps(message).encode() + b"\n"


def named(name: str, reason: str) -> str:
    """A reason that says which function has failed; its code still comes first."""
    code, _, rest = reason.partition(": ")
    return f"{code}: reward.functions.{name}: {rest}"


def to_score(reply: dict[str, Any]) -> Score:
    """A reply holds ``accuracy``, ``parts`` and ``metrics``, or ``unscorable`` with the reason."""
    if "unscorable" in reply:
        return Score(None, unscorable=reply["unscorable"])
    return Score(reply["accuracy"], reply["parts"], metrics=reply["metrics"])
