"""`evenkeel watch`: a log judged while another trainer writes it, a line a step, and calls at a grave verdict."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from components.errors import EXIT_NO_CANDIDATE, InputError
from components.files import read_text
from components.health.following.calls import Call
from components.health.following.live import LiveLog, Said
from components.health.following.tail import CHUNK, Lines, Tail
from components.health.monitor import GRAVE
from components.health.readers.formats import is_document
from components.opening import MEBIBYTE
from components.printing import printable
from components.types import StepRecord, Verdict

STDIN = Path("-")
FIGURES = (
    ("reward", "reward {:.3g}"),
    ("length_mean", "length {:.0f}"),
    ("kl_ref", "kl {:.2g}"),
    ("entropy", "entropy {:.2g}"),
    ("grad_norm", "grad {:.2g}"),
)

Source = Callable[[], Iterator[str] | None]
"""The new lines of a log since the last call; None at its end, which only a pipe has."""


@dataclass
class Watch:
    """A live log, what has been said of it, and whom to call. ``quiet`` is for how long, in seconds, nothing may be new
    before the watch ends; infinite: it never does."""

    live: LiveLog
    said: Said
    state: Path | None
    calls: Sequence[Call]
    say: Callable[[str], None]
    every: float
    quiet: float
    grave: list[Verdict] = field(default_factory=list)

    def follow(self, sources: Sequence[Source]) -> int:
        """Watch until the pipe ends or nothing has been new for ``quiet`` seconds. Exit code 3: a grave rule fired."""
        latest = time.monotonic()
        while True:
            new, ended = self._take(sources)
            self.tell(settled=ended or not new)
            if ended:
                break
            if new:
                latest = time.monotonic()  # after what was said of it: a slow call is no quiet log
            elif time.monotonic() - latest >= self.quiet:
                break
            else:
                time.sleep(self.every)
        return EXIT_NO_CANDIDATE if self.grave else 0

    def _take(self, sources: Sequence[Source]) -> tuple[bool, bool]:
        """Take the new lines of all; whether there were any, and whether every source has ended."""
        new, found = False, [source() for source in sources]
        for number, lines in enumerate(found):
            for line in lines or ():
                new = True
                self.live.take(line, number)
        return new, all(lines is None for lines in found)

    def tell(self, settled: bool) -> None:
        """Say what is new, write that down, and call for what is grave."""
        for record, verdicts in self.live.due(settled):
            self.say(health_line(record, verdicts))
            self.said.add(record.step, verdicts)
            if self.state is not None:
                self.said.save(self.state)  # before the calls: what ends this process is not called twice
            for verdict in verdicts:
                self.say(f"step {verdict.step}: {verdict.rule} says {verdict.level}: {verdict.reason}")
                if verdict.level in GRAVE:
                    self.grave.append(verdict)
                    for call in self.calls:
                        self.say(f"step {verdict.step}: {call(verdict.to_dict())}")


def health_line(record: StepRecord, verdicts: Sequence[Verdict]) -> str:
    """Figures of one step, and a word."""
    figures = [text.format(record.signals[name]) for name, text in FIGURES if name in record.signals]
    word = ", ".join(verdict.rule for verdict in verdicts) or "ok"
    return printable("  ".join([f"step {record.step}", *figures, word]))


def pipe(descriptor: int) -> Source:
    """What comes through a pipe."""
    lines = Lines()

    def read() -> Iterator[str] | None:
        if not select.select([descriptor], [], [], 0)[0]:
            return iter(())
        data = os.read(descriptor, CHUNK)
        return lines.take(data) if data else None

    return read


def sources(logs: Sequence[Path]) -> list[Source]:
    """Where the lines come from.

    Raises:
        InputError: standard input together with files, or a file that is written whole and does not grow.
    """
    if STDIN in logs and len(logs) > 1:
        raise InputError("standard input together with files", where="LOG", how="name files, or - alone")
    for path in logs:
        if path != STDIN and path.is_file() and path.stat().st_size < MEBIBYTE and is_document(read_text(path)):
            how = "watch the console, or put the callback into the training (docs/other-runs.md)"
            raise InputError("a trainer_state.json is written whole and does not grow", where=path, how=how)
    return [pipe(0) if path == STDIN else Tail(path).read for path in logs]
