"""``python -m components.sinks FOLDER SECONDS``: sends a run's workspace to its sinks until standard input ends.

A process of its own, so that a library that hangs, leaks or dies takes nothing with it. What it has to say goes to
standard output, a line each; what libraries print goes to standard error.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from components.config import load
from components.errors import EvenkeelError
from components.layout import Layout
from components.printing import printable
from components.sinks.follow import LATE, Follower, deliveries

LOOK = 5.0
"""Seconds between two looks whether a sink hangs."""


def main(folder: Path, seconds: float) -> int:
    """Follow the run, and send the rest in so many seconds when it is over; returns 1 where that was not enough."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.nice(10)

    def say(text: str) -> None:
        with suppress(OSError):  # the run that listened is gone
            print(printable(" ".join(text.split())), file=out, flush=True)

    layout = Layout(folder)
    with alone(layout.state / "sinks" / "lock"):
        follower = Follower(list(deliveries(load(layout.params), layout, say)))
        follower.start()
        named: set[str] = set()
        while not over():
            for name in set(follower.late()) - named:
                named.add(name)
                say(f"{name} has not answered for {LATE:.0f} seconds; the run does not wait for it")
        unsent = follower.end(seconds)
    if unsent:
        say(f"not everything was sent to: {', '.join(unsent)}")
    out.flush()
    return bool(unsent)


def over() -> bool:
    """Wait a moment; whether standard input has ended, with the process at its other end."""
    ready, _, _ = select.select([sys.stdin], [], [], LOOK)
    return bool(ready) and not os.read(0, 4096)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process sends this run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    try:
        code = main(Path(sys.argv[1]), float(sys.argv[2]))
    except EvenkeelError as error:
        print(error, file=sys.stderr)
        code = 2
    os._exit(code)  # threads and helpers of libraries that hang would keep it alive
