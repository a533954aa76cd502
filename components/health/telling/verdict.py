"""A whole run's health on one page: one headline, then seen, done, helped, cost, not judged, next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.config import Settings
from components.health.responses.ledger import Ledger
from components.health.telling import answers
from components.health.telling.headline import State, headline, state_of
from components.health.telling.told import Told
from components.types import StepRecord, Verdict

Tone = Literal["good", "unsure", "bad"]
TONES: dict[State, Tone] = {
    "healthy": "good", "warned": "unsure", "recovered": "good", "acted": "unsure", "not recovered": "bad",
    "worse": "bad", "stopped": "bad", "not watched": "unsure", "not trained": "unsure",
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
    told = Told(settings, train_metrics, records, verdicts, ledger)
    state = state_of(told)
    questions = {
        "What was seen": answers.seen(told),
        "What was done": answers.was_done(told),
        "Did it help": answers.did_it_help(told),
        "What it cost": answers.cost(told),
        "What could not be judged": answers.not_judged(told),
        "What to do next": answers.what_next(told, state),
    }
    return RunVerdict(state, headline(told, state), tuple(Part(name, tuple(said)) for name, said in questions.items()))
