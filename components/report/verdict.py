"""The headline of the page and the sentence under it; and the gate's checks as a reader needs them: by question,
gravest first, and what would change what did not pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal

from components.report.gains import sampled
from components.report.run import Part, Run, dig
from components.words import percent, plural, points

Tone = Literal["good", "bad", "unsure"]
ORDER = ("fail", "inconclusive", "pass")
OTHER = "Other checks"

GROUPS: dict[str, tuple[str, ...]] = {
    "Is it better?": ("gain", "champion", "evaluation", "suite", "truncated", "unscorable", "detect"),
    "Is anything broken that it should keep?": ("canar", "fairness", "refusal"),
    "Was its training healthy?": ("health", "triage", "completed", "response", "ledger"),
    "Can the data and the verifier be trusted?": ("data", "verifier", "audit", "admitted", "contaminat"),
    "Is it what it says it is?": (
        "checkpoint", "lineage", "commit", "format", "signature", "evidence", "digest", "lock", "snapshot", "input",
    ),
}  # fmt: skip
"""Question -> words in the names of the checks that answer it; the first group that fits takes a check."""


@dataclass(frozen=True)
class Headline:
    """``approvable``: the gate did not fail, no evidence is missing, and all of it is about the same checkpoint."""

    tone: Tone
    title: str
    sentence: str
    approvable: bool = False


def headline(run: Run) -> Headline:
    """The verdict in a few words and one sentence."""
    if len(set(run.digests.values())) > 1:
        named = ", ".join(f"{stage} {digest[:12]}" for stage, digest in run.digests.items())
        return Headline(
            "bad", "Do not approve", f"The stages are about different checkpoints: {named}. Run them again."
        )
    if run.decided is not None:
        return _decided(run, run.decided)
    match dig(run.judged, "result"):
        case "pass" if run.missing:
            named = ", ".join(gap.title for gap in run.missing)
            return Headline("unsure", "Gate passed, but evidence is missing", f"Missing: {named}. {gain_sentence(run)}")
        case "pass":
            return Headline("good", "Gate passed: a candidate awaits approval", gain_sentence(run), approvable=True)
        case "fail":
            return Headline("bad", "Gate failed: nothing to approve", _ended(run))
        case "inconclusive" if run.missing or run.untrusted or run.refused or run.stopped:
            return Headline("unsure", "Gate inconclusive, and evidence is missing", _ended(run))
        case "inconclusive":
            return Headline("unsure", "Gate inconclusive: a person has to judge", _ended(run), approvable=True)
    if run.untrusted:
        return Headline("bad", "Verifier not trusted: nothing to approve", _untrusted(run))
    if run.refused:
        return Headline("bad", "Refused before training: nothing to approve", _refusal(run))
    if run.stopped:
        return Headline("bad", "Training stopped: nothing to approve", _stop(run))
    first = run.missing[0].reason if run.missing else "the gate gave no result"
    return Headline("unsure", "Unfinished run: nothing to approve", f"{first[:1].upper()}{first[1:]}.")


def _decided(run: Run, decided: Part) -> Headline:
    """The result; first that it is unknown who approved it, if so, then the reason that was given."""
    problem = f"It cannot be shown to be approved: {decided['problem']}. " if decided["problem"] else ""
    tone: Tone = "good" if decided["outcome"] in ("promoted", "rolled back") and not problem else "bad"
    outcome = "champion again: rollback" if decided["outcome"] == "rolled back" else str(decided["outcome"])
    title = f"{outcome.capitalize()} by {decided['by']}"
    now = " It is the present champion." if decided["present"] else ""
    reason = f"Reason given: “{decided['reason']}”. " if decided["reason"] else ""
    return Headline(tone, title, f"{problem}{reason}{gain_sentence(run)}{now}")


def _ended(run: Run) -> str:
    """Why the gate said no: what ended the run, or the checks that did not pass; then what was measured."""
    if run.untrusted:
        return _untrusted(run)
    if run.refused:
        return _refusal(run)
    return f"{_stop(run) if run.stopped else _open_checks(run)} {gain_sentence(run)}"


def _open_checks(run: Run) -> str:
    said = {"fail": "Failed", "inconclusive": "Inconclusive"}
    groups = groupby(open_checks(read_checks(run)), key=lambda check: check.result)
    return " ".join(f"{said[result]}: {', '.join(check.name for check in group)}." for result, group in groups)


def _untrusted(run: Run) -> str:
    return f"The verifier failed its audit: {_reasons(run.audit)}."


def _refusal(run: Run) -> str:
    return f"Triage refused the SFT checkpoint: {_reasons(run.triage)}."


def _reasons(part: Part | None) -> str:
    return "; ".join(map(str, dig(part, "reasons") or ["no reason recorded"]))


def _stop(run: Run) -> str:
    return (
        f"The health rule {dig(run.train, 'stopped_by')} stopped training after {dig(run.train, 'steps')} "
        f"of {run.settings.train.steps} steps: {dig(run.train, 'reason')}."
    )


def gain_sentence(run: Run) -> str:
    """What reinforcement learning did to held-out pass@1, and how that compares with the champion, in plain words."""
    return " ".join(filter(None, (_gain_over_sft(run), _gain_over_champion(run))))


def _gain_over_champion(run: Run) -> str:
    """Empty where there is no champion."""
    gain = sampled(run.measured, "champion", run.settings.evaluation.small)
    if gain is None:
        return ""
    whose = "the champion" if gain.before is None else f"the champion's {percent(gain.before)}"
    than = f"than {whose} ({points(gain.mean)} points, {gain.span})"
    said = {1: "better", -1: "worse", 0: "neither clearly better nor clearly worse"}
    return f"It is {said[gain.direction]} {than}."


def _gain_over_sft(run: Run) -> str:
    gain = sampled(run.measured, "sft", run.settings.evaluation.small)
    if gain is None or gain.before is None or gain.after is None:
        return "There is no held-out evaluation."
    subject = f"pass@1 on {plural(gain.prompts, 'held-out prompt')}"
    change = f"from {percent(gain.before)} to {percent(gain.after)} ({points(gain.mean)} points, {gain.interval})"
    said = {1: "rose", -1: "fell", 0: "shows no clear change:"}
    return f"{subject} {said[gain.direction]} {change}."


@dataclass(frozen=True)
class Check:
    """One check; ``change`` is empty where it passed, and where an old record does not say."""

    name: str
    result: str
    evidence: str
    change: str


def read_checks(run: Run) -> list[Check]:
    """The checks of the answer that counts, in the gate's order."""
    rows: Sequence[Mapping[str, Any]] = dig(run.judged, "checks") or ()
    return [
        Check(
            str(row["name"]), str(row["result"]), str(row.get("evidence") or ""),
            "" if row["result"] == "pass" else str(row.get("how") or ""),
        )
        for row in rows
    ]  # fmt: skip


