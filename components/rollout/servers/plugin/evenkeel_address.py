"""Addresses that two processes find each other by. Also imported by the server, so it needs nothing."""

from __future__ import annotations

import socket


def own_address(host: str, port: int) -> str:
    """The address of this machine that ``host`` is reached from, IPv4 where there is a choice; nothing is sent.

    Raises:
        OSError: there is no such host, or no way to it.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
    problem = OSError(f"no address of {host}")
    for family, kind, _, _, address in sorted(found, key=lambda one: one[0] != socket.AF_INET):
        try:
            with socket.socket(family, kind) as probe:
                probe.connect(address)
                return str(probe.getsockname()[0])
        except OSError as error:
            problem = error
    raise problem
