"""Loopback ports."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that no process listens on at this moment. Another process may take it before it is used: who uses it must
    notice that, and may choose another one."""
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        port: int = probe.getsockname()[1]
        return port
