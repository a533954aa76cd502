"""What a run and its ranks have to agree about."""

from __future__ import annotations

from functools import cache

import torch

from components.errors import InputError
from components.files import code_digest
from components.processes.environments import LEARNER_KEY

RENDEZVOUS, LISTEN, KEY = "EVENKEEL_RENDEZVOUS", "EVENKEEL_LEARNER_LISTEN", LEARNER_KEY
"""Environment variables of a rank; `components.learner.worker` explains them."""
START, CONFIGURE, LOGPROBS, STEP, WEIGHTS, SAVE, LOAD, RECEIVE, PING, CLOSE = (
    "start",
    "configure",
    "logprobs",
    "step",
    "weights",
    "save",
    "load",
    "receive",
    "ping",
    "close",
)
BROKE, REFUSED, LOST_PEER = 1, 2, 3
"""Exit codes of a rank: an error of its own, bad input, or another rank that has gone."""


@cache
def program() -> str:
    """What this side runs: torch, and the digest of the components' code."""
    return f"torch {torch.__version__}, components {code_digest()[:12]}"


def must_agree(what: str, run: object, ranks: object, how: str) -> None:
    """Refuse ranks that are not what the run takes them for.

    Raises:
        InputError: the two differ; both are named.
    """
    if run != ranks:
        raise InputError(f"{what}: {run} in the run, {ranks} in its ranks", where="learner.ranks", how=how)


def address_of(text: str, where: str = LISTEN) -> str | tuple[str, int]:
    """Where to listen or connect: a Unix socket's path, or host and port.

    Raises:
        InputError: it is neither.
    """
    if text.startswith("/"):
        return text
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and 0 < int(port) < 1 << 16 and ":" in text):
        how = "write host:port, such as 0.0.0.0:29400, or the path of a Unix socket"
        raise InputError(f"{text!r} is no address", where=where, how=how)
    return host, int(port)
