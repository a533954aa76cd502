"""A whole run's health on one page: one headline, then seen, done, helped, cost, not judged, next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.config import Settings
from components.health.responses.ledger import Ledger
from components.health.summaries import answers
from components.health.summaries.headline import State, headline, state_of
from components.health.summaries.run_summary import RunSummary
from components.types import StepRecord, Verdict

Tone = Literal["good", "unsure", "bad"]
TONES: dict[State, Tone] = {
    "healthy": "good", "warned": "unsure", "recovered": "good", "acted": "unsure", "not recovered": "bad",
    "worse": "bad", "stopped": "bad", "adopted": "unsure", "not watched": "unsure", "not trained": "unsure",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Part:
    """One question and its answers, a sentence each."""

    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunVerdict:
    """The page. ``state`` is the headline's first word."""

    state: State
    headline: str
    parts: tuple[Part, ...] = ()

    @property
    def tone(self) -> Tone:
        return TONES[self.state]


def run_verdict(
    settings: Settings,
    train_metrics: Mapping[str, Any] | None,
    records: Sequence[StepRecord],
    verdicts: Sequence[Verdict],
    ledger: Ledger,
) -> RunVerdict:
    """The verdict on a run.

    Args:
        settings: those of the run; they hold the rules.
        train_metrics: `train.json`; None where nothing was trained.
        records: every step.
        verdicts: what the rules said, in order.
        ledger: what was done about it.
    """
    if train_metrics is None:
        return RunVerdict("not trained", "Not trained: there is no training record, so there is nothing to judge.")
    summary = RunSummary(settings, train_metrics, records, verdicts, ledger)
    state = state_of(summary)
    questions = {
        "What was seen": answers.seen(summary),
        "What was done": answers.actions_taken(summary),
        "Did it help": answers.outcomes_of_actions(summary),
        "What it cost": answers.cost(summary),
        "What could not be judged": answers.not_judged(summary),
        "What to do next": answers.next_steps(summary, state),
    }
    return RunVerdict(
        state, headline(summary, state), tuple(Part(name, tuple(said)) for name, said in questions.items())
    )
