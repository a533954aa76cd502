"""A whole run's health on one page: one headline, then seen, done, helped, cost, not judged, next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from components.config import Settings
from components.health.lineage import discarded
from components.health.monitor import unjudged
from components.health.responses.ledger import Ledger
from components.health.telling.advice import advice
from components.health.telling.ledger import outcomes_by_response
from components.health.telling.phrases import changes, done, helped, readable, then_now
from components.types import Response, StepRecord, Verdict
from components.words import number, percent, plural

State = Literal["healthy", "warned", "recovered", "acted", "not recovered", "stopped", "not watched", "not trained"]
Tone = Literal["good", "unsure", "bad"]
TONES: dict[State, Tone] = {
    "healthy": "good", "warned": "unsure", "recovered": "good", "acted": "unsure", "not recovered": "bad",
    "stopped": "bad", "not watched": "unsure", "not trained": "unsure",
}  # fmt: skip
NAMED = 3
"""Steps, rules or responses that a sentence names before it counts the rest."""
MOVED = (
    ("accuracy", "accuracy on the prompts that the schedule chose"),
    ("dev_pass_at_1", "held-out pass@1"),
    ("dev_pass_at_k", "held-out pass@k"),
)


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


@dataclass(frozen=True)
class _Told:
    """What there is to tell."""

    settings: Settings
    train: Mapping[str, Any]
    records: Sequence[StepRecord]
    verdicts: Sequence[Verdict]
    ledger: Ledger

    @property
    def acts(self) -> list[Response]:
        """Responses that changed something or stopped the run."""
        return [response for response in self.ledger.responses if response.level != "warn"]

    @property
    def broke(self) -> StepRecord | None:
        """The step at which the monitor itself failed, where it did."""
        return next((record for record in self.records if "monitor_failed" in record.notes), None)

    @property
    def steps(self) -> int:
        return len(self.records) or int(self.train["steps"])

    @property
    def lost(self) -> int:
        """Steps that the policy no longer has behind it; one that was thrown away twice counts once."""
        return sum(part.steps for part in discarded([record.step for record in self.records], self.acts))

    @property
    def progress(self) -> int:
        """Steps that the policy has behind it."""
        return self.steps - self.lost

    def why(self, rule: str, otherwise: str) -> str:
        return self.settings.health.rules[rule].why if rule in self.settings.health.rules else otherwise


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
    told = _Told(settings, train_metrics, records, verdicts, ledger)
    state = _state(told)
    answers = {
        "What was seen": _seen(told),
        "What was done": _done(told),
        "Did it help": _helped(told),
        "What it cost": _cost(told),
        "What could not be judged": _unjudged(told),
        "What to do next": _next(told, state),
    }
    return RunVerdict(state, _headline(told, state), tuple(Part(name, tuple(said)) for name, said in answers.items()))


def _state(told: _Told) -> State:
    if told.train["outcome"] == "stopped":
        return "stopped"
    if not told.settings.health.enabled or told.broke:
        return "not watched"
    if not told.acts:
        return "warned" if told.verdicts else "healthy"
    outcomes = outcomes_by_response(told.ledger)
    known = [outcomes.get(response.number) for response in told.acts]
    last = known[-1]
    if last is None or last.recovered is None:
        return "acted"
    return "recovered" if last.recovered else "not recovered"


def _headline(told: _Told, state: State) -> str:
    steps = plural(told.steps, "step")
    match state:
        case "stopped":
            return _stopped(told)
        case "not watched" if told.broke:
            return (
                f"Not watched: the health monitor broke at step {told.broke.step}, and nobody judged what came after."
            )
        case "not watched":
            return f"Not watched: {steps} with the health monitor switched off (health.enabled)."
        case "healthy":
            return f"Healthy: {steps}, no rule spoke."
        case "warned":
            rules = [readable(rule) for rule in _rules(told.verdicts)]
            return f"Warned: {steps}; {_named(rules)} spoke, nothing was changed."
    return f"{state.capitalize()}: {_acts(told)}{_price(told)}."


def _stopped(told: _Told) -> str:
    rule = str(told.train["stopped_by"])
    stop = next((one for one in reversed(told.verdicts) if one.rule == rule), None)
    response = next((one for one in reversed(told.acts) if one.level == "stop"), None)
    step = response.step if response else stop.step if stop else told.steps - 1
    before = [one for one in told.acts if one is not response]
    tries = f", after {plural(len(before), 'response')} that did not save the run" if before else ""
    why = _sentence(told.why(rule, str(told.train["reason"])))
    return f"Stopped at step {step}: {readable(rule)}{tries}.{why}"


def _acts(told: _Told) -> str:
    """The one response as a sentence, or how many there were."""
    outcomes = outcomes_by_response(told.ledger)
    if len(told.acts) == 1:
        (only,) = told.acts
        return f"{readable(only.rule)} at step {only.step}; {done(only)}, and {helped(only, outcomes.get(only.number))}"
    steps = {rule: [str(one.step) for one in told.acts if one.rule == rule] for rule in _rules(told.acts)}
    where = _named([f"{readable(rule)} at step{'s' if len(at) > 1 else ''} {_named(at)}" for rule, at in steps.items()])
    known = [outcomes.get(one.number) for one in told.acts]
    judged = [outcome.recovered for outcome in known if outcome is not None and outcome.recovered is not None]
    recovered = sum(judged)
    open_ = len(told.acts) - len(judged)
    waiting = f", {open_} not judged before the run ended" if open_ else ""
    return f"the run was acted on {len(told.acts)} times ({where}); {recovered} of {len(judged)} recovered{waiting}"


def _sentence(text: str) -> str:
    """A text after a sentence, as one of its own; nothing where there is none."""
    return f" {text[:1].upper()}{text[1:]}." if text else ""


def _price(told: _Told) -> str:
    return f"; cost {plural(told.lost, 'step')}" if told.lost else ""


def _seen(told: _Told) -> Iterator[str]:
    for signal, name in MOVED:
        values = [record.signals[signal] for record in told.records if signal in record.signals]
        if values:
            yield f"{name.capitalize()} went from {percent(values[0])} to {percent(values[-1])}."
    entropies = [record.signals["entropy"] for record in told.records if "entropy" in record.signals]
    if entropies:
        yield f"Entropy went from {number(entropies[0])} to {number(entropies[-1])} nats per token."
    for rule in _rules(told.verdicts):
        spoken = [verdict for verdict in told.verdicts if verdict.rule == rule]
        steps = _named([str(verdict.step) for verdict in spoken])
        where = f"step {steps}" if len(spoken) == 1 else f"steps {steps}"
        yield f"{rule} ({spoken[-1].level}) spoke at {where}: {told.why(rule, spoken[-1].reason)}."
    if not told.verdicts and told.settings.health.enabled:
        yield f"None of {plural(len(told.settings.health.rules), 'rule')} spoke."


def _done(told: _Told) -> Iterator[str]:
    for response in told.acts:
        asked = "" if response.asked == response.level else f"; the rule had asked for {response.asked}"
        exact = f" ({'; '.join(changes(response))})" if changes(response) else ""
        yield f"Step {response.step}, {response.rule}: {done(response)}{exact}{asked}."
    ignored = [one for one in told.ledger.responses if one.level == "warn" and one.asked != "warn"]
    if ignored and not told.settings.health.responses.enabled:
        rules = _named(_rules(ignored))
        yield f"Responses were switched off (health.responses.enabled), though {rules} asked for more than a warning."
    if told.train["outcome"] == "stopped" and not any(response.level == "stop" for response in told.acts):
        yield "The run was stopped."
    elif not told.acts:
        yield "Nothing was changed while the run went on."


def _helped(told: _Told) -> Iterator[str]:
    outcomes = outcomes_by_response(told.ledger)
    for response in told.acts:
        outcome = outcomes.get(response.number)
        figures = f" ({', '.join(then_now(outcome.signals))})" if outcome and outcome.signals else ""
        yield f"Response {response.number}, to {response.rule}: {helped(response, outcome)}{figures}."
    if not told.acts:
        yield "There was nothing to help."


def _cost(told: _Told) -> Iterator[str]:
    lost = told.lost
    out = {name for response in told.acts for name in response.quarantined}
    yield f"{plural(lost, 'step')} of {told.steps} lost." if lost else "No step was lost."
    if out:
        yield f"{plural(len(out), 'prompt')} taken out of the schedule: {_named(sorted(out))}."
    unfinished = told.settings.train.steps - told.progress
    if unfinished > 0 and told.train["outcome"] == "stopped":
        yield f"{plural(unfinished, 'step')} of {told.settings.train.steps} were not run."


def _unjudged(told: _Told) -> Iterator[str]:
    if not told.settings.health.enabled:
        yield "Everything: no rule watched."
        return
    rules = told.settings.health.rules
    blind = unjudged(rules, told.records)
    if told.broke:
        yield f"Everything from step {told.broke.step} on: {told.broke.notes['monitor_failed']}."
    for name, missing in blind.items():
        yield f"{name} never saw {', '.join(missing)}{' (optional)' if rules[name].optional else ''}."
    if not blind:
        yield "Every rule saw the signals that it reads."
    known = {outcome.of for outcome in told.ledger.outcomes if outcome.recovered is not None}
    open_ = [one for one in told.acts if one.level != "stop" and one.number not in known]
    if open_:
        yield f"Whether {_named([f'response {one.number}' for one in open_])} helped: the run ended before that."


def _next(told: _Told, state: State) -> Iterator[str]:
    rules = told.settings.health.rules
    match state:
        case "stopped":
            yield "Do not approve this checkpoint; training ended in a state that a rule calls broken."
            yield f"Before the next run: {advice(str(told.train['stopped_by']), rules)}"
        case "not recovered":
            yield "Do not approve before you know why the last response did not help."
            yield f"Before the next run: {advice(told.acts[-1].rule, rules)}"
        case "acted" | "recovered":
            yield "Read the evaluation before you approve: part of this run was thrown away or trained differently."
            for rule in _rules(told.acts):
                yield f"So that the next run needs no response to {rule}: {advice(rule, rules)}"
        case "warned":
            for rule in _rules(told.verdicts)[:NAMED]:
                yield f"{rule}: {advice(rule, rules)}"
        case "not watched" if told.broke:
            yield "Do not approve: mend the monitor, a rule or a signal that it reads, and train again."
        case "not watched":
            yield "Switch the monitor on (health.enabled) and train again; nobody can say whether this run was healthy."
        case _:
            yield "Nothing on account of health; decide by the evaluation and the completions."


def _rules(events: Iterable[Verdict | Response]) -> list[str]:
    """Their rules, in the order in which they came first."""
    return list(dict.fromkeys(event.rule for event in events))


def _named(names: Sequence[str]) -> str:
    """``a, b and c``; beyond `NAMED` the rest is counted."""
    if len(names) > NAMED + 1:
        names = [*names[:NAMED], f"{len(names) - NAMED} more"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
