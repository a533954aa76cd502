"""The box at the top: the question, a handful of facts, what a person must look at, how to decide."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from components.config.promotion import Action
from components.config.registry import RegistrySettings
from components.health.summaries import RunVerdict
from components.pages import visible
from components.report.canaries import CHECK, CanaryRow, canary_rows
from components.report.gains import Gain, sampled
from components.report.run import Part, Run, dig
from components.report.verdict import Check, Headline, check_named
from components.words import percent, plural, points

Tone = Literal["good", "bad", "unsure", "plain"]

DIGITS = 12
"""Of a digest, as the commands show it."""
NAME = 80
"""Characters of a run's name."""
VERIFIER = "verifier audited"
"""What the gate calls its check of the audit."""
PASSED = "passed its audit"
BY_THE_GATE: dict[str, tuple[str, Tone]] = {
    "pass": (PASSED, "good"),
    "fail": ("failed the gate", "bad"),
    "inconclusive": ("left to you by the gate", "unsure"),
}
"""Result of that check -> what the box says of the verifier."""


@dataclass(frozen=True)
class Fact:
    """One line of the box. ``href`` is the section that says more."""

    title: str
    value: str
    detail: str
    tone: Tone
    href: str


@dataclass(frozen=True)
class Command:
    """What to type, and what it does."""

    what: str
    line: str


def question(run: Run, headline: Headline) -> str:
    """The question to the reader, "" where there is nothing to decide."""
    if not (headline.approvable and run.digest):
        return ""
    return f"May checkpoint {run.digest[:DIGITS]} of run {visible(run.name, NAME)} become the champion?"


def commands(run: Run, headline: Headline) -> list[Command]:
    """How to decide at a terminal; empty where there is nothing to decide."""
    if not (headline.approvable and run.digest):
        return []
    digest = run.digest[:DIGITS]
    return [
        Command("Approve", _typed(run, "promote", f"approve {digest}")),
        Command("Reject", _typed(run, "reject", f"reject {digest}")),
    ]


def afterwards(run: Run) -> Command | None:
    """How to undo what was decided; None where it made no champion."""
    if dig(run.decided, "present"):
        return rollback(run)
    if dig(run.decided, "outcome") not in ("promoted", "rolled back") or not run.digest:
        return None
    return Command("Make it the champion again", _typed(run, "rollback", f"rollback --to {run.digest[:DIGITS]}"))


def rollback(run: Run) -> Command:
    """Takes the champion's place back for the one before it."""
    return Command("Roll back", _typed(run, "rollback", "rollback"))


def _typed(run: Run, action: Action, command: str) -> str:
    key = " --key YOUR-KEY" if action in (run.signed or ()) else ""
    place = run.config or ("" if run.settings.registry == RegistrySettings() else "YOUR-CONFIG")
    config = f" --config {shlex.quote(place)}" if place else ""
    return f'evenkeel {command} --by YOUR-NAME --reason "WHY"{key}{config}'


def facts(run: Run, health: RunVerdict) -> list[Fact]:
    """What decides, with intervals: gain over SFT and champion, canaries, health, verifier."""
    return [_over_sft(run), _over_champion(run), _canaries(run), _health(run, health), _verifier(run)]


def _over_sft(run: Run) -> Fact:
    gain = sampled(run.measured, "sft", run.settings.evaluation.small)
    if gain is None:
        return Fact("Gain over SFT", "not measured", "no held-out evaluation", "unsure", "comparison")
    prompts = plural(gain.prompts, "held-out prompt")
    change = f"pass@1 {percent(gain.before)} → {percent(gain.after)} on {prompts}"
    return Fact("Gain over SFT", *_interval(gain, change), "comparison")


def _over_champion(run: Run) -> Fact:
    gain = sampled(run.measured, "champion", run.settings.evaluation.small)
    if gain is None and dig(run.measured, "champion") is None:
        return _not_compared(run)
    if gain is None:
        return Fact("Gain over the champion", "not measured", "no prompt was scorable by both", "unsure", "comparison")
    known = gain.before is not None and gain.after is not None
    change = f"pass@1 {percent(gain.before)} → {percent(gain.after)} on the same prompts"
    return Fact("Gain over the champion", *_interval(gain, change if known else "on the same prompts"), "comparison")


def _not_compared(run: Run) -> Fact:
    name = "Gain over the champion"
    if run.champion is not None:
        return Fact(name, "not measured", "there is a champion, and nothing compares them", "unsure", "comparison")
    if run.judgement is not None:
        first = "this would be the first" if run.decided is None else "it was the first"
        return Fact(name, "no champion yet", first, "plain", "comparison")
    detail = "none was named in this run; before approval it is compared with the champion, if there is one"
    return Fact(name, "not compared", detail, "plain", "comparison")


