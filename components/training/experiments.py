"""The experiments of a diagnosis: what a run tries, once a rule says that its policy is ill, before it acts on that.

They take two measurements of the dev split and a scoring pass at the most, and change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from components.health.diagnosis import Diagnosis, Experiments, diagnose
from components.health.falls import ALL, counts, fallen
from components.health.monitor import GRAVE
from components.health.responses import Saved, healthiest
from components.health.sequential import Count, fell
from components.training.assembly import Parts
from components.training.run import RunState
from components.training.update import mismatch
from components.types import StepRecord, Verdict

KNOWN = 4
"""Number of earlier updates that define what is usual."""
BY_SERVER = "mismatch_server_"


def diagnosed(parts: Parts, verdicts: Sequence[Verdict], record: StepRecord) -> Diagnosis | None:
    """The part that is to blame for what the verdicts say of the policy; None where none of them acts on it."""
    state = parts.state
    rules, how = state.responder.started.health.rules, state.responder.started.health.responses
    grave = [one for one in verdicts if rules[one.rule].part == "policy" and one.level in GRAVE]
    if not grave or not how.enabled or record.signals.get("nonfinite_weights"):
        return None
    watched = state.responder.under_watch
    known = [(part, f"it is under watch: {watched.verdicts[part].reason}") for part in watched.parts(record.step)]
    tried = Experiments(broken=[*state.evidence.unrepaired(record.step), *known])
    if not tried.broken:
        tried = replace(tried, golden=_golden(parts))
    if not tried.broken and not tried.golden[0]:
        back = healthiest(state.candidates, state.responder.attribution.clean(grave[0]))
        tried = measured(parts, tried, back)
    return diagnose(
        replace(
            tried,
            reversal=record.signals.get("reversal_evidence", 0.0),
            sudden=_sudden(state, record),
            family=misjudged_family(state),
        )
    )


def _sudden(state: RunState, record: StepRecord) -> float:
    """How many times as far as usual the latest update moved the policy; 0 where that is not known, or the rate is
    not what it was."""
    usual, moved = state.evidence.usual_move, record.signals.get("update_move", 0.0)
    if len(usual) < KNOWN or state.responder.settings.learner != state.responder.started.learner:
        return 0.0
    return float(moved / max(median(usual), 1e-9))


def _golden(parts: Parts) -> tuple[int, int]:
    """Golden items that are judged otherwise than at first, of how many."""
    again = parts.rollouts.golden().result()
    return sum(one.differs for one in again), len(again)


def measured(parts: Parts, tried: Experiments, back: Saved | None) -> Experiments:
    """The present policy scored by sampler and learner, and the last healthy one measured again."""
    state = parts.state
    signals = mismatch(state.learner, parts.rollouts.dev().result(), parts.policy.pad_id)
    gaps = {int(name.removeprefix(BY_SERVER)): v for name, v in signals.items() if name.startswith(BY_SERVER)}
    gaps = gaps or ({-1: signals["mismatch_k3"]} if "mismatch_k3" in signals else {})
    tried = replace(tried, mismatch=gaps, mismatch_limit=state.evidence.usual_gap.limit)
    if back is None or back.counts is None:
        return tried
    state.writer.wait()  # the checkpoint may still be being written
    weights = state.learner.weights_at(state.resume.folder(back.step))
    again = counts(parts.rollouts.dev_of(weights).result())
    before = {name: Count(*count) for name, count in back.counts.items()}
    return replace(tried, again=max(fallen(before, again).values(), default=0.0))


def misjudged_family(state: RunState) -> tuple[str, float]:
    """The family whose training answers are judged worse than its held-out answers were at their best, more so than
    those of the other families; with the evidence, nats. Only where a schedule does not choose by success."""
    best, trained = state.responder.pending.held_out, state.evidence.trained_counts()
    if state.responder.started.schedule.kind != "uniform":
        return "", 0.0
    both = [name for name in trained if name in best and name not in (ALL, *state.responder.repairs.withheld)]
    found = {name: fell(best[name], trained[name]) for name in both}
    if len(found) < 2:
        return "", 0.0
    worst = max(found, key=lambda name: found[name])
    others = [nats for name, nats in found.items() if name != worst]
    return worst, found[worst] - max(others)
