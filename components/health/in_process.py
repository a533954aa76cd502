"""The health monitor inside another trainer's process: what the callbacks for the trainers share."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from components.config.judgement import RuleSettings
from components.files import append_line
from components.health.monitor import GRAVE
from components.health.other_runs import OtherRun, OwnScale, scaled
from components.health.readers.log import names_of
from components.health.readers.names import load_names
from components.health.readers.steps import Row
from components.health.rulebook import LOG_RULES, load_rules
from components.types import StepRecord, Verdict

Rules = str | Path | Mapping[str, RuleSettings] | None


class InProcess:
    """Judges every step, prints what the rules say, and writes ``records.jsonl`` and ``verdicts.jsonl``, one JSON
    object a line; `evenkeel audit` reads the former, in which numbers that are not finite stand as text.

    A fault of the monitor or of the disk never ends a training: it is said once and the part that failed goes off, and
    no other place in this project swallows an error.

    Args:
        folder: where to write; None writes nothing.
        rules: a file of rules, or rules; `configs/health/logs.yaml` when None.
        names: a mapping file of the trainer's metrics to our signals; that of ``trainer`` when None.
        stop: end the training when a rule of level rollback or stop fires.
        say: gets every line that is to be printed.

    Raises:
        InputError: rules or mapping are wrong: a monitor that cannot be built must not pass for one that is silent.
    """

    trainer: ClassVar[str]
    """Whose names of metrics are known: a file of `configs/health/names`."""

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        rules: Rules = None,
        names: str | Path | None = None,
        stop: bool = False,
        say: Callable[[str], None] = print,
    ) -> None:
        if isinstance(rules, Mapping):
            self._rules = dict(rules)
        else:
            self._rules = load_rules(LOG_RULES if rules is None else Path(rules))
        self._names = names_of(self.trainer) if names is None else load_names(Path(names))
        self._folder = None if folder is None else Path(folder)
        self._stop, self._say = stop, say
        self._off: set[str] = set()
        self.verdicts: list[Verdict] = []
        """Everything the rules have said since the training began, in order."""
        self._forget()

    def _forget(self) -> None:
        """Forget what was judged."""
        self._run, self._scale, self._last, self.verdicts = OtherRun(self._rules), OwnScale(), -1, []

    def _translated(self, row: Row) -> StepRecord:
        """A step in our signals."""
        assert row.step is not None, "a step that waits has a number"
        return scaled(self._scale, StepRecord(row.step, self._names.translate(row.values)))

    def _judge(self, record: StepRecord) -> list[Verdict]:
        verdicts = self._run.observe(record)
        self._last = record.step
        self.verdicts += verdicts
        return verdicts

    def _report(self, record: StepRecord, verdicts: list[Verdict], stopped: bool) -> None:
        for verdict in verdicts:
            end = "; training stops" if stopped and verdict.level in GRAVE else ""
            self._say(f"evenkeel: step {verdict.step}: {verdict.rule} says {verdict.level}: {verdict.reason}{end}")
        if self._folder is not None:
            append_line(self._folder / "records.jsonl", _as_row(record))
            for verdict in verdicts:
                append_line(self._folder / "verdicts.jsonl", verdict.to_dict())

    def _attempt(self, part: str, act: Callable[[], None]) -> None:
        """Go on without a part that failed."""
        if part in self._off:
            return
        try:
            act()
        except Exception as error:
            self._off.add(part)
            self._complain(f"the health {part} is off from here on ({type(error).__name__}: {error}); training goes on")

    def _complain(self, text: str) -> None:
        with suppress(Exception):  # a broken pipe, for one
            print(f"evenkeel: {text}", file=sys.stderr, flush=True)


def _as_row(record: StepRecord) -> dict[str, Any]:
    """The record as strict JSON: what is not finite becomes text, which `evenkeel audit` knows."""
    signals = {name: value if math.isfinite(value) else str(value) for name, value in record.signals.items()}
    return {**record.to_dict(), "signals": signals}
