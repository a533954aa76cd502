"""What a rank does for its run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from components.config.objective import ObjectiveSettings
from components.config.policy import PolicySettings
from components.config.training import LearnerSettings
from components.errors import InputError
from components.files import os_errors, sha256_tree
from components.learner.ranks import Peers
from components.learner.remote.entrance import Entrance
from components.learner.remote.protocol import (
    CONFIGURE,
    LOAD,
    LOGPROBS,
    PING,
    SAVE,
    START,
    STEP,
    WEIGHTS,
    must_agree,
    program,
)
from components.learner.remote.wire import Message, described, encode, unpack
from components.learner.sharding import SHARDINGS
from components.learner.torch_learner import TorchLearner
from components.policy import load_policy
from components.policy.policy import DTYPES

PIECE = 1 << 28
"""Bytes of weights in one message."""


class Session:
    """The learner of one rank, made and used as the run says. Every reply tells the learner's coefficients, and whether
    a rank has been asked to end (``stopping``).

    Args:
        entrance: Where the run makes its second connection, which tells of files that were written meanwhile; rank 0
            alone has one.
    """

    def __init__(self, rank: int, size: int, device: torch.device, entrance: Entrance | None = None) -> None:
        self._ranks, self._entrance = Peers(rank, size, device), entrance
        self.stopping = False
        self._learner: TorchLearner | None = None
        self._dtype = torch.float32
        self._commands = {
            START: self._start,
            CONFIGURE: self._configure,
            LOGPROBS: self._logprobs,
            STEP: self._step,
            WEIGHTS: self._weights,
            SAVE: self._save,
            LOAD: self._load,
            PING: self._ping,
        }

    @property
    def learner(self) -> TorchLearner:
        if self._learner is None:
            raise InputError("nothing has been started", where="learner.ranks", how=f"begin with {START!r}")
        return self._learner

    def carry_out(self, message: Message) -> Iterator[bytes]:
        """The replies to one command; every rank makes them, rank 0 sends them."""
        command = self._commands.get(message.header.get("command", ""))
        if command is None:
            known = ", ".join(self._commands)
            raise InputError(f"unknown command {message.header.get('command')!r}", where="learner.ranks", how=known)
        yield from command(message)

    def _reply(self, tensors: dict[str, Tensor] | None = None, **header: Any) -> bytes:
        told = {"coefficients": list(self.learner.coefficients), "stopping": self.stopping}
        return encode({**header, **told}, tensors)

    def _start(self, message: Message) -> Iterator[bytes]:
        header = message.header
        must_agree("another version", header["program"], program(), "start them from the same code and environment")
        must_agree("another number of ranks", header["processes"], self._ranks.size, "set learner.ranks.processes")
        folder = Path(header["policy"])
        how = "let the ranks see the run's folder under the same path"
        must_agree("another policy", header["digest"], sha256_tree(folder), how)
        settings = LearnerSettings.model_validate(header["learner"])
        objective = ObjectiveSettings.model_validate(header["objective"])
        torch.set_num_threads(header["threads"])
        self._dtype = DTYPES[header["dtype"]]
        policy = load_policy(folder, PolicySettings(dtype="float32", chat=False))
        self._learner = TorchLearner(
            policy,
            settings,
            objective,
            header["temperature"],
            sharding=lambda policy, how: SHARDINGS[how.kind](policy, how, self._ranks, self._ranks.device),
            ranks=self._ranks,
        )
        word = None if self._entrance is None else self._entrance.expect()
        yield self._reply(device=str(self._ranks.device), notices=word)

    def _configure(self, message: Message) -> Iterator[bytes]:
        settings = LearnerSettings.model_validate(message.header["learner"])
        self.learner.configure(settings, ObjectiveSettings.model_validate(message.header["objective"]))
        yield self._reply()

    def _logprobs(self, message: Message) -> Iterator[bytes]:
        yield self._reply({"logp": self.learner.logprobs(unpack(message.tensors))})

    def _step(self, message: Message) -> Iterator[bytes]:
        limit = message.header["norm_limit"]
        signals = self.learner.step(unpack(message.tensors), message.header["seed"], float(limit))
        yield self._reply(signals=signals)

    def _weights(self, message: Message) -> Iterator[bytes]:
        """Pieces of the weights; all but the last say that there are more."""
        piece: dict[str, Tensor] = {}
        for name, weight in self.learner.sharding.weights():
            if sum(tensor.nbytes for tensor in piece.values()) + weight.nbytes > PIECE and piece:
                yield self._reply(piece, more=True)
                piece = {}
            if self._ranks.rank == 0:
                piece[name] = weight.detach().to("cpu", self._dtype, copy=True)
        yield self._reply(piece, more=False)

    def _save(self, message: Message) -> Iterator[bytes]:
        """The reply says that everything has been copied: rank 0 writes it beside what comes next."""
        folder = Path(message.header["directory"])
        write = self.learner.snapshot(folder)
        if self._entrance is not None:
            threading.Thread(
                target=self._write, args=(write, folder, self._entrance), name="writing", daemon=True
            ).start()
        yield self._reply()

    @staticmethod
    def _write(write: Callable[[], None], folder: Path, entrance: Entrance) -> None:
        """Write, and tell the run how it went."""
        said: dict[str, Any] = {"written": str(folder)}
        try:
            with os_errors("write", folder):
                write()
        except Exception as error:
            said = {"error": described(error)}
        with suppress(OSError):  # a run that has gone is found out where commands are read
            entrance.report(encode(said))

    def _load(self, message: Message) -> Iterator[bytes]:
        self.learner.load(Path(message.header["directory"]))
        yield self._reply()

    def _ping(self, message: Message) -> Iterator[bytes]:
        yield self._reply()
