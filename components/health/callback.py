"""The health monitor inside somebody else's training: a callback for TRL's trainers.

::

    from components.health.callback import EvenkeelCallback

    trainer = GRPOTrainer(..., callbacks=[EvenkeelCallback("health", stop=True)])

Not imported by `components.health`, which needs no transformers.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from components.config.judgement import RuleSettings
from components.files import append_line
from components.health.monitor import GRAVE, worst
from components.health.other_runs import OtherRun
from components.health.own_scale import OwnScale, scaled
from components.health.readers.jsonl import row_of
from components.health.readers.log import names_of
from components.health.readers.names import load_names
from components.health.readers.steps import Row, Steps
from components.health.rulebook import LOG_RULES, load_rules
from components.types import StepRecord, Verdict


class EvenkeelCallback(TrainerCallback):  # type: ignore[misc]  # mypy does not read transformers
    """Judges every logged step, prints what the rules say, and stops the training on request. It changes no setting:
    what a rule of level intervene or rollback would have done is left to the reader of its verdict.

    It writes ``records.jsonl`` and ``verdicts.jsonl`` into ``folder``, one JSON object a line; `evenkeel audit` reads
    the former, in which numbers that are not finite stand as text. A training that continues from a checkpoint is
    judged with the history that the checkpoint holds.

    Every process judges, by the same numbers (the trainers gather them), so that all stop together; the main one alone
    prints and writes. A fault of the monitor or of the disk never ends a training: it is said once and the part that
    failed goes off, and no other place in this project swallows an error.

    Args:
        folder: where to write; None writes nothing.
        rules: a file of rules, or rules; `configs/health/logs.yaml` when None.
        names: a mapping file of the trainer's metrics to our signals; TRL's GRPOTrainer when None.
        stop: end the training when a rule of level rollback or stop speaks.
        say: gets every line that is to be printed.

    Raises:
        InputError: rules or mapping are wrong: a monitor that cannot be built must not pass for one that is silent.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        rules: str | Path | Mapping[str, RuleSettings] | None = None,
        names: str | Path | None = None,
        stop: bool = False,
        say: Callable[[str], None] = print,
    ) -> None:
        if isinstance(rules, Mapping):
            self._rules = dict(rules)
        else:
            self._rules = load_rules(LOG_RULES if rules is None else Path(rules))
        self._names = names_of("trl") if names is None else load_names(Path(names))
        self._run, self._scale = OtherRun(self._rules), OwnScale()
        self._folder = None if folder is None else Path(folder)
        self._stop, self._say = stop, say
        self._off: set[str] = set()
        self._waiting: Row | None = None
        self._last = -1
        self.verdicts: list[Verdict] = []
        """Everything the rules have said since the training began, in order."""

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Begin with what the training already has behind it: nothing, or the history of its checkpoint."""
        self._attempt("monitor", lambda: self._begin(state))

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Take in what was logged. A step that is to be evaluated too is judged when that is done."""
        self._attempt("monitor", lambda: self._take(logs or {}, state, control))

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Judge the step that waited for its evaluation."""
        self._attempt("monitor", lambda: self._finish(state, control))

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Judge what still waits."""
        self._attempt("monitor", lambda: self._finish(state, control))

    def _begin(self, state: TrainerState) -> None:
        self._run, self._scale = OtherRun(self._rules), OwnScale()
        self._waiting, self._last, self.verdicts = None, -1, []
        before = Steps(self._names)
        for row in filter(None, map(row_of, state.log_history)):
            before.add(row)
        for record in before.records():
            self._judge(scaled(self._scale, record))

    def _take(self, logs: Mapping[str, Any], state: TrainerState, control: TrainerControl) -> None:
        step, values = state.global_step, {name: value for name, value in logs.items() if self._names.reads(name)}
        if self._waiting is not None and self._waiting.step != step:
            self._finish(state, control)
        if not values:
            return
        if step <= self._last:
            if state.is_world_process_zero:
                self._complain(f"metrics of step {step} came after it was judged and were left out")
            return
        before = {} if self._waiting is None else self._waiting.values
        self._waiting = Row(step, {**before, **values})
        if not control.should_evaluate:
            self._finish(state, control)

    def _finish(self, state: TrainerState, control: TrainerControl) -> None:
        if self._waiting is None:
            return
        row, self._waiting = self._waiting, None
        assert row.step is not None, "a step that waits has a number"
        record = scaled(self._scale, StepRecord(row.step, self._names.translate(row.values)))
        verdicts = self._judge(record)
        if self._stop and worst(verdicts) in GRAVE:
            control.should_training_stop = True
        if state.is_world_process_zero:
            self._attempt("output", lambda: self._report(record, verdicts, control.should_training_stop))

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
