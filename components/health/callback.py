"""The health monitor inside somebody else's training: a callback for TRL's trainers.

::

    from components.health.callback import EvenkeelCallback

    trainer = GRPOTrainer(..., callbacks=[EvenkeelCallback("health", stop=True)])

Not imported by `components.health`, which needs no transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from components.health.in_process import InProcess
from components.health.monitor import GRAVE, worst
from components.health.other_runs import scaled
from components.health.readers.formats import row_of
from components.health.readers.steps import Row, Steps


class EvenkeelCallback(InProcess, TrainerCallback):  # type: ignore[misc]  # mypy does not read transformers
    """Judges every logged step and stops the training on request; see `InProcess`. It changes no setting: what a rule
    of level intervene or rollback would have done is left to the reader of its verdict. A training that continues from
    a checkpoint is judged with the history that the checkpoint holds.

    Every process judges, by the same numbers (the trainers gather them), so that all stop together; the main one alone
    prints and writes.
    """

    trainer = "trl"
    _waiting: Row | None = None

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
        """Judge the step that waited for its evaluation, or for the end."""
        self._attempt("monitor", lambda: self._finish(state, control))

    on_train_end = on_evaluate

    def _begin(self, state: TrainerState) -> None:
        self._forget()
        self._waiting = None
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
        record = self._translated(row)
        verdicts = self._judge(record)
        if self._stop and worst(verdicts) in GRAVE:
            control.should_training_stop = True
        if state.is_world_process_zero:
            self._attempt("output", lambda: self._report(record, verdicts, control.should_training_stop))
