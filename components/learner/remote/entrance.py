"""Where rank 0 lets its run in."""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, Listener, answer_challenge, deliver_challenge

from components.errors import InputError
from components.learner.remote.protocol import LISTEN

PATIENCE = 10.0
"""Seconds that whoever has connected has to prove that it knows the key, and then to say the word."""


class Entrance:
    """Listens for whoever knows the key: first for commands, then for one more connection that tells of written files.

    The second one has to say a word that only the first was told. So what connects between the two, such as the next
    run after one that was killed, is never taken for it.

    Raises:
        InputError: nobody can listen at this address.
    """

    def __init__(self, address: str | tuple[str, int], key: bytes) -> None:
        try:
            self._listener, self._key = Listener(address), key
        except OSError as error:
            how = "choose an address of this machine and a free port"
            raise InputError(f"cannot listen at {address}: {error.strerror or error}", where=LISTEN, how=how) from error
        self._notices: Future[Connection] = Future()

    def accept(self) -> Connection:
        """The next connection of somebody who knows the key; all others are turned away, as is who says nothing."""
        while True:
            try:
                connection = self._listener.accept()
                with _hurried(connection):
                    deliver_challenge(connection, self._key)
                    answer_challenge(connection, self._key)
                return connection
            except (AuthenticationError, EOFError, OSError) as error:
                _turned_away(repr(error))

    def expect(self) -> str:
        """The word for the second connection, which is waited for beside all else; nobody gets in after it."""
        word = secrets.token_hex(16)
        threading.Thread(target=self._admit, args=(word.encode(),), name="entrance", daemon=True).start()
        return word

    def _admit(self, word: bytes) -> None:
        while not self._notices.done():
            connection = self.accept()
            with suppress(EOFError, OSError):
                if connection.poll(PATIENCE) and hmac.compare_digest(connection.recv_bytes(len(word)), word):
                    self._listener.close()
                    self._notices.set_result(connection)
                    return
            connection.close()
            _turned_away("it is not of this run")

    def report(self, data: bytes) -> None:
        """Send something over the second connection, once there is one."""
        self._notices.result().send_bytes(data)


@contextmanager
def _hurried(connection: Connection) -> Iterator[None]:
    """Inside, whoever is silent for too long is an `OSError`; nothing that fails stays open."""
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as shared:
            _limit(shared, PATIENCE)
            yield
            _limit(shared, 0)
    except BaseException:
        connection.close()
        raise


def _limit(shared: socket.socket, seconds: float) -> None:
    """How long whoever reads from a connection waits; 0 for ever."""
    whole, rest = divmod(seconds, 1)
    shared.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("@ll", int(whole), int(rest * 1e6)))


def _turned_away(why: str) -> None:
    print(f"turned a connection away: {why}", file=sys.stderr, flush=True)
