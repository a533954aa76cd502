"""Errors a person can act on: what was wrong, where, and how to mend it."""

from __future__ import annotations

from pathlib import Path

EXIT_BAD_INPUT = 2
"""The input or the environment is wrong; a retry without a change fails again."""
EXIT_NO_CANDIDATE = 3
"""Everything worked and the answer is no: triage refused, the monitor stopped, or the gate failed."""
EXIT_LOST = 75
"""Something that this process depended on has gone, such as a rank or all servers (EX_TEMPFAIL of sysexits.h): the same
command goes on from the newest checkpoint, and may well succeed."""
EXIT_STOPPED = 143
"""It was asked to stop (SIGTERM), as a shell says it; the same command goes on."""


class EvenkeelError(Exception):
    """An expected failure, shown without a traceback.

    Args:
        what: what is wrong, in one sentence without a full stop.
        where: the file, line, setting or object it is about.
        how: what the reader should do about it.
    """

    exit_code = EXIT_BAD_INPUT

    def __init__(self, what: str, *, where: str | Path | None = None, how: str | None = None) -> None:
        super().__init__(what)
        self.what, self.where, self.how = what, None if where is None else _printable(str(where)), how

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.how:
            lines.append(f"  mend:  {self.how}")
        return "\n".join(lines)


def _printable(text: str) -> str:
    """``text`` with escapes for what no output could show: bytes of a path that is not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


class InputError(EvenkeelError):
    """A file, a setting or the machine is not as it must be (exit code 2)."""


class PeerLost(InputError):
    """What this process worked with has gone or fallen silent, and nothing is wrong with its own input (exit code
    75)."""

    exit_code = EXIT_LOST


class RankLost(PeerLost):
    """A rank of the learner has gone or does not answer. It is an error while the run is stopping, too: ranks that
    receive SIGTERM go on until the run has its checkpoint."""


class Stopped(EvenkeelError):
    """Somebody has asked this process to stop (exit code 143)."""

    exit_code = EXIT_STOPPED


class NoCandidate(EvenkeelError):
    """The run was judged and no checkpoint may be proposed (exit code 3)."""

    exit_code = EXIT_NO_CANDIDATE
