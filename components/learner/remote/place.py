"""Who a rank is, and where its run finds it, as its environment says."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import NamedTuple

from components.errors import InputError
from components.learner.remote.protocol import KEY, LISTEN, RENDEZVOUS, address_of

START_THEM = "start the ranks with torchrun, or set RANK (from 0) and WORLD_SIZE for each of them"


class Place(NamedTuple):
    """Rank ``rank`` of ``size``, on device ``local`` of its machine; the ranks meet at ``meeting``.

    Rank 0 listens at ``address`` for the run that knows ``key``; on the others the key is empty.
    """

    rank: int
    size: int
    local: int
    meeting: str
    address: str | tuple[str, int]
    key: bytes


def place_of(environment: MutableMapping[str, str]) -> Place:
    """The place of this process. The key is taken out, so that nothing this process starts inherits it.

    Raises:
        InputError: something is missing, or is not what it must be.
    """
    key = environment.pop(KEY, "")
    size = _number(environment, "WORLD_SIZE", START_THEM)
    rank = _number(environment, "RANK", START_THEM)
    if rank >= size:
        raise InputError(f"RANK is {rank} of {size}, counted from 0", where="RANK", how=START_THEM)
    local = _number(environment, "LOCAL_RANK", START_THEM) if "LOCAL_RANK" in environment else 0
    meeting = "env://"
    if RENDEZVOUS in environment:
        meeting = f"file://{environment[RENDEZVOUS]}"
    else:
        how = "start the ranks with torchrun, or set MASTER_ADDR and MASTER_PORT to a port of rank 0's machine"
        _text(environment, "MASTER_ADDR", how)
        _number(environment, "MASTER_PORT", how)
    if rank > 0:
        return Place(rank, size, local, meeting, "", b"")
    if not key:
        raise InputError(f"{KEY} is not set", where=KEY, how="set it to the same secret here and where the run starts")
    how = "set it to host:port, such as 0.0.0.0:29400, or to the path of a Unix socket"
    return Place(rank, size, local, meeting, address_of(_text(environment, LISTEN, how)), key.encode())


def _text(environment: MutableMapping[str, str], name: str, how: str) -> str:
    if not environment.get(name):
        raise InputError(f"{name} is not set", where=name, how=how)
    return environment[name]


def _number(environment: MutableMapping[str, str], name: str, how: str) -> int:
    text = _text(environment, name, how)
    if not (text.isascii() and text.isdigit()):
        raise InputError(f"{name} is {text!r}, which is no number", where=name, how=how)
    return int(text)
