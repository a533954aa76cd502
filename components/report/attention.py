"""What a reviewer should look at before deciding: facts that do not decide by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from components.health.responses import Ledger
from components.report.canaries import canary_rows
from components.report.gains import Gain, forests
from components.report.run import Part, Run, dig
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
        named = [f"{verdict.rule} ({verdict.level}, step {verdict.step})" for verdict in fired[:MOST_NAMED]]
        more = [f"{len(fired) - MOST_NAMED} more"] if len(fired) > MOST_NAMED else []
        yield f"{plural(len(fired), 'health verdict')}: {'; '.join(named + more)}."
    acts = [response for response in (run.ledger or Ledger()).responses if response.level != "warn"]
    if acts:
        named = [f"{act.rule} ({act.level}, step {act.step})" for act in acts[:MOST_NAMED]]
        more = [f"{len(acts) - MOST_NAMED} more"] if len(acts) > MOST_NAMED else []
        yield f"{plural(len(acts), 'response')} changed how it was trained: {'; '.join(named + more)}."
    done, kept = dig(run.train, "steps"), dig(run.train, "checkpoint_step")
    if done is not None and kept is not None and kept < done:
        undone = f"{number(done - kept)} of {plural(done, 'step')} were undone"
        yield f"The checkpoint has {plural(kept, 'step')} behind it; {undone}."


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
    for plot in forests(run.measured, run.settings.evaluation.small):
        than = "" if plot.name == "sft" else "against the champion "
        rows = [
            replace(row, name=f"{than}in {title.removeprefix('pass@1 by ')} {row.name}")
            for title, rows in plot.groups.items()
            for row in rows
            if title.startswith("pass@1 by ") and row.mean is not None and row.mean < -NOTABLE
        ]
        found += [row for row in rows if row.clear or not than]
    return sorted(found, key=lambda row: not row.clear)


def _falls_as_a_whole(run: Run) -> Iterator[tuple[str, Gain]]:
    """Where, and measures of all test prompts or of a suite that fell, and not by chance."""
    for plot in forests(run.measured, run.settings.evaluation.small):
        than = "" if plot.name == "sft" else ", against the champion"
        for title, rows in plot.groups.items():
            if not title.startswith("pass@1 by "):
                place = f"on {title[0].lower()}{title[1:]}{than}"
                yield from ((place, row) for row in rows if row.paired and row.direction < 0)


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