def check_named(run: Run, name: str) -> Check | None:
    """The gate's answer to one of its checks; None where it did not make that one."""
    return next((check for check in read_checks(run) if check.name == name), None)


def grouped(checks: Sequence[Check]) -> dict[str, list[Check]]:
    """By question; within one, and among them, what did not pass comes first."""
    found: dict[str, list[Check]] = {name: [] for name in (*GROUPS, OTHER)}
    for check in sorted(checks, key=_gravity):
        found[_group(check.name)].append(check)
    groups = [(name, group) for name, group in found.items() if group]
    return dict(sorted(groups, key=lambda item: min(map(_gravity, item[1]))))


def open_checks(checks: Sequence[Check]) -> list[Check]:
    """What failed, which decides alone; then what is inconclusive, which only a person can judge."""
    return [check for result in ("fail", "inconclusive") for check in checks if check.result == result]


def tally(checks: Sequence[Check]) -> dict[str, int]:
    """How many checks had each result, of those that occurred."""
    counts = {result: sum(check.result == result for check in checks) for result in reversed(ORDER)}
    return {result: amount for result, amount in counts.items() if amount}


def _gravity(check: Check) -> int:
    return ORDER.index(check.result) if check.result in ORDER else 0


def _group(name: str) -> str:
    return next((group for group, words in GROUPS.items() if any(word in name.lower() for word in words)), OTHER)
