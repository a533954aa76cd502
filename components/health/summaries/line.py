"""The live line under the progress bar: the figures that show whether a run is healthy, and a state, of the ledger of a
run that goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from components.files import os_errors
from components.health.records import ENTRY, Ledger
from components.health.responses.under_watch import UNDER_WATCH
from components.health.summaries.phrases import short_change
from components.types import Outcome, Response, StepRecord, Verdict

WIDTH = 100
"""Characters at the most."""
SHOWN = 10
"""Steps for which the line goes on to say that a rule warned: at one step it would be gone before it is read."""
FIGURES = (
    ("accuracy", "acc {:.2f}"),
    ("entropy", "entropy {:.2f}"),
    ("zero_variance_share", "zero-var {:.0%}"),
    ("dev_pass_at_1", "dev {:.2f}"),
)


def health_line(record: StepRecord, verdicts: Sequence[Verdict], ledger: Ledger) -> str:
    """Figures of one step and the run's state.

    Args:
        record: the step.
        verdicts: what the rules said up to this step, in order.
        ledger: what was done about it up to this step.
    """
    figures = [text.format(record.signals[name]) for name, text in FIGURES if name in record.signals]
    broke = "monitor_failed" in record.notes
    line = "  ".join([*figures, "not watched: the monitor broke" if broke else state(record.step, verdicts, ledger)])
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def state(step: int, verdicts: Sequence[Verdict], ledger: Ledger) -> str:
    """A word and what it is about. A response is the state until its outcome is known, a warning for `SHOWN` steps."""
    entered = {(one.rule, one.step) for one in ledger.responses}  # if only as a note
    acts = [one for one in ledger.responses if one.level != "warn"]
    response = acts[-1] if acts else None
    if response is not None and response.level == "stop":
        return f"stopped: {response.rule}"
    if stop := next((one for one in verdicts if one.level == "stop" and (one.rule, one.step) not in entered), None):
        return f"stopped: {stop.rule}"
    if response is not None:
        outcome = ledger.outcome(response)
        if UNDER_WATCH in response.changes and not (outcome and outcome.recovered):
            return f"under watch: {response.rule}"
        if outcome is None:
            return _acting(response)
        if step - outcome.step < SHOWN and outcome.recovered is not None:
            return f"{'recovered' if outcome.recovered else 'not recovered'}: {response.rule}"
    answered = {(one.rule, one.step) for one in acts}
    warned = [one.rule for one in verdicts if step - one.step < SHOWN and (one.rule, one.step) not in answered]
    return f"warned: {warned[-1]}" if warned else "healthy"


def _acting(response: Response) -> str:
    if response.back_to is not None:
        return f"rolled back to {response.returns_to}"
    parts = [short_change(change) for change in response.changes[:1]]
    if len(response.changes) > 1:
        parts.append(f"and {len(response.changes) - 1} more")
    if response.quarantined:
        parts.append(f"{len(response.quarantined)} prompts out")
    return ", ".join([f"acted: {response.rule}", *parts])


class LiveLedger:
    """Takes the same time and memory in every step, however long the run.

    Args:
        path: only appended to while this object lives. What it holds at first is taken in too, so that a resumed run
            shows the entries from before, too.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0
        self.ledger = Ledger()
        """The latest response that changed something, all of the last `SHOWN` steps, and their outcomes."""

    def update(self, step: int) -> None:
        """Take in what was entered until this ``step``.

        Raises:
            InputError: the file cannot be read.
        """
        new = self._read()
        responses = (*self.ledger.responses, *(entry for entry in new if isinstance(entry, Response)))
        outcomes = (*self.ledger.outcomes, *(entry for entry in new if isinstance(entry, Outcome)))
        acts = [one.number for one in responses if one.level != "warn"]
        kept = tuple(one for one in responses if step - one.step < SHOWN or one.number in acts[-1:])
        numbers = {one.number for one in kept}
        self.ledger = Ledger(kept, tuple(one for one in outcomes if one.of in numbers))

    @property
    def verdicts(self) -> list[Verdict]:
        """What the rules said in the last steps: every verdict has its entry, even where nothing was done."""
        return [Verdict(one.rule, one.asked, one.step, one.reason) for one in self.ledger.responses]

    def _read(self) -> list[Response | Outcome]:
        if not self._path.exists():
            return []
        with os_errors("read", self._path), self._path.open("rb") as file:
            file.seek(self._offset)
            lines = file.readlines()
            self._offset = file.tell()
        return [ENTRY.validate_json(line) for line in lines]
