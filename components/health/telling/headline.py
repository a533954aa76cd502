"""The whole run in one sentence; its first word is the state."""

from __future__ import annotations

from typing import Literal

from components.health.telling.phrases import done, helped, readable
from components.health.telling.told import Told, named, rules_of
from components.words import plural

State = Literal[
    "healthy", "warned", "recovered", "acted", "not recovered", "worse", "stopped", "not watched", "not trained"
]


def state_of(told: Told) -> State:
    if told.train["outcome"] == "stopped":
        return "stopped"
    if not told.settings.health.enabled or told.broke:
        return "not watched"
    if told.lost_accuracy:
        return "not recovered" if told.acts else "worse"
    if not told.acts:
        return "warned" if told.verdicts else "healthy"
    outcomes = [told.ledger.outcome(one) for one in told.last_acts]
    known = [None if one is None else one.recovered for one in outcomes]
    if False in known:
        return "not recovered"
    return "acted" if None in known else "recovered"


def headline(told: Told, state: State) -> str:
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
            rules = [readable(rule) for rule in rules_of(told.verdicts)]
            return f"Warned: {steps}; {named(rules)} spoke, nothing was changed."
        case "worse":
            return f"Worse: {steps}; {'; '.join(told.lost_accuracy)}."
    return f"{state.capitalize()}: {_acts(told)}{_price(told)}."


def _stopped(told: Told) -> str:
    rule = str(told.train["stopped_by"])
    stop = next((one for one in reversed(told.verdicts) if one.rule == rule), None)
    response = next((one for one in reversed(told.acts) if one.level == "stop"), None)
    step = response.step if response else stop.step if stop else told.steps - 1
    before = [one for one in told.acts if one is not response]
    tries = f", after {plural(len(before), 'response')} that did not save the run" if before else ""
    why = _sentence(told.why(rule, str(told.train["reason"])))
    return f"Stopped at step {step}: {readable(rule)}{tries}.{why}"


def _acts(told: Told) -> str:
    """The one response as a sentence, or how many there were."""
    if len(told.acts) == 1:
        (only,) = told.acts
        return f"{readable(only.rule)} at step {only.step}; {done(only)}, and {helped(only, told.ledger.outcome(only))}"
    steps = {rule: [str(one.step) for one in told.acts if one.rule == rule] for rule in rules_of(told.acts)}
    where = named([f"{readable(rule)} at step{'s' if len(at) > 1 else ''} {named(at)}" for rule, at in steps.items()])
    known = [told.ledger.outcome(one) for one in told.acts]
    judged = [outcome.recovered for outcome in known if outcome is not None and outcome.recovered is not None]
    recovered = sum(judged)
    open_ = len(told.acts) - len(judged)
    waiting = f", {open_} not judged before the run ended" if open_ else ""
    return f"the run was acted on {len(told.acts)} times ({where}); {recovered} of {len(judged)} recovered{waiting}"


def _sentence(text: str) -> str:
    """A text after a sentence, as one of its own; nothing where there is none."""
    return f" {text[:1].upper()}{text[1:]}." if text else ""


def _price(told: Told) -> str:
    return f"; cost {plural(told.lost, 'step')}" if told.lost else ""
