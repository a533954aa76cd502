"""Errors a person can act on: what was wrong, where, and how to fix it."""

from __future__ import annotations

import errno
from pathlib import Path

from components.printing import message, printable, shortened

EXIT_BAD_INPUT = 2
"""The input or the environment is wrong; a retry without a change fails again."""
EXIT_NO_CANDIDATE = 3
"""Everything worked and the answer is no: triage refused, the monitor stopped, or the gate failed."""
EXIT_LOST = 75
"""Something that this process depended on has gone, such as a rank or all servers (EX_TEMPFAIL of sysexits.h): the same
command goes on from the newest checkpoint, and may well succeed."""
EXIT_STOPPED = 143
"""It was stopped by SIGTERM (128 + 15, as in a shell); the same command goes on."""
LONGEST_PLACE = 400
"""Characters of the place of an error that are shown."""
MACHINE = {
    errno.ENOSPC: "check that the disk has room (`df -h`)",
    errno.EDQUOT: "remove what you do not need: your share of this disk is used up",
    errno.EROFS: "write to another disk: this one can only be read",
    errno.EACCES: "check that you may read and write there",
    errno.EPERM: "check that you may do this there",
    errno.ENAMETOOLONG: "choose a shorter name, or a shorter path",
}
"""Errors of the operating system that say something about the machine or the input and nothing about the code: number
-> what to do."""


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
        self.what, self.where, self.how = what, None if where is None else str(where), how

    def __str__(self) -> str:
        """As it is printed: nothing of it is obeyed, and no line of it but the first begins at the left."""
        lines = [message(self.what)]
        if self.where:
            lines.append(f"  where: {printable(shortened(self.where, LONGEST_PLACE))}")
        if self.how:
            lines.append(f"  fix:   {message(self.how)}")
        return "\n".join(lines)


class CorrectableError(EvenkeelError):
    """What a person can correct before the same command goes on (exit code 2). Code that does without the part that
    failed catches this."""


class InputError(CorrectableError):
    """A file, a setting or an argument is not as it must be (exit code 2)."""


class MachineError(CorrectableError):
    """The machine refuses: its disk is full or cannot be written, its memory is used up, rights are missing (exit code
    2)."""


class NonfiniteWeights(CorrectableError):
    """The policy in training holds NaN or infinite numbers (exit code 2)."""


class PeerLost(CorrectableError):
    """What this process worked with has gone or fallen silent, and nothing is wrong with its own input (exit code
    75)."""

    exit_code = EXIT_LOST


class RankLost(PeerLost):
    """A rank of the learner has gone or does not answer. It is an error while the run is stopping, too: ranks that
    receive SIGTERM go on until the run has its checkpoint."""


class Stopped(EvenkeelError):
    """This process was requested to stop (exit code 143)."""

    exit_code = EXIT_STOPPED


class NoCandidate(EvenkeelError):
    """The run was judged and no checkpoint may be proposed (exit code 3)."""

    exit_code = EXIT_NO_CANDIDATE


def of_machine(error: OSError) -> MachineError | None:
    """What the operating system refused, for the person who can change it; None where it is a fault of the code."""
    if error.errno not in MACHINE:
        return None
    where = None if error.filename is None else str(error.filename)
    return MachineError(f"the machine refused: {error.strerror}", where=where, how=MACHINE[error.errno])