def _interval(gain: Gain, change: str) -> tuple[str, str, Tone]:
    tones: dict[int, Tone] = {1: "good", -1: "bad", 0: "unsure"}
    return f"{points(gain.mean)} points", f"{gain.interval}; {change}", tones[gain.direction]


def _canaries(run: Run) -> Fact:
    value, detail, tone = _kept(canary_rows(run), check_named(run, CHECK))
    return Fact("Canaries", value, detail, tone, "canaries")


def _kept(rows: Sequence[CanaryRow], check: Check | None) -> tuple[str, str, Tone]:
    """By the rows, and never kinder than the gate, which may have gone by a policy that is not known any more."""
    named = {row.result: list(dict.fromkeys(one.name for one in rows if one.result == row.result)) for row in rows}
    if bad := [word for word in ("lost", "missing") if word in named]:
        value = ", ".join(f"{plural(len(named[word]), 'probe set')} {word}" for word in bad)
        sentences = [*(", ".join(named[word]) for word in bad), _largest_fall(rows)]
        return value, "; ".join(filter(None, sentences)), "bad"
    if check is not None and check.result == "fail":
        return "failed the gate", check.evidence, "bad"
    if not rows:
        return "not measured", "nothing says what it may have unlearned", "unsure"
    sets, unsure = {row.name for row in rows}, named.get("not sure", [])
    if unsure:
        return f"{len(sets) - len(unsure)} of {len(sets)} held", _largest_fall(rows), "unsure"
    if check is not None and check.result == "inconclusive":
        return "left to you by the gate", check.evidence, "unsure"
    return f"all {len(sets)} held", _largest_fall(rows), "good"


def _largest_fall(rows: Sequence[CanaryRow]) -> str:
    """ "" where no change is known."""
    known = [row for row in rows if row.change is not None]
    worst = min(known, key=lambda row: row.change or 0.0, default=None)
    if worst is None:
        return ""
    if (worst.change or 0.0) >= 0:
        return "no probe set fell"
    unknown = worst.low is None or worst.high is None
    interval = "" if unknown else f", 95 % interval {points(worst.low)} to {points(worst.high)}"
    return f"largest fall: {worst.name} {points(worst.change)} points{interval}"


def _health(run: Run, health: RunVerdict) -> Fact:
    if run.train is None:
        return Fact("Training health", "not known", "the run was not trained to its end", "unsure", "health")
    state, _, rest = health.headline.partition(":")
    return Fact("Training health", state, rest.strip(), health.tone, "health")


def _verifier(run: Run) -> Fact:
    """By the gate's limits where it has judged: the audit went by limits that the run has set."""
    value, detail, tone = _audited(run.audit)
    if (check := check_named(run, VERIFIER)) is not None:
        (value, tone), detail = BY_THE_GATE.get(check.result, BY_THE_GATE["fail"]), check.evidence
    return Fact("Verifier", value, detail, tone, "verifier")


def _audited(audit: Part | None) -> tuple[str, str, Tone]:
    """As the audit itself ended."""
    high, limit = dig(audit, "false_positive", "high"), dig(audit, "limits", "max_false_positive")
    if high is None:
        return "not audited", "it is unknown how often a wrong answer is accepted", "unsure"
    detail = f"wrong answers accepted of at most {percent(high)} of the prompts (95 % bound), limit {percent(limit)}"
    return (PASSED, detail, "good") if dig(audit, "verdict") == "pass" else ("failed its audit", detail, "bad")


def not_judged(run: Run, health: RunVerdict) -> Iterator[str]:
    """What nothing on the page can answer, in sentences."""
    for gap in run.missing:
        yield f"{gap.title[:1].upper()}{gap.title[1:]}: {gap.reason}."
    if not canary_rows(run):
        yield "What it may have unlearned: no canaries were measured."
    if dig(run.measured, "champion") is None:
        yield "Whether it is better than a champion: it was compared with its own start only."
    if run.another:
        yield f"Its suites and probe sets against a champion: the run measured another one, {run.another[:DIGITS]}."
    if run.lineage is None:
        yield "From which commit it was made, and who started it: recorded with the run, not by its stages."
    for part in health.parts:
        if part.title == "What could not be judged":
            yield from (sentence for sentence in part.sentences if not sentence.startswith("Every rule saw"))
