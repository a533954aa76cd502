"""What a reviewer should look at before deciding: facts that do not decide by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from components.health.responses import Ledger
from components.report.canaries import canary_rows
from components.report.gains import SLICE, Gain, forests
from components.report.run import Part, Run, dig
from components.types import Response, Verdict
from components.words import number, percent, plural, points

MOST_NAMED = 4
"""Verdicts that are named before the rest is only counted; the health table has them all."""
NOTABLE = 0.01
"""Changes of a share by less than a point are not pointed out."""


def attention(run: Run) -> list[str]:
    """One sentence each, gravest first; empty when nothing stands out."""
    return [*_training(run), *worse(run), *_data(run)]


def worse(run: Run) -> list[str]:
    """Probe sets, slices and shares that fell."""
    return [*_canaries(run), *_evaluation(run)]


def _training(run: Run) -> Iterator[str]:
    if run.audit_override:
        yield f"The verifier failed its audit and was used all the same. Reason given: “{run.audit_override}”"
    if run.override:
        yield f"Triage refused the SFT checkpoint and was overridden. Reason given: “{run.override}”"
    fired = run.verdicts or []
    if fired:
        yield f"{plural(len(fired), 'health verdict')}: {_first(fired)}."
    acts = [response for response in (run.ledger or Ledger()).responses if response.level != "warn"]
    if acts:
        yield f"{plural(len(acts), 'response')} changed how it was trained: {_first(acts)}."
    done, kept = dig(run.train, "steps"), dig(run.train, "checkpoint_step")
    if done is not None and kept is not None and kept < done:
        undone = f"{number(done - kept)} of {plural(done, 'step')} were undone"
        yield f"The checkpoint has {plural(kept, 'step')} behind it; {undone}."


def _first(events: Sequence[Verdict | Response]) -> str:
    """The first ones by name, the others as a number."""
    named = [f"{one.rule} ({one.level}, step {one.step})" for one in events[:MOST_NAMED]]
    return "; ".join([*named, *([f"{len(events) - MOST_NAMED} more"] if len(events) > MOST_NAMED else [])])


def _canaries(run: Run) -> Iterator[str]:
    """Probe sets that fell and not by chance, though the gate may put up with it."""
    for row in canary_rows(run):
        if row.high is not None and row.high < 0 and row.result != "lost":
            fall = f"{points(row.change)} points, 95 % interval {points(row.low)} to {points(row.high)}"
            kept = "" if row.limit is None else f"; it may fall by {number(100 * row.limit)}"
            yield f"The probe set {row.name} ({row.way}) fell: {fall}{kept}."


def _evaluation(run: Run) -> Iterator[str]:
    sft, trained = dig(run.measured, "sft") or {}, dig(run.measured, "trained") or {}
    for row in _falls(run):
        fall = f"{percent(row.before)} to {percent(row.after)} ({plural(row.prompts, 'prompt')}"
        sure = "" if row.clear else f"; {row.interval}, so it may be chance"
        yield f"pass@1 fell {row.name}: {fall}{sure})."
    for place, row in _falls_as_a_whole(run):
        shares = f"{percent(row.before)} to {percent(row.after)}"
        yield f"{row.name}, fell {place}: {shares} ({plural(row.prompts, 'prompt')}; {row.interval})."
    yield from _pass_at_k(dig(run.measured, "k"), sft, trained)
    cut, cut_before = trained.get("truncated_share"), sft.get("truncated_share")
    if cut is not None and cut > (cut_before or 0) + NOTABLE:
        yield f"Completions cut at the length limit rose from {percent(cut_before)} to {percent(cut)}."
    if trained.get("unscorable_share"):
        yield f"{percent(trained['unscorable_share'], 2)} of completions could not be scored."


def _pass_at_k(k: int | None, sft: Part, trained: Part) -> Iterator[str]:
    sides = {"the SFT checkpoint": sft, "the trained policy": trained}
    unknown = [name for name, side in sides.items() if side.get("pass_at_k", 0.0) is None]
    if unknown:
        why = f"no prompt has {k} completions that could be scored"
        yield f"pass@{k} of {' and of '.join(unknown)} is not known: {why}."
    before, after = sft.get("pass_at_k"), trained.get("pass_at_k")
    if before is not None and after is not None and after < before - NOTABLE:
        yield f"pass@{k} fell from {percent(before)} to {percent(after)}: less diverse."


def _falls(run: Run) -> list[Gain]:
    """Slices in which the policy got worse than its start or the champion: of the latter only what cannot be chance."""
    found = []
    for side, title, row in _rows(run):
        if title.startswith(SLICE) and row.mean is not None and row.mean < -NOTABLE and (row.clear or side == "sft"):
            than = "" if side == "sft" else "against the champion "
            found.append(replace(row, name=f"{than}in {title.removeprefix(SLICE)} {row.name}"))
    return sorted(found, key=lambda row: not row.clear)


def _falls_as_a_whole(run: Run) -> Iterator[tuple[str, Gain]]:
    """Where, and measures of all test prompts or of a suite that fell, and not by chance."""
    for side, title, row in _rows(run):
        if not title.startswith(SLICE) and row.paired and row.direction < 0:
            than = "" if side == "sft" else ", against the champion"
            yield f"on {title[0].lower()}{title[1:]}{than}", row


def _rows(run: Run) -> Iterator[tuple[str, str, Gain]]:
    """Every row of the forest plots: the other side, the title of its group, the row."""
    for plot in forests(run.measured, run.settings.evaluation.small):
        yield from ((plot.name, title, row) for title, rows in plot.groups.items() for row in rows)


def _data(run: Run) -> Iterator[str]:
    rows, quarantined = dig(run.validation, "rows"), dig(run.validation, "quarantined")
    if dig(run.validation, "success") is False:
        yield "The data did not pass validation."
    if quarantined:
        yield f"{number(quarantined)} of {number(rows)} data rows are in quarantine."
    for finding in dig(run.validation, "table") or []:
        if finding["level"] != "pass":
            yield f"Data, {finding['name']}: {finding['what']}."
    withheld, flagged = dig(run.admission, "withheld") or [], dig(run.admission, "flagged") or []
    if withheld:
        yield f"{plural(len(withheld), 'training prompt')} withheld for review, see out/admission.jsonl."
    elif flagged:
        yield f"Training prompts that a person should read are in out/admission.jsonl, {flagged[0]['id']} first."
