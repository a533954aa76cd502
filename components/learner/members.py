"""The ranks of a learner as processes: which of them was lost, and what it left to read."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from components.errors import InputError, RankLost
from components.processes.living import alive, born

SETTLE = 3.0
"""Seconds in which a rank that was lost is seen to have ended."""
POLL = 0.05
TAIL = 15
"""Lines of a log that an error shows."""
LOST = "lost"
"""The reason of a rank that ends because it has lost another."""
RESUME = "started again, the run goes on from its newest checkpoint"


class Member(NamedTuple):
    """One rank as the others know it: its process, the code that it runs, and its log (empty: standard output)."""

    rank: int
    host: str
    pid: int
    began: float
    program: str
    log: str

    @classmethod
    def this(cls, rank: int, program: str, log: str) -> Member:
        """This process."""
        return cls(rank, socket.gethostname(), os.getpid(), born(), program, log)

    @property
    def name(self) -> str:
        return f"learner-{self.rank}"

    @property
    def where(self) -> str:
        return self.log or f"rank {self.rank} on {self.host}"

    def state(self) -> str:
        """``running``, ``stopped`` (SIGSTOP) or ``ended``; ``running`` for a process of another machine."""
        if self.host != socket.gethostname():
            return "running"
        try:
            status = psutil.Process(self.pid).status()
        except psutil.NoSuchProcess:
            return "ended"
        if not alive(self.pid, self.began):
            return "ended"
        return "stopped" if status == psutil.STATUS_STOPPED else "running"

    def tail(self) -> str:
        """The last lines of its log, where that can be read here."""
        with suppress(OSError):
            return "\n".join(Path(self.log).read_text("utf-8", "replace").splitlines()[-TAIL:])
        return ""


def lost(
    command: str,
    members: Sequence[Member],
    reason_of: Callable[[Member], str],
    behind: Sequence[Member],
    error: RuntimeError,
    seconds: float,
) -> InputError | RankLost:
    """The error that a connection which ``error`` ended means for the run.

    Args:
        members: the other ranks.
        reason_of: why a rank ended, by its own account; empty where it gave none.
        behind: the ranks that have not carried out the command; they are named where all of them still run.
        seconds: the time limit of a command.

    Returns:
        An `InputError` where a rank failed, which it would again; `RankLost` otherwise.
    """
    culprit = first_to_end(members, reason_of)
    if culprit is None:
        who = " and ".join(member.name for member in behind) or "a rank of the learner"
        what = f"{who} did not carry out {command!r}: {str(error).splitlines()[0]}"
        where = behind[0].where if behind else "learner.ranks"
        return RankLost(what, where=where, how=f"read the logs of the ranks; {RESUME}")
    if culprit.state() == "stopped":
        what = f"{culprit.name} has been stopped (SIGSTOP), and did not carry out {command!r} within {seconds:g} s"
        return RankLost(what, where=culprit.where, how=f"find out who stopped it; {RESUME}")
    tail = f"; the end of its log:\n{text}" if (text := culprit.tail()) else ""
    if reason := reason_of(culprit):
        what = f"{culprit.name} failed during {command!r}: {reason}{tail}"
        return InputError(what, where=culprit.where, how=RESUME)
    what = f"{culprit.name} was lost during {command!r} and did not say why (killed, or out of memory){tail}"
    return RankLost(what, where=culprit.where, how=RESUME)


def first_to_end(members: Sequence[Member], reason_of: Callable[[Member], str]) -> Member | None:
    """The rank that has ended or was stopped, and did not only lose another one."""
    until = time.monotonic() + SETTLE
    while time.monotonic() < until:
        for member in members:
            reason = reason_of(member)  # of a rank of another machine it is all that is known
            if reason != LOST and (reason or member.state() != "running"):
                return member
        time.sleep(POLL)
    return None
