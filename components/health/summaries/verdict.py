"""A whole run's health on one page: one headline, then seen, done, helped, cost, not judged, next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.config import Settings
from components.health.records import Ledger
from components.health.summaries import answers
from components.health.summaries.phrases import done, helped, readable
from components.health.summaries.run_summary import RunSummary, State, named, rules_of
from components.types import StepRecord, Verdict
from components.words import plural

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


def state_of(summary: RunSummary) -> State:
    if summary.train["outcome"] == "stopped":
        return "stopped"
    if summary.train["outcome"] == "adopted":
        return "adopted"
    if not summary.settings.health.enabled or summary.broke:
        return "not watched"
    if summary.lost_accuracy:
        return "not recovered" if summary.acts else "worse"
    if not summary.acts:
        return "warned" if summary.verdicts else "healthy"
    outcomes = [summary.ledger.outcome(one) for one in summary.last_acts]
    known = [None if one is None else one.recovered for one in outcomes]
    if False in known:
        return "not recovered"
    return "acted" if None in known else "recovered"


def headline(summary: RunSummary, state: State) -> str:
    steps = plural(summary.steps, "step")
    match state:
        case "stopped":
            return _stopped(summary)
        case "adopted":
            return _adopted(summary)
        case "not watched" if summary.broke:
            return f"Not watched: the health monitor broke at step {summary.broke.step}, and judged no later step."
        case "not watched":
            return f"Not watched: {steps} with the health monitor switched off (health.enabled)."
        case "healthy":
            return f"Healthy: {steps}, no rule fired."
        case "warned":
            rules = [readable(rule) for rule in rules_of(summary.verdicts)]
            return f"Warned: {steps}; {named(rules)} fired, nothing was changed."
        case "worse":
            return f"Worse: {steps}; {'; '.join(summary.lost_accuracy)}."
    price = f"; cost {plural(summary.lost, 'step')}" if summary.lost else ""
    return f"{state.capitalize()}: {_acts(summary)}{price}."


def _adopted(summary: RunSummary) -> str:
    who = summary.train["trainer"]
    fired = [readable(rule) for rule in rules_of(summary.verdicts)]
    said = f"{named(fired)} fired" if fired else "no rule that could judge it fired"
    return f"Adopted: trained by {who}, not watched; of {plural(summary.steps, 'logged step')} {said}."


def _stopped(summary: RunSummary) -> str:
    rule = str(summary.train["stopped_by"])
    stop = next((one for one in reversed(summary.verdicts) if one.rule == rule), None)
    response = next((one for one in reversed(summary.acts) if one.level == "stop"), None)
    step = response.step if response else stop.step if stop else summary.steps - 1
    before = [one for one in summary.acts if one is not response]
    tries = f", after {plural(len(before), 'response')} that did not save the run" if before else ""
    why = summary.why(rule, str(summary.train["reason"]))
    sentence = f" {why[:1].upper()}{why[1:]}." if why else ""
    return f"Stopped at step {step}: {readable(rule)}{tries}.{sentence}"


def _acts(summary: RunSummary) -> str:
    """The one response as a sentence, or how many there were."""
    if len(summary.acts) == 1:
        (only,) = summary.acts
        return (
            f"{readable(only.rule)} at step {only.step}; {done(only)}, and {helped(only, summary.ledger.outcome(only))}"
        )
    steps = {rule: [str(one.step) for one in summary.acts if one.rule == rule] for rule in rules_of(summary.acts)}
    where = named([f"{readable(rule)} at step{'s' if len(at) > 1 else ''} {named(at)}" for rule, at in steps.items()])
    known = [summary.ledger.outcome(one) for one in summary.acts]
    judged = [outcome.recovered for outcome in known if outcome is not None and outcome.recovered is not None]
    recovered = sum(judged)
    open_ = len(summary.acts) - len(judged)
    waiting = f", {open_} not judged before the run ended" if open_ else ""
    return f"the run was acted on {len(summary.acts)} times ({where}); {recovered} of {len(judged)} recovered{waiting}"
