"""Prefect's temporary server. It runs until the process that started it closes the server's standard input.

``python temporary_server.py DESCRIPTOR`` serves on a listening socket that it inherits. It ignores
SIGINT and SIGTERM: a signal to a process group or container reaches the run and its server at once, and the run still
has to report how it ended.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import threading
from collections.abc import AsyncIterator


@contextlib.asynccontextmanager
async def no_background_worker(*_: object, **__: object) -> AsyncIterator[None]:
    """In the place of Prefect's: for late, paused, scheduled and deleted runs, of which a temporary server has none."""
    yield


def serve(listening: socket.socket) -> None:
    """Serve until the standard input ends."""
    gc.disable()  # what is loaded stays: looking through it again and again takes a quarter of the start
    import uvicorn
    from prefect.server.api import server as prefect_server

    prefect_server.background_worker = no_background_worker  # type: ignore[attr-defined]
    app = prefect_server.create_app(ephemeral=True, final=True)
    gc.freeze()
    gc.enable()
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))

    def end() -> None:
        sys.stdin.buffer.read()
        server.should_exit = True

    threading.Thread(target=end, daemon=True).start()
    server.run(sockets=[listening])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})  # for all threads that are to come
    serve(socket.socket(fileno=int(sys.argv[1])))
    sys.stderr.flush()
    os._exit(0)  # everything is written, and taking the interpreter apart takes a second
