"""What was seen, what was done, whether it helped, what it cost, what could not be judged, what to do next."""

from __future__ import annotations

from collections.abc import Iterator

from components.health.monitor import unjudged
from components.health.telling.advice import advice
from components.health.telling.headline import State
from components.health.telling.phrases import changes, done, helped, then_now
from components.health.telling.told import NAMED, Told, named, rules_of
from components.types import Response
from components.words import number, percent, plural

MOVED = (
    ("accuracy", "accuracy on the prompts that the schedule chose"),
    ("dev_pass_at_1", "held-out pass@1"),
    ("dev_pass_at_k", "held-out pass@k"),
)


def seen(told: Told) -> Iterator[str]:
    for signal, name in MOVED:
        values = [record.signals[signal] for record in told.records if signal in record.signals]
        if values:
            yield f"{name.capitalize()} went from {percent(values[0])} to {percent(values[-1])}."
    entropies = [record.signals["entropy"] for record in told.records if "entropy" in record.signals]
    if entropies:
        yield f"Entropy went from {number(entropies[0])} to {number(entropies[-1])} nats per token."
    yield from _broken(told)
    for rule in rules_of(told.verdicts):
        spoken = [verdict for verdict in told.verdicts if verdict.rule == rule]
        steps = named([str(verdict.step) for verdict in spoken])
        where = f"step {steps}" if len(spoken) == 1 else f"steps {steps}"
        part = told.part(rule)
        points = f" and points at the {part}" if part else ""
        yield f"{rule} ({spoken[-1].level}) spoke at {where}{points}: {told.why(rule, spoken[-1].reason)}."
    if not told.verdicts and told.settings.health.enabled:
        yield f"None of {plural(len(told.settings.health.rules), 'rule')} spoke."


def _broken(told: Told) -> Iterator[str]:
    """The first time that each invariant did not hold, and how many more steps."""
    found: dict[str, list[tuple[int, str]]] = {}
    for record in told.records:
        for one in record.notes.get("broken", ()):
            found.setdefault(f"{one['part']}, {one['name']}", []).append((record.step, one["found"]))
    for name, steps in found.items():
        (step, text), more = steps[0], len(steps) - 1
        again = f"; and at {plural(more, 'more step')}" if more else ""
        yield f"Broken ({name}) at step {step}: {text}{again}."


def was_done(told: Told) -> Iterator[str]:
    for response in told.acts:
        asked = "" if response.asked == response.level else f"; the rule had asked for {response.asked}"
        exact = f" ({'; '.join(changes(response))})" if changes(response) else ""
        yield f"Step {response.step}, {response.rule}: {done(response)}{exact}{asked}.{_found(response)}"
    for response in told.taken_back:
        yield f"Step {response.step}: {response.reason}; it was taken back ({'; '.join(changes(response))})."
    ignored = [one for one in told.ledger.responses if one.level == "warn" and one.asked != "warn"]
    if ignored and not told.settings.health.responses.enabled:
        rules = named(rules_of(ignored))
        yield f"Responses were switched off (health.responses.enabled), though {rules} asked for more than a warning."
    if told.train["outcome"] == "stopped" and not any(response.level == "stop" for response in told.acts):
        yield "The run was stopped."
    elif not told.acts:
        yield "Nothing was changed while the run went on."


def _found(response: Response) -> str:
    """What a diagnosis found before the response, as a sentence."""
    if not response.found:
        return ""
    return f" A diagnosis named the {response.part} as the cause: {'; '.join(response.found)}."


def _unresolved(told: Told) -> list[str]:
    """Rules from whose last response the run did not recover; the last of all where only accuracy did not."""
    outcomes = {one.rule: told.ledger.outcome(one) for one in told.last_acts}
    return [rule for rule, one in outcomes.items() if one and one.recovered is False] or [told.acts[-1].rule]


def did_it_help(told: Told) -> Iterator[str]:
    for response in told.acts:
        outcome = told.ledger.outcome(response)
        figures = f" ({', '.join(then_now(outcome.signals))})" if outcome and outcome.signals else ""
        yield f"Response {response.number}, to {response.rule}: {helped(response, outcome)}{figures}."
    for sentence in told.lost_accuracy:
        yield f"{sentence[:1].upper()}{sentence[1:]}."
    if not told.acts:
        yield "There was nothing to help."


def cost(told: Told) -> Iterator[str]:
    lost = told.lost
    out = {name for response in told.acts for name in response.quarantined}
    yield f"{plural(lost, 'step')} of {told.steps} lost." if lost else "No step was lost."
    if out:
        yield f"{plural(len(out), 'prompt')} not trained on any more: {named(sorted(out))}."
    unfinished = told.settings.train.steps - told.progress
    if unfinished > 0 and told.train["outcome"] == "stopped":
        yield f"{plural(unfinished, 'step')} of {told.settings.train.steps} were not run."


def not_judged(told: Told) -> Iterator[str]:
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
    if told.settings.audit.second is None:
        yield "Whether the verifier is right: no second verifier judges what it judges (audit.second)."
    known = {outcome.of for outcome in told.ledger.outcomes if outcome.recovered is not None}
    open_ = [one for one in told.acts if one.level != "stop" and one.number not in known]
    if open_:
        yield f"Whether {named([f'response {one.number}' for one in open_])} helped: the run ended before that."


def what_next(told: Told, state: State) -> Iterator[str]:
    rules = told.settings.health.rules
    match state:
        case "stopped":
            yield "Do not approve this checkpoint; training ended in a state that a rule calls broken."
            yield f"Before the next run: {advice(str(told.train['stopped_by']), rules)}"
        case "not recovered":
            yield "Do not approve before you know why the responses did not help."
            for rule in _unresolved(told):
                yield f"Before the next run: {advice(rule, rules)}"
        case "worse":
            yield "Do not approve: read the completions of what fell, and its labels; no rule acted on it."
        case "acted" | "recovered":
            yield "Read the evaluation before you approve: part of this run was thrown away or trained differently."
            for rule in rules_of(told.acts):
                yield f"So that the next run needs no response to {rule}: {advice(rule, rules)}"
        case "warned":
            for rule in rules_of(told.verdicts)[:NAMED]:
                yield f"{rule}: {advice(rule, rules)}"
        case "not watched" if told.broke:
            yield "Do not approve: mend the monitor, a rule or a signal that it reads, and train again."
        case "not watched":
            yield "Switch the monitor on (health.enabled) and train again; nobody can say whether this run was healthy."
        case _:
            yield "Nothing on account of health; decide by the evaluation and the completions."
