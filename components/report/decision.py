"""The box at the top: what is asked, what is known in a handful of facts, what a person must look at, how to decide."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from components.health.telling import RunVerdict
from components.pages import visible
from components.report.canaries import CanaryRow, canary_rows
from components.report.gains import Gain, sampled
from components.report.run import Part, Run, dig
from components.report.verdict import Headline
from components.words import percent, plural, points

Tone = Literal["good", "bad", "unsure", "plain"]

DIGITS = 12
"""Of a digest, as the commands show it."""
NAME = 80
"""Characters of a run's name."""


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
    """What the reader is asked, "" where there is nothing to decide."""
    if not (headline.approvable and run.digest):
        return ""
    return f"May checkpoint {run.digest[:DIGITS]} of run {visible(run.name, NAME)} become the champion?"


def commands(run: Run, headline: Headline) -> list[Command]:
    """How to decide at a terminal; empty where there is nothing to decide."""
    if not (headline.approvable and run.digest):
        return []
    digest = run.digest[:DIGITS]
    return [
        Command("Approve", f'evenkeel approve {digest} --by YOUR-NAME --reason "WHY"'),
        Command("Reject", f'evenkeel reject {digest} --by YOUR-NAME --reason "WHY"'),
    ]


def afterwards(run: Run) -> Command | None:
    """How to undo what was decided; None where it made no champion."""
    if dig(run.decided, "present"):
        return ROLLBACK
    if dig(run.decided, "outcome") not in ("promoted", "rolled back") or not run.digest:
        return None
    line = f'evenkeel rollback --to {run.digest[:DIGITS]} --by YOUR-NAME --reason "WHY"'
    return Command("Make it the champion again", line)


ROLLBACK = Command("Roll back", 'evenkeel rollback --by YOUR-NAME --reason "WHY"')
"""Takes the champion's place back for the one before it."""


def facts(run: Run, health: RunVerdict) -> list[Fact]:
    """What decides, with intervals: gain over SFT and champion, canaries, health, verifier."""
    return [
        _over_sft(run),
        _over_champion(run),
        _canaries(run),
        _health(run, health),
        _verifier(run.audit),
    ]


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
    detail = "none was named in this run; before approval it is put beside the champion, if there is one"
    return Fact(name, "not compared", detail, "plain", "comparison")


def _interval(gain: Gain, change: str) -> tuple[str, str, Tone]:
    tones: dict[int, Tone] = {1: "good", -1: "bad", 0: "unsure"}
    return f"{points(gain.mean)} points", f"{gain.interval}; {change}", tones[gain.direction]


def _canaries(run: Run) -> Fact:
    rows = canary_rows(run)
    if not rows:
        return Fact("Canaries", "not measured", "nothing says what it may have unlearned", "unsure", "canaries")
    lost, unsure = ([row for row in rows if row.result == result] for result in ("lost", "not sure"))
    worst = min(rows, key=lambda row: row.change or 0.0)
    change = f"largest fall: {worst.name} {points(worst.change)} points{_between(worst)}"
    if (worst.change or 0.0) >= 0:
        change = "no probe set fell"
    if lost:
        named = ", ".join(dict.fromkeys(row.name for row in lost))
        return Fact("Canaries", f"{plural(len(lost), 'probe set')} lost", f"{named}; {change}", "bad", "canaries")
    if unsure:
        return Fact("Canaries", f"{len(rows) - len(unsure)} of {len(rows)} held", change, "unsure", "canaries")
    return Fact("Canaries", f"all {len(rows)} held", change, "good", "canaries")


def _between(row: CanaryRow) -> str:
    if row.low is None or row.high is None:
        return ""
    return f", 95 % interval {points(row.low)} to {points(row.high)}"


def _health(run: Run, health: RunVerdict) -> Fact:
    if run.train is None:
        return Fact("Training health", "not known", "the run was not trained to its end", "unsure", "health")
    state, _, rest = health.headline.partition(":")
    return Fact("Training health", state, rest.strip(), health.tone, "health")


def _verifier(audit: Part | None) -> Fact:
    high, limit = dig(audit, "false_positive", "high"), dig(audit, "limits", "max_false_positive")
    if high is None:
        return Fact(
            "Verifier", "not audited", "nobody knows how often a wrong answer is accepted", "unsure", "verifier"
        )
    passed = dig(audit, "verdict") == "pass"
    detail = f"wrong answers accepted of at most {percent(high)} of the prompts (95 % bound), limit {percent(limit)}"
    return Fact(
        "Verifier",
        "passed its audit" if passed else "failed its audit",
        detail,
        "good" if passed else "bad",
        "verifier",
    )


def not_judged(run: Run, health: RunVerdict) -> Iterator[str]:
    """What nothing on the page can answer, in sentences."""
    for gap in run.missing:
        yield f"{gap.title[:1].upper()}{gap.title[1:]}: {gap.reason}."
    if not canary_rows(run):
        yield "What it may have unlearned: no canaries were measured."
    if dig(run.measured, "champion") is None:
        yield "Whether it is better than a champion: it was compared with its own start only."
    if run.another:
        yield f"Its suites and probe sets beside a champion: the run measured another one, {run.another[:DIGITS]}."
    if run.lineage is None:
        yield "From which commit it was made, and who started it: recorded beside the run, not by its stages."
    for part in health.parts:
        if part.title == "What could not be judged":
            yield from (sentence for sentence in part.sentences if not sentence.startswith("Every rule saw"))
