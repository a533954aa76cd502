"""A run's connection to its ranks, and what is said when they fail."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from queue import Empty, SimpleQueue
from typing import Any

from torch import Tensor

from components.config.training import RankSettings
from components.errors import InputError
from components.learner.remote.processes import LocalRanks
from components.learner.remote.protocol import CLOSE, KEY, START, address_of
from components.learner.remote.wire import Message, decode, encode
from components.processes.environments import LEARNER_KEY_HOW, learner_key

POLL = 0.1
"""Seconds between two looks at the ranks while they work."""
RESUME = "started again, the run goes on from its newest checkpoint"


class Link:
    """Commands to rank 0 and its replies. When something fails all ranks are ended, then the reason is raised.

    Args:
        local: The ranks, where this run has started them; they end with the link.

    Raises:
        InputError: the ranks cannot be reached in time, or not with this key.
    """

    def __init__(self, settings: RankSettings, local: LocalRanks | None) -> None:
        self._settings, self._local = settings, local
        self._connection: Connection | None = None
        self._notices: Connection | None = None
        try:
            until = time.monotonic() + settings.start_timeout
            self._connection = self._connect(until)
            self._notices = self._connect(until)
        except BaseException:
            self.close()
            raise

    def call(self, command: str, header: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None) -> Message:
        """Have the ranks carry out a command, and return their first reply."""
        with suppress(OSError):  # that a rank has gone is found out below
            self._open.send_bytes(encode({"command": command, **header}, tensors))
        return self.reply(command)

    def reply(self, command: str) -> Message:
        """The next reply to a command."""
        limit = self._settings.start_timeout if command == START else self._settings.reply_timeout
        until = time.monotonic() + limit
        while not self._open.poll(POLL):
            if self._local is not None and not self._local.all_alive:
                raise self._lost(command)
            if time.monotonic() > until:
                raise self._silent(command)
        try:
            message = decode(self._open.recv_bytes())
        except (EOFError, OSError):
            raise self._lost(command) from None
        if error := message.header.get("error"):
            raise self._failed(command, error)
        return message

    def written(self, folder: str) -> None:
        """Wait until rank 0 has written what it copied for this folder. Another thread than the one that gives commands
        may call it.

        Raises:
            InputError: it could not be written, or nobody says whether it was.
        """
        until, silent = time.monotonic() + self._settings.reply_timeout, "rank 0 did not say that it has been written"
        notice: dict[str, Any] = {}
        while notice.get("written") != folder:
            try:
                while self._notices is None or not self._notices.poll(POLL):
                    if time.monotonic() > until or not self._alive:
                        raise InputError(silent, where=folder, how=f"read the log of rank 0; {RESUME}")
                notice = decode(self._notices.recv_bytes()).header
            except (EOFError, OSError):
                raise InputError(silent, where=folder, how=f"read the log of rank 0; {RESUME}") from None
            if error := notice.get("error"):
                raise InputError(error["what"], where=error["where"] or folder, how=error["how"])

    def close(self) -> None:
        """Let the ranks end; those that were started here are gone when it returns."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.send_bytes(encode({"command": CLOSE}))
            self._connection.close()
            self._connection = None
            if self._local is not None:
                self._local.settle()
        if self._local is not None:
            self._local.end()

    @property
    def _alive(self) -> bool:
        return self._connection is not None and (self._local is None or self._local.all_alive)

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise InputError("the learner's ranks have ended", where="learner.ranks", how="start the stage again")
        return self._connection

    def _connect(self, until: float) -> Connection:
        """A connection to rank 0, which listens once all ranks have met."""
        address = self._local.address if self._local is not None else str(self._settings.address)
        key = self._local.key if self._local is not None else learner_key()
        while True:
            try:
                return client(address, key, until - time.monotonic())
            except AuthenticationError as error:
                raise InputError(f"the ranks at {address} have another key", where=KEY, how=LEARNER_KEY_HOW) from error
            except (OSError, EOFError):  # a timeout is an OSError
                if self._local is not None and not self._local.all_alive:
                    raise self._lost(START) from None
                if time.monotonic() > until:
                    raise self._silent(START) from None
                time.sleep(POLL)

    def _failed(self, command: str, error: Mapping[str, str | None]) -> InputError:
        """What rank 0 said went wrong; where it only misses another rank, what became of that one."""
        if error["where"] is None and self._local is not None:
            return self._lost(command)
        self.close()
        return InputError(str(error["what"]), where=error["where"] or self._settings.address, how=error["how"])

    def _lost(self, command: str) -> InputError:
        """A rank has gone."""
        if self._local is None:
            self.close()
            how = f"read the logs of the ranks; {RESUME}"
            return InputError(f"the learner hung up during {command!r}", where=self._settings.address, how=how)
        culprit = self._local.first_to_end() or self._local.children[0]
        ending = culprit.ending()
        self.close()
        how = f"mend what its log says; {RESUME}"
        return InputError(f"a rank of the learner was lost during {command!r}: {ending}", where=culprit.log, how=how)

    def _silent(self, command: str) -> InputError:
        """Nobody answers in time."""
        setting = "start_timeout" if command == START else "reply_timeout"
        who, where, tails = "its ranks", self._settings.address, ""
        if self._local is not None:
            stopped = self._local.stopped()
            who = f"{' and '.join(stopped)}, which somebody has stopped (SIGSTOP)," if stopped else who
            where = str(self._local.children[0].log.parent)
            tails = "".join(f"\n{child.name}:\n{child.tail(3)}" for child in self._local.children)
        self.close()
        within = f"within {getattr(self._settings, setting):g} s"
        what = f"the learner did not carry out {command!r} {within}: {who} did not answer{tails}"
        return InputError(
            what, where=where, how=f"raise learner.ranks.{setting} if that is too little; otherwise read their logs"
        )


def client(address: str, key: str, seconds: float) -> Connection:
    """A connection to whoever listens there and knows the key.

    Raises:
        TimeoutError: somebody listens, and does not ask for the key in time.
    """
    found: SimpleQueue[Connection | Exception] = SimpleQueue()

    def connect() -> None:
        try:
            found.put(Client(address_of(address), authkey=key.encode()))
        except Exception as error:
            found.put(error)

    threading.Thread(target=connect, daemon=True).start()  # it cannot be interrupted, only left behind
    try:
        answer = found.get(timeout=max(0.0, seconds))
    except Empty:
        raise TimeoutError(f"{address} does not answer") from None
    if isinstance(answer, Exception):
        raise answer
    return answer
