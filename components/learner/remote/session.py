"""What a rank does for its run."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
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
from components.learner.remote.folders import Arrivals, pieces
from components.learner.remote.protocol import (
    CONFIGURE,
    LOAD,
    LOGPROBS,
    PING,
    RECEIVE,
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
        self._arrivals = Arrivals(self._ranks)
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
            RECEIVE: self._receive,
            PING: self._ping,
        }

    @property
    def learner(self) -> TorchLearner:
        if self._learner is None:
            raise InputError("nothing has been started", where="learner.ranks", how=f"begin with {START!r}")
        return self._learner

    def close(self) -> None:
        """Remove what has arrived."""
        self._arrivals.close()

    def carry_out(self, message: Message) -> Iterator[bytes]:
        """The replies to one command; every rank makes them, rank 0 sends them."""
        command = self._commands.get(message.header.get("command", ""))
        if command is None:
            known = ", ".join(self._commands)
            raise InputError(f"unknown command {message.header.get('command')!r}", where="learner.ranks", how=known)
        yield from command(message)

    def _reply(self, tensors: dict[str, Tensor] | None = None, **header: Any) -> bytes:
        coefficients = None if self._learner is None else list(self._learner.coefficients)
        return encode({**header, "coefficients": coefficients, "stopping": self.stopping}, tensors)

    def _folder(self, header: Mapping[str, Any], key: str) -> Path:
        """The folder that a command names: the run's own, or one that has arrived."""
        return Path(header[key]) if header["shared"] else self._arrivals.folder(header[key])

    def _start(self, message: Message) -> Iterator[bytes]:
        header = message.header
        must_agree("another version", header["program"], program(), "start them from the same code and environment")
        must_agree("another number of ranks", header["processes"], self._ranks.size, "set learner.ranks.processes")
        folder = self._folder(header, "policy")
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
        for name, weight in self.learner.sharding.learned():
            if sum(tensor.nbytes for tensor in piece.values()) + weight.nbytes > PIECE and piece:
                yield self._reply(piece, more=True)
                piece = {}
            if self._ranks.rank == 0:
                piece[name] = weight.detach().to("cpu", self._dtype, copy=True)
        yield self._reply(piece, more=False)

    def _save(self, message: Message) -> Iterator[bytes]:
        """The reply says that everything has been copied: rank 0 writes it beside what comes next."""
        named, shared = message.header["directory"], message.header["shared"]
        folder = Path(named) if shared or self._entrance is None else self._arrivals.own("saved")
        write = self.learner.snapshot(folder)
        if self._entrance is not None:
            what = (write, folder, named, shared, self._entrance)
            threading.Thread(target=self._write, args=what, name="writing", daemon=True).start()
        yield self._reply()

    @staticmethod
    def _write(write: Callable[[], None], folder: Path, named: str, shared: bool, entrance: Entrance) -> None:
        """Write, send it to the run where it sees no folder of the ranks, and tell it how it went."""
        with suppress(OSError):  # a run that has gone is found out where commands are read
            try:
                with os_errors("write", folder):
                    write()
                for header, tensors in () if shared else pieces(folder):
                    entrance.report(encode({"folder": named, **header}, tensors))
                said: dict[str, Any] = {"written": named}
            except Exception as error:
                said = {"error": described(error)}
            entrance.report(encode(said))
        if not shared:
            shutil.rmtree(folder, ignore_errors=True)

    def _load(self, message: Message) -> Iterator[bytes]:
        folder = self._folder(message.header, "directory")
        self.learner.load(folder)
        yield self._reply()

    def _receive(self, message: Message) -> Iterator[bytes]:
        self._arrivals.take(message)
        yield self._reply()

    def _ping(self, message: Message) -> Iterator[bytes]:
        yield self._reply()
