"""A response and its outcome in a few words, and the ledger as a table of them. A number is never rounded to another
one that a setting could have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from components.health.falls import ALL
from components.health.records import Ledger
from components.health.responses.knobs import KNOBS
from components.health.responses.repairs import EXCLUDE, REDRAW, RELOAD, RESET, WITHHOLD
from components.health.responses.under_watch import UNDER_WATCH
from components.types import Change, Outcome, Response
from components.words import number, plural

REPAIRED = {
    REDRAW: "prompts drawn by the second copy of the schedule",
    WITHHOLD: "the prompts of {} not trained on any more",
    RELOAD: "the weights handed over to the sampler again",
    EXCLUDE: "{} not used any more",
    RESET: "the learner given its settings again",
}
"""Repair -> what a sentence calls it."""
FACTORS = {0.5: "half the", 2.0: "twice the", 0.25: "a quarter of the", 0.1: "a tenth of the"}
WINDOW = 3
"""Values of a signal that a table shows."""
HEADS = ("No.", "Step", "Rule", "Level", "Saw", "Changed", "Outcome", "Steps lost")


def readable(rule: str) -> str:
    """A rule's name within a sentence."""
    return rule.replace("_", " ")


def factor(change: Change) -> float | None:
    """After divided by before, where both are numbers and before is not 0."""
    numbers = [value for value in (change.before, change.after) if isinstance(value, (int, float))]
    if len(numbers) < 2 or isinstance(change.before, bool) or not change.before:
        return None
    return float(f"{change.after / change.before:.6g}")


def short_change(change: Change) -> str:
    """``lr x0.5``, or ``entropy 0 to 0.01`` where there is no factor."""
    if change == UNDER_WATCH:
        return "under watch"
    times = factor(change)
    how = f"{value(change.before)} to {value(change.after)}" if times is None else f"x{times:.3g}"
    knob = KNOBS.get(change.knob)
    return f"{change.knob.rpartition('.')[2] if knob is None else knob.short} {how}"


def long_change(change: Change) -> str:
    """``half the learning rate``, or ``entropy_coef 0 instead of 0.01`` for a knob without a name of its own."""
    if change == UNDER_WATCH:
        return "the fault under watch"
    if change.knob in REPAIRED:
        return REPAIRED[change.knob].format(change.before)
    times, knob = factor(change), KNOBS.get(change.knob)
    if knob is not None and times in FACTORS:
        return f"{FACTORS[times]} {knob.words}"
    name = change.knob if knob is None else knob.words
    return f"the {name} at {value(change.after)} instead of {value(change.before)}"


def value(given: Any) -> str:
    """A setting's value; six digits distinguish any two steps of a knob."""
    if isinstance(given, float):
        return f"{given:.6g}"
    return "none" if given is None else str(given)


def changes(response: Response) -> list[str]:
    """What a response changed, exactly, as ``learner.lr 0.0002 → 0.0001``; prompts in quarantine included."""
    out = [f"{change.knob} {value(change.before)} → {value(change.after)}" for change in response.changes]
    if response.quarantined:
        prompts = plural(len(response.quarantined), "prompt")
        out.append(f"{prompts} not trained on any more: {', '.join(response.quarantined)}")
    return out


def done(response: Response) -> str:
    """What was done, as the middle of a sentence: ``the run went back to step 40 with half the learning rate``."""
    with_ = [long_change(change) for change in response.changes]
    if response.quarantined:
        with_.append(f"without training on {plural(len(response.quarantined), 'prompt')}")
    if response.level == "stop":
        kept = "" if response.back_to is None else f", and the policy of step {response.returns_to} kept"
        return f"the run was stopped{kept}"
    if response.back_to is not None:
        return f"the run went back to step {response.returns_to}" + (f" with {listed(with_)}" if with_ else "")
    if response.changes:
        return f"the run went on with {listed(with_)}"
    return f"the run went on {with_[0]}" if with_ else response.did or "nothing was changed"


def helped(response: Response, outcome: Outcome | None) -> str:
    """Whether it helped, as the end of a sentence."""
    if response.level == "stop":
        return "nothing to judge afterwards"
    if outcome is None or outcome.recovered is None:
        return "the run ended before it could be judged"
    within = plural(outcome.step - response.step, "step")
    if outcome.recovered:
        return f"recovered within {within}"
    below = ["held-out accuracy" if one == ALL else f"held-out accuracy of {one}" for one in outcome.below]
    return f"had not recovered after {within}" + (f": {listed(below)} below the best" if below else "")


def before_and_after(signals: Mapping[str, Sequence[float | None]]) -> list[str]:
    """``entropy 0.22 → 0.35`` for every signal of an outcome."""
    return [f"{name} {' → '.join(map(number, pair))}" for name, pair in signals.items()]


def saw(response: Response) -> list[str]:
    """The last values of every signal that the rule looked at."""
    shown = {name: list(values)[-WINDOW:] for name, values in response.saw.items()}
    return [f"{name} {', '.join(map(number, values))}" for name, values in shown.items()]


def listed(parts: Sequence[str]) -> str:
    """``a, b and c``."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


class Row(NamedTuple):
    """One response. ``cost`` are steps lost; None where no outcome says it."""

    response: Response
    saw: list[str]
    changed: list[str]
    outcome: str
    signals: list[str]
    cost: int | None


def ledger_rows(ledger: Ledger) -> list[Row]:
    """Every response in order."""
    rows = []
    for response in ledger.responses:
        outcome = ledger.outcome(response)
        back = [] if response.back_to is None else [f"back to step {response.returns_to}"]
        signals, cost = ([], None) if outcome is None else (before_and_after(outcome.signals), outcome.cost_steps)
        changed = [*back, *changes(response)]
        rows.append(Row(response, saw(response), changed, helped(response, outcome), signals, cost))
    return rows


def cells(row: Row) -> list[str]:
    """One response, in the order of `HEADS`; plain text."""
    response, cost = row.response, "" if row.cost is None else str(row.cost)
    lists = map("; ".join, (row.saw, row.changed, [row.outcome, *row.signals]))
    return [str(response.number), str(response.step), response.rule, response.level, *lists, cost]
