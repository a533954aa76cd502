"""A learner whose ranks are in other pods, as the loop sees it."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor

from components.config import Settings
from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.directories import write_directory
from components.errors import InputError
from components.files import sha256_tree
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.optimizer_state import read_weights
from components.learner.remote import protocol
from components.learner.remote.folders import pieces
from components.learner.remote.link import Link
from components.learner.remote.protocol import (
    CONFIGURE,
    LOAD,
    LOGPROBS,
    PING,
    RECEIVE,
    SAVE,
    START,
    STEP,
    program,
)
from components.learner.remote.wire import Message, pack
from components.learner.torch_learner import FILES, WEIGHTS
from components.objectives import Coefficients
from components.policy import Policy
from components.working import working

PING_EVERY = 5.0
"""Seconds between two looks at ranks elsewhere, which may be asked to end while the run samples."""


class RemoteLearner(Learner):
    """Forwards to ranks that run `components.learner.worker`, and hangs up when one of them fails.

    What is saved, loaded and started from are folders. All ranks see them under the same path, or they travel over the
    connection (`RankSettings.shared_folder`).

    Raises:
        InputError: the ranks do not start, are not what the settings say, die, or take longer than the settings allow.
    """

    def __init__(self, policy: Policy, settings: Settings, logs: Path) -> None:
        self._policy, self._one_at_a_time, self._closed = policy, threading.Lock(), threading.Event()
        self._stopping, self._tell = False, _nobody
        self._failed: InputError | None = None  # between two commands of the loop
        self._coefficients = Coefficients.initial(settings.objective)
        folder = (logs.parent / ".state" / "learner-policy").absolute()
        write_directory(folder, policy.save)
        ranks = settings.learner.ranks
        self._shared = ranks.shared_folder
        with working("starting the learner ranks"):
            self._link = Link(ranks)
        try:
            place = self._placed(folder, "policy")
            reply = self._call(
                START,
                program=program(),
                processes=ranks.processes,
                policy=place,
                shared=self._shared,
                digest=sha256_tree(folder),
                dtype=settings.policy.dtype,
                threads=settings.threads,
                temperature=settings.rollout.temperature,
                **_sections(settings.learner, settings.objective),
            )
            self._link.listen(reply.header["notices"])
        except BaseException:
            self.close()
            raise
        threading.Thread(target=self._look_after, name="learner-ping", daemon=True).start()

    @property
    def coefficients(self) -> Coefficients:
        return self._coefficients

    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        self._call(CONFIGURE, **_sections(settings, objective))

    def logprobs(self, batch: Batch) -> Tensor:
        return self._call(LOGPROBS, pack(batch)).tensors["logp"]

    def step(self, batch: Batch, seed: int, norm_limit: float = math.inf) -> dict[str, float]:
        reply = self._call(STEP, pack(batch), seed=seed, norm_limit=norm_limit)
        signals: dict[str, float] = reply.header["signals"]
        return signals

    def weights(self) -> dict[str, Tensor]:
        weights: dict[str, Tensor] = {}
        for reply in self._replies(protocol.WEIGHTS):
            weights |= reply.tensors
        return weights

    def weights_at(self, directory: Path) -> dict[str, Tensor]:
        return read_weights(directory / WEIGHTS)

    def save(self, directory: Path) -> None:
        self.snapshot(directory)()

    def snapshot(self, directory: Path) -> Callable[[], None]:
        folder = str(directory.absolute())
        self._call(SAVE, directory=folder, shared=self._shared)
        return partial(self._link.written, folder)

    def load(self, directory: Path) -> None:
        place = self._placed(directory.absolute(), "state", FILES)
        self._call(LOAD, directory=place, shared=self._shared)

    def _placed(self, folder: Path, name: str, files: Sequence[str] | None = None) -> str:
        """What the ranks know a folder by: its path, or the name under which they were sent what they need of it."""
        if self._shared:
            return str(folder)
        for header, tensors in pieces(folder, files):
            self._call(RECEIVE, tensors, name=name, **header)
        return name

    def save_policy(self, directory: Path) -> None:
        self._policy.load_weights(self.weights())
        self._policy.save(directory)

    def when_asked_to_stop(self, tell: Callable[[], None]) -> None:
        self._tell = tell
        if self._stopping:
            tell()

    def close(self) -> None:
        self._closed.set()
        self._link.close()

    def _call(self, command: str, tensors: Mapping[str, Tensor] | None = None, **header: Any) -> Message:
        """A command with one reply."""
        (reply,) = self._replies(command, tensors, **header)
        return reply

    def _replies(self, command: str, tensors: Mapping[str, Tensor] | None = None, **header: Any) -> list[Message]:
        with self._one_at_a_time, working(f"learner ranks: {command}"):
            if self._failed is not None:
                raise self._failed
            replies = [self._link.call(command, header, tensors)]
            while replies[-1].header.get("more"):
                replies.append(self._link.reply(command))
        if (coefficients := replies[-1].header["coefficients"]) is not None:
            self._coefficients = Coefficients(*coefficients)
        if replies[-1].header["stopping"] and not self._stopping:
            self._stopping = True
            self._tell()
        return replies

    def _look_after(self) -> None:
        """Ask the ranks now and then whether they have been asked to end. What fails is raised by the next command."""
        try:
            while not self._closed.wait(PING_EVERY) and not self._stopping:
                self._call(PING)
        except InputError as error:
            self._failed = error


def _nobody() -> None:
    """Nobody wants to know."""


def _sections(settings: LearnerSettings, objective: ObjectiveSettings) -> dict[str, Any]:
    return {"learner": settings.model_dump(mode="json"), "objective": objective.model_dump(mode="json")}
