"""Lines of a growing log as steps that are judged once, each when its last row is likely to have come; and what has
been said of it, in a small file: a restart says nothing twice."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from components.config.judgement import RuleSettings
from components.errors import InputError
from components.files import read_json, write_json
from components.health.other_runs import OtherRun, OwnScale, scaled
from components.health.readers.log import READERS, Read, likeliest, names_of, recogniser
from components.health.readers.names import Names
from components.health.readers.steps import Row, Steps
from components.types import StepRecord, Verdict

WAITING = 1000
"""Lines that are kept, at the most, while the format is not known."""
Judged = tuple[StepRecord, list[Verdict]]


@dataclass
class LiveLog:
    """A run of another trainer.

    ``format`` is found by the first rows where it is ``auto``, ``names`` by the format where it is None. Steps up to
    ``until`` were reported by an earlier process: they are judged again, as history, and nothing is said of them.
    Rules that have ``fired`` then fire again only after a rest.
    """

    rules: Mapping[str, RuleSettings]
    format: str = "auto"
    names: Names | None = None
    until: int = -1
    fired: Collection[str] = ()
    _recognise: Callable[[str], tuple[str, Row] | None] = field(default_factory=recogniser)
    _rows: list[tuple[str, Row]] = field(default_factory=list)
    _waiting: deque[tuple[str, int]] = field(default_factory=lambda: deque(maxlen=WAITING))
    _read: dict[int, Read] = field(default_factory=dict)  # a reader for each file: some remember their latest heading
    _steps: Steps | None = None
    _judged: int = -1

    def __post_init__(self) -> None:
        if self.format != "auto":
            self._begin(self.format)
        self._fresh()

    def _fresh(self) -> None:
        self._run, self._scale = OtherRun(self.rules, self.fired), OwnScale()

    def _begin(self, format: str) -> None:
        self.format, self._steps = format, Steps(self.names or names_of(format))

    def take(self, line: str, file: int = 0) -> None:
        """Take in one line of a file. Of several files the first one counts: another rank's adds what that lacks."""
        if self._steps is None:
            self._wait(line, file)
            return
        if file not in self._read:
            self._read[file] = READERS[self.format]()
        if row := self._read[file](line):
            self._add(self._steps, row, file)

    def _wait(self, line: str, file: int) -> None:
        """Keep the line until the format is known, and then take all that waited."""
        self._waiting.append((line, file))
        if (found := self._recognise(line)) is None:
            return
        self._rows.append(found)
        format, known = likeliest(self._rows)
        if known or self.names is not None:
            self._begin(format)
            for waited, number in self._waiting:
                self.take(waited, number)

    def _add(self, steps: Steps, row: Row, file: int) -> None:
        if file and row.step is not None:
            known = steps.known(row.step)
            row = row._replace(values={name: value for name, value in row.values.items() if name not in known})
        if not file or (row.step is not None and row.step > self._judged):
            steps.add(row)

    def due(self, settled: bool) -> Iterator[Judged]:
        """Judge the steps that are complete: all but the latest, and that, too, where the log has ``settled``."""
        if self._steps is None:
            return
        again, self._steps.voided = self._steps.voided, None
        if again is not None and again < self._judged:  # resumed from a checkpoint
            self._fresh()
            self._judged, self.until = -1, min(self.until, again - 1)
            for record in self._steps.after(-1):
                if record.step < again:
                    self._judge(record)
        records = self._steps.after(self._judged)
        for record in records if settled else records[:-1]:
            verdicts = self._judge(record)
            if record.step > self.until:
                self.until = record.step
                yield record, verdicts

    def _judge(self, record: StepRecord) -> list[Verdict]:
        self._judged = record.step
        return self._run.observe(scaled(self._scale, record))


@dataclass
class Said:
    """The last step that was reported, and the rules that have fired."""

    until: int = -1
    fired: list[str] = field(default_factory=list)

    def add(self, step: int, verdicts: Sequence[Verdict]) -> None:
        """One more step was reported."""
        self.until = step
        self.fired = sorted({*self.fired, *(verdict.rule for verdict in verdicts)})

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        write_json(path, {"until": self.until, "spoken": self.fired})

    @classmethod
    def load(cls, path: Path) -> Said:
        """What an earlier process has said; nothing where there is no such file.

        Raises:
            InputError: the file is no such state.
        """
        how = "remove it: then everything in the log is said again"
        if not path.exists():
            return cls()
        found = read_json(path, how=how)
        if (
            not isinstance(found, dict)
            or set(found) != {"until", "spoken"}
            or type(found["until"]) is not int
            or not isinstance(found["spoken"], list)
        ):
            raise InputError("not the state of a watch", where=path, how=how)
        return cls(found["until"], [str(rule) for rule in found["spoken"]])
