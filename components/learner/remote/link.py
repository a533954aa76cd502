"""A run's connection to its ranks, and what is said when they fail."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

from components.config.training import RankSettings
from components.errors import InputError, PeerLost
from components.learner.remote.folders import Arriving
from components.learner.remote.protocol import KEY, SAVE, START, address_of
from components.learner.remote.wire import Message, decode, encode, raised
from components.processes.environments import LEARNER_KEY_HOW, learner_key

POLL = 0.1
"""Seconds between two looks at the ranks while they work."""
T = TypeVar("T")
RESUME = "started again, the run goes on from its newest checkpoint"


class Ending(NamedTuple):
    """What became of the ranks, as an error says it."""

    what: str
    where: str
    how: str


class Link:
    """Commands to rank 0 and its replies. When something fails the connection is closed, then the reason is raised.

    Raises:
        PeerLost: the ranks cannot be reached in time; from every method, they have gone or fallen silent.
        InputError: they have another key; from every method, a rank says what is wrong with its input.
    """

    def __init__(self, settings: RankSettings) -> None:
        self._settings = settings
        self._connection: Connection | None = None
        self._notices: Connection | None = None
        self._lock = threading.RLock()
        self._end: Ending | None = None
        try:
            self._connection = self._connect(time.monotonic() + settings.start_timeout)
        except BaseException:
            self.close()
            raise

    def listen(self, word: str) -> None:
        """Make the second connection, which tells of written files. Rank 0 expects it once it has been started."""
        self._notices = self._connect(time.monotonic() + self._settings.start_timeout)
        with suppress(OSError):  # as below
            self._notices.send_bytes(word.encode())

    def call(self, command: str, header: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None) -> Message:
        """Have the ranks carry out a command, and return their first reply."""
        until, data = self._until(command), encode({"command": command, **header}, tensors)
        with suppress(OSError):  # that a rank has gone is found out below
            self._watched(command, partial(self._open.send_bytes, data), until)
        return self._reply(command, until)

    def reply(self, command: str) -> Message:
        """The next reply to a command."""
        return self._reply(command, self._until(command))

    def _until(self, command: str) -> float:
        limit = self._settings.start_timeout if command == START else self._settings.reply_timeout
        return time.monotonic() + limit

    def _reply(self, command: str, until: float) -> Message:
        try:
            message = decode(self._watched(command, self._open.recv_bytes, until))
        except (EOFError, OSError):
            raise self._lost(command) from None
        if error := message.header.get("error"):
            self.close()
            raise raised(error, self._settings.address)
        return message

    def _watched(self, command: str, job: Callable[[], T], until: float) -> T:
        """What a job returns that may block for ever, while there is time."""
        found = beside(job)
        while not wait([found], POLL).done:
            if time.monotonic() > until:
                raise self._silent(command)
        return found.result()

    def written(self, folder: str) -> None:
        """Wait until rank 0 has written what it copied for this folder, or until what it has sent for it is written.
        Another thread than the one that gives commands may call it.

        Raises:
            PeerLost: nobody says whether it was, or what has come is not what was sent.
            InputError: it could not be written.
        """
        notice, arriving = Message({}, {}), Arriving(Path(folder))
        while notice.header.get("written") != folder:
            notice = self._notice(folder, time.monotonic() + self._settings.reply_timeout)
            if error := notice.header.get("error"):
                raise raised(error, folder)
            if notice.header.get("folder") == folder:
                arriving.take(notice)
        if not (self._settings.shared_folder or arriving.whole):
            raise arriving.torn("the last of them has not come")

    def _notice(self, folder: str, until: float) -> Message:
        """What rank 0 says next of what it has written."""
        notices = self._notices
        with suppress(EOFError, OSError):
            while notices is not None and self._connection is not None:
                if notices.poll(POLL):
                    return decode(notices.recv_bytes())
                if time.monotonic() > until:
                    how = "raise learner.ranks.reply_timeout if the disk is that slow; otherwise read rank 0's log"
                    within = f"within {self._settings.reply_timeout:g} s"
                    raise PeerLost(f"rank 0 did not say that it has been written {within}", where=folder, how=how)
        raise self._lost(SAVE)

    def close(self) -> None:
        """Let the ranks end."""
        with self._lock:
            connections = [c for c in (self._connection, self._notices) if c is not None]
            self._connection = self._notices = None
            for connection in connections:
                hang_up(connection)

    @property
    def _open(self) -> Connection:
        if self._connection is None:
            raise PeerLost("the learner's ranks have ended", where="learner.ranks", how="start the stage again")
        return self._connection

    def _connect(self, until: float) -> Connection:
        """A connection to rank 0, which listens once all ranks have met."""
        address, key = str(self._settings.address), learner_key()
        while True:
            try:
                return client(address, key, until - time.monotonic())
            except AuthenticationError as error:
                raise InputError(f"the ranks at {address} have another key", where=KEY, how=LEARNER_KEY_HOW) from error
            except (OSError, EOFError):  # a timeout is an OSError
                if time.monotonic() > until:
                    raise self._silent(START) from None
                time.sleep(POLL)

    def _lost(self, command: str) -> InputError:
        """A rank has gone. Whoever misses it first, in whatever thread, sees which; the others are told the same."""
        with self._lock:
            self._end = self._end or self._ending(command)
            self.close()
        # Whoever writes a checkpoint says which one the run goes on from.
        how = self._end.how if command == SAVE else f"{self._end.how}; {RESUME}"
        return PeerLost(self._end.what, where=self._end.where, how=how)

    def _ending(self, command: str) -> Ending:
        """Which rank was lost, and how."""
        if self._connection is None:
            return Ending(f"the learner's ranks were ended during {command!r}", "learner.ranks", "read their logs")
        address = str(self._settings.address)
        return Ending(f"the learner hung up during {command!r}", address, "read the logs of the ranks")

    def _silent(self, command: str) -> PeerLost:
        """Nobody answers in time."""
        setting = "start_timeout" if command == START else "reply_timeout"
        self.close()
        within = f"within {getattr(self._settings, setting):g} s"
        what = f"the learner did not carry out {command!r} {within}: its ranks did not answer"
        how = f"raise learner.ranks.{setting} if that is too little; otherwise read their logs"
        return PeerLost(what, where=self._settings.address, how=how)


def client(address: str, key: str, seconds: float) -> Connection:
    """A connection to whoever listens there and knows the key.

    Raises:
        TimeoutError: somebody listens, and does not ask for the key in time.
    """
    found = beside(lambda: Client(address_of(address), authkey=key.encode()))
    if not wait([found], max(0.0, seconds)).done:
        raise TimeoutError(f"{address} does not answer")
    return found.result()


def beside(job: Callable[[], T]) -> Future[T]:
    """The result of a job in a thread of its own, which cannot be interrupted, only left behind."""
    found: Future[T] = Future()

    def run() -> None:
        try:
            found.set_result(job())
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return found


def hang_up(connection: Connection) -> None:
    """Close a connection for both sides at once, whoever is reading or writing on it, or holds it open elsewhere."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)
    connection.close()
