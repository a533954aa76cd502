"""Prefect's temporary server. It runs until the process that started it closes the server's standard input.

``python temporary_server.py DESCRIPTOR`` serves on a listening socket that it inherits. It ignores
SIGINT and SIGTERM: a signal to a process group or container reaches the run and its server at once, and the run still
has to report how it ended.
"""

from __future__ import annotations

import signal
import socket
import sys
import threading

import uvicorn
from prefect.server.api.server import create_app


def serve(listening: socket.socket) -> None:
    """Serve until the standard input ends."""
    app = create_app(ephemeral=True, final=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))

    def end() -> None:
        sys.stdin.buffer.read()
        server.should_exit = True

    threading.Thread(target=end, daemon=True).start()
    server.run(sockets=[listening])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})  # for all threads that are to come
    serve(socket.socket(fileno=int(sys.argv[1])))
