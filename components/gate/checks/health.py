"""Was training healthy, and did it come to its end, with every step on record?

The monitor that ran is not trusted: the rules are replayed over the whole log. A run fails that was stopped, that did
not recover from a response, in which an acting rule still holds at the end, or whose held-out accuracy, of all prompts
or of one family, is measurably below its best at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.config import Settings
from components.config.judgement import RuleSettings
from components.errors import InputError
from components.gate.evidence import Answer, Check, Evidence
from components.health.falls import lost
from components.health.monitor import GRAVE, replay, standing, unjudged
from components.health.other_runs import judge_other
from components.health.records import NOT_FINITE
from components.health.responses import Ledger
from components.health.responses.under_watch import UNDER_WATCH
from components.types import GateResult, Response, StepRecord, Verdict


def _healthy(evidence: Evidence, settings: Settings) -> Answer:
    live: Sequence[Verdict] = evidence.read("verdicts")
    ledger: Ledger = evidence.read("ledger")
    records: Sequence[StepRecord] = evidence.read("records")
    if settings.train.adopted is not None:
        return elsewhere(settings.health.rules, records)
    failed = next((record for record in records if "monitor_failed" in record.notes), None)
    if failed is not None:
        return "fail", f"nobody watched from step {failed.step} on: {failed.notes['monitor_failed']}"
    again = replay(settings.health.rules, records)
    if not settings.health.enabled or not settings.health.rules:
        return _unwatched(again)
    if [v.to_dict() for v in live] != [v.to_dict() for v in again]:
        return "fail", f"the log does not replay: {len(live)} verdicts while training, {len(again)} now"
    if missing := blind(settings.health.rules, records):
        return "fail", missing
    stop = next((response for response in ledger.responses if _ends(response, settings)), None)
    if stop is not None:
        return "fail", f"{stop.rule} says {stop.asked} at step {stop.step}: {stop.reason}"
    if parts := lost(records):
        return "fail", "; ".join(parts)
    if holding := standing(settings.health.rules, records):
        return "fail", f"unresolved: {', '.join(holding)} still {'hold' if len(holding) > 1 else 'holds'} at the end"
    return _responses(again, ledger)


def elsewhere(rules: Mapping[str, RuleSettings], records: Sequence[StepRecord]) -> Answer:
    """Of a training that another trainer made: what its log shows is judged, and the rest is left to a person."""
    if odd := next((record for record in records if record.notes.get(NOT_FINITE)), None):
        return "fail", f"{', '.join(odd.notes[NOT_FINITE])} not finite in the log at step {odd.step}"
    fired = judge_other(rules, records)
    if grave := _grave(fired):
        return "fail", grave
    judged = f"{len(rules) - len(unjudged(rules, records))} of {len(rules)} rules could judge its log"
    return "inconclusive", f"trained elsewhere, nothing was watched: {judged}; {_fired(fired) or 'none of them fired'}"


def _unwatched(verdicts: Sequence[Verdict]) -> Answer:
    """Of a run without a monitor: what the rules would have said."""
    if grave := _grave(verdicts):
        return "fail", grave
    return "inconclusive", "nobody watched: the monitor was off or had no rules"


def _grave(verdicts: Sequence[Verdict]) -> str:
    """The first verdict that would have stopped the run or taken it back; "" where there is none."""
    return next((_said(verdict) for verdict in verdicts if verdict.level in GRAVE), "")


def _said(verdict: Verdict) -> str:
    return f"{verdict.rule} says {verdict.level} at step {verdict.step}: {verdict.reason}"


def _fired(verdicts: Sequence[Verdict]) -> str:
    return ", ".join(f"{verdict.rule} ({verdict.level}, step {verdict.step})" for verdict in verdicts)


def _ends(response: Response, settings: Settings) -> bool:
    """Whether the run was stopped, or would have been taken back had the monitor been allowed to."""
    ignored = not settings.health.responses.enabled and response.asked in GRAVE
    return response.level == "stop" or ignored


def blind(rules: Mapping[str, RuleSettings], records: Sequence[StepRecord]) -> str:
    """Acting rules that could not be judged, "" where there is none: a missing metric is a breach here, and merely
    unknown while training."""
    missing = unjudged(rules, records)
    acting = [name for name in missing if rules[name].level != "warn" and not rules[name].optional]
    named = "; ".join(f"{name} ({', '.join(missing[name])})" for name in acting)
    return f"could not be judged for want of signals: {named}" if named else ""


def _responses(verdicts: Sequence[Verdict], ledger: Ledger) -> Answer:
    """A run that was acted upon passes where it recovered from everything. Where that was not measured a person has to
    look. Of several responses to one rule the last counts."""
    acted = [one for one in ledger.responses if one.level in ("intervene", "rollback") and one.undoes is None]
    last = {one.rule: one for one in acted}.values()
    known = {one.rule: outcome.recovered for one in last if (outcome := ledger.outcome(one)) is not None}
    if failed := [one for one in last if known.get(one.rule) is False]:
        return "fail", f"acted upon, and not recovered: {_named(failed)}"
    if unknown := [one for one in last if known.get(one.rule) is None]:
        return "inconclusive", f"acted upon, and not known to have recovered: {_named(unknown)}"
    if again := _broken_again(ledger):
        return "fail", f"broken again under watch: {_named(again)}"
    if acted:
        return "pass", f"acted upon and recovered: {_named(acted)}"
    return "pass", f"warnings: {_named(verdicts)}" if verdicts else "no rule fired"


def _named(ones: Sequence[Verdict | Response]) -> str:
    return ", ".join(f"{one.rule} (step {one.step})" for one in ones)


def _broken_again(ledger: Ledger) -> list[Response]:
    """What rules said of a part after it had gone under watch, and that was merely noted."""
    since = {one.part: one.step for one in reversed(ledger.responses) if UNDER_WATCH in one.changes}
    noted = [one for one in ledger.responses if one.level == "warn" and one.asked != "warn"]
    return [one for one in noted if one.step > since.get(one.part, one.step)]


def under(rules: Mapping[str, RuleSettings], evidence: Evidence, settings: Settings) -> Answer:
    """What rules find in a training that was not watched by them: nothing grave that was not undone, and no rule
    blind."""
    try:
        records: Sequence[StepRecord] = evidence.read("records")
    except InputError as error:
        return "fail", error.what
    if settings.train.adopted is not None:
        return elsewhere(rules, records)
    undone = {record.step for record in records if "rolled_back_to" in record.notes}
    fired = replay(rules, records)
    for verdict in fired:
        if verdict.level == "stop" or (verdict.level == "rollback" and verdict.step not in undone):
            return "fail", _said(verdict)
    if missing := blind(rules, records):
        return "fail", missing
    return "pass", f"rules that fired: {_fired(fired)}" if fired else "no rule fired"


def _by_policy(evidence: Evidence, settings: Settings) -> Answer:
    """By the rules of the policy, whatever the run was watched by."""
    rules: Mapping[str, RuleSettings] = evidence.read("policy_rules")
    if not rules:
        return "inconclusive", "the policy names no health rules"
    return under(rules, evidence, settings)


def _completed(evidence: Evidence, settings: Settings) -> Answer:
    records: Sequence[StepRecord] = evidence.read("records")
    outcome = evidence.value("train", "outcome")
    steps, progress = (evidence.number("train", name) for name in ("steps", "progress"))
    if settings.train.adopted is not None:
        last = f"its log has {len(records)} steps, the last one is {progress:.0f}"
        return "inconclusive", f"trained elsewhere: {last}; which step was to be the last is not known"
    planned = settings.train.steps
    unbroken = len(records) == steps and all(record.step == number for number, record in enumerate(records))
    answer: GateResult = "pass" if outcome == "completed" and progress == planned <= steps and unbroken else "fail"
    undone = f", {steps - progress:.0f} more were undone" if steps > progress else ""
    return answer, f"{outcome} after {progress:.0f} of {planned} steps{undone}, {len(records)} on record"


HEALTHY = Check(
    _healthy,
    "read out/verdict.md for what went wrong and what to do next, and train again under watch to the end. Of a "
    "checkpoint from another trainer: `evenkeel audit LOG` shows what was judged; give the reason when you approve",
)
BY_POLICY = Check(
    _by_policy, "train again under the rules of the policy (`rules` in configs/promotion/policy.yaml), to a pass"
)
COMPLETED = Check(
    _completed,
    "train to the last planned step; what stopped it is in out/verdict.md. Of a checkpoint from another trainer: see "
    "whether this was the end, and give the reason when you approve",
)
