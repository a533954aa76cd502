"""A learner in processes of its own, as the loop sees it."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any

from torch import Tensor

from components.config import Settings
from components.config.objective import ObjectiveSettings
from components.config.training import LearnerSettings
from components.errors import InputError
from components.files import sha256_tree, write_directory
from components.learner.base import Learner
from components.learner.batch import Batch
from components.learner.remote.processes import LocalRanks
from components.learner.remote.protocol import (
    CLOSE,
    CONFIGURE,
    KEY,
    LOAD,
    LOGPROBS,
    SAVE,
    START,
    STEP,
    WEIGHTS,
    address_of,
    program,
)
from components.learner.remote.wire import Message, decode, encode, pack
from components.objectives import Coefficients
from components.policy import Policy

POLL = 0.1
"""Seconds between two looks at the ranks while they work."""


class RemoteLearner(Learner):
    """Forwards to ranks that run `components.learner.worker`, and ends them all when one of them fails.

    Folders that are saved to and loaded from must be visible to rank 0 under the same path, and to all ranks for
    loading.

    Raises:
        InputError: the ranks do not start, are not what the settings say, die, or take longer than the settings allow.
    """

    def __init__(self, policy: Policy, settings: Settings, logs: Path) -> None:
        self._policy, self._settings = policy, settings.learner
        ranks = settings.learner.ranks
        self._local = None if ranks.address else LocalRanks(ranks.processes, settings.threads, logs)
        self._connection: Connection | None = None
        self._coefficients = Coefficients.initial(settings.objective)
        folder = (logs.parent / ".state" / "learner-policy").absolute()
        try:
            write_directory(folder, policy.save)
            self._connection = self._connect(time.monotonic() + ranks.start_timeout)
            self._call(
                START,
                program=program(),
                processes=ranks.processes,
                policy=str(folder),
                digest=sha256_tree(folder),
                dtype=settings.policy.dtype,
                threads=settings.threads,
                temperature=settings.rollout.temperature,
                limit=ranks.start_timeout,
                **_sections(settings.learner, settings.objective),
            )
        except BaseException:
            self.close()
            raise

    @property
    def coefficients(self) -> Coefficients:
        return self._coefficients

    def configure(self, settings: LearnerSettings, objective: ObjectiveSettings) -> None:
        self._settings = settings
        self._call(CONFIGURE, **_sections(settings, objective))

    def logprobs(self, batch: Batch) -> Tensor:
        return self._call(LOGPROBS, pack(batch)).tensors["logp"]

    def step(self, batch: Batch, seed: int, norm_limit: float = math.inf) -> dict[str, float]:
        reply = self._call(STEP, pack(batch), seed=seed, norm_limit=norm_limit)
        signals: dict[str, float] = reply.header["signals"]
        return signals

    def weights(self) -> dict[str, Tensor]:
        reply = self._call(WEIGHTS)
        weights = reply.tensors
        while reply.header["more"]:
            reply = self._reply(WEIGHTS, self._settings.ranks.reply_timeout)
            weights |= reply.tensors
        return weights

    def save(self, directory: Path) -> None:
        self._call(SAVE, directory=str(directory.absolute()))

    def load(self, directory: Path) -> None:
        self._call(LOAD, directory=str(directory.absolute()))

    def save_policy(self, directory: Path) -> None:
        self._policy.load_weights(self.weights())
        self._policy.save(directory)

    def close(self) -> None:
        if self._connection is not None:
            with suppress(OSError):
                self._connection.send_bytes(encode({"command": CLOSE}))
            self._connection.close()
            self._connection = None
        if self._local is not None:
            self._local.end()
            self._local = None

    @property
    def _link(self) -> Connection:
        if self._connection is None:
            raise InputError("the learner's ranks have ended", where="learner.ranks", how="start the stage again")
        return self._connection

    def _call(
        self, command: str, tensors: Mapping[str, Tensor] | None = None, limit: float | None = None, **header: Any
    ) -> Message:
        """Have the ranks carry out a command, and return their first reply."""
        with suppress(OSError):  # that a rank has gone is found out below
            self._link.send_bytes(encode({"command": command, **header}, tensors))
        return self._reply(command, limit or self._settings.ranks.reply_timeout)

    def _reply(self, command: str, limit: float) -> Message:
        """The next reply; an error of the ranks is raised here, after all of them have been ended."""
        until = time.monotonic() + limit
        while not self._link.poll(POLL):
            if self._local is not None and not self._local.all_alive:
                raise self._lost(command)
            if time.monotonic() > until:
                raise self._silent(command, limit)
        try:
            reply = decode(self._link.recv_bytes())
        except (EOFError, OSError):
            raise self._lost(command) from None
        if error := reply.header.get("error"):
            raise self._failed(command, error)
        self._coefficients = Coefficients(*reply.header["coefficients"])
        return reply

    def _connect(self, until: float) -> Connection:
        """A connection to rank 0, which listens once all ranks have met."""
        address = self._settings.ranks.address or ""
        key = os.environ.get(KEY, "") if self._local is None else self._local.key
        if self._local is not None:
            address = self._local.address
        if not key:
            how = f"set {KEY} to the same secret here and where the ranks are started"
            raise InputError(f"{KEY} is not set", where="learner.ranks.address", how=how)
        while True:
            try:
                return Client(address_of(address), authkey=key.encode())
            except AuthenticationError as error:
                how = f"set {KEY} to the same secret on both sides"
                raise InputError(f"the ranks at {address} have another key", where=KEY, how=how) from error
            except (OSError, EOFError):
                if self._local is not None and not self._local.all_alive:
                    raise self._lost(START) from None
                if time.monotonic() > until:
                    raise self._silent(START, self._settings.ranks.start_timeout) from None
                time.sleep(POLL)

    def _failed(self, command: str, error: Mapping[str, str | None]) -> InputError:
        """What rank 0 said went wrong, or what became of another rank that it misses."""
        if error["where"] is None and self._local is not None:
            return self._lost(command)
        self.close()
        return InputError(str(error["what"]), where=error["where"] or self._settings.ranks.address, how=error["how"])

    def _lost(self, command: str) -> InputError:
        """A rank has gone."""
        if self._local is None:
            self.close()
            how = "read the logs of the ranks; started again, the run goes on from its newest checkpoint"
            what = f"the learner hung up during {command!r}"
            return InputError(what, where=self._settings.ranks.address, how=how)
        culprit = self._local.first_to_end() or self._local.children[0]
        ending = culprit.ending()
        self.close()
        how = "mend what its log says; started again, the run goes on from its newest checkpoint"
        return InputError(f"a rank of the learner was lost during {command!r}: {ending}", where=culprit.log, how=how)

    def _silent(self, command: str, limit: float) -> InputError:
        """Nobody answers in time."""
        ranks = self._settings.ranks
        who, where, tails = "its ranks", ranks.address, ""
        if self._local is not None:
            stopped = self._local.stopped()
            who = f"{' and '.join(stopped)}, which somebody has stopped (SIGSTOP)," if stopped else who
            where = str(self._local.children[0].log.parent)
            tails = "".join(f"\n{child.name}:\n{child.tail(3)}" for child in self._local.children)
        self.close()
        setting = "start_timeout" if command == START else "reply_timeout"
        how = f"raise learner.ranks.{setting} if that is too little; otherwise read their logs"
        return InputError(
            f"the learner did not carry out {command!r} within {limit:g} s: {who} did not answer{tails}",
            where=where,
            how=how,
        )


def _sections(settings: LearnerSettings, objective: ObjectiveSettings) -> dict[str, Any]:
    return {"learner": settings.model_dump(mode="json"), "objective": objective.model_dump(mode="json")}
