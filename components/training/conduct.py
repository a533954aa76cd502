"""Carries out what the responder decided: knobs, repairs, quarantine, roll-back, stop; and writes it down."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

from components.errors import NonfiniteWeights, PeerLost, RankLost, Stopped
from components.health.diagnosis import MISJUDGED, REVERSED, Diagnosis
from components.health.falls import Counts
from components.health.invariants import Broken, advantages
from components.health.responses import Plan
from components.health.responses.repairs import RELOAD, SECOND_JUDGES, Situation
from components.health.responses.under_watch import TORN
from components.health.sequential import PROVEN
from components.objectives.controllers import followed
from components.processes.stopping import StopRequested
from components.rollout import Rollout
from components.training.assembly import Parts
from components.training.experiments import BY_SERVER, diagnosed, misjudged_family
from components.training.run import DEV_SIGNALS, NOT_COUNTED, RunState
from components.training.soundness import second_agrees
from components.training.watching import as_note, looked
from components.types import Group, StepRecord, Verdict

REVIEWS = ("audit.agreement", SECOND_JUDGES)
"""Knobs after which the dev split is judged otherwise."""


def situation(
    parts: Parts, rollout: Rollout, record: StepRecord, unsound: Sequence[Broken], diagnosis: Diagnosis | None
) -> Situation:
    """What the step and the diagnosis say of servers, of the second verifier and of a family."""
    agrees = record.signals.get("golden_second")
    if agrees is None and diagnosis is not None and diagnosis.part == "verifier":
        agrees = second_agrees(parts)
    servers = {one.server for group in rollout.sampled for one in group.completions if one.server >= 0}
    family, nats = misjudged_family(parts.state)
    updates = parts.state.responder.settings.learner.updates_per_step
    learned = "grad_norm" in record.signals and record.signals.get("updates_skipped", 0.0) < updates
    return Situation(
        server=_suspect(parts, servers, record, unsound, diagnosis),
        servers=len(servers),
        second_agrees=agrees,
        family=family if nats > MISJUDGED else "",
        step=record.step,
        fall=record.signals.get("fall_evidence", 0.0),
        learned=learned,
        trains=learned or bool(record.signals.get(TORN)),
        sound=_is_sound(record, unsound),
        in_force=followed(parts.state.responder.settings.objective, parts.state.learner.coefficients),
        repeated=parts.state.repeated + (NOT_COUNTED in record.notes),
    )


def _is_sound(record: StepRecord, unsound: Sequence[Broken]) -> bool:
    """Whether the weights are numbers, and neither advantages nor updates have the wrong sign."""
    signals = record.signals
    wrong = any(one.name == advantages.__name__ for one in unsound) or signals.get("reversal_evidence", 0.0) > REVERSED
    return not wrong and not signals.get("nonfinite_weights")


def _suspect(
    parts: Parts, servers: set[int], record: StepRecord, unsound: Sequence[Broken], diagnosis: Diagnosis | None
) -> int:
    """The first server that something exact, then a test, then a gap points at, and that is still in use; -1: none."""
    evidence, excluded = parts.state.evidence, parts.state.responder.repairs.excluded
    suspects = [one.server for one in unsound]
    if record.signals.get("repeat_evidence", 0.0) > PROVEN:
        suspects.append(evidence.draws.worst)
    gaps = {server: record.signals.get(f"{BY_SERVER}{server}", 0.0) for server in sorted(servers)}
    suspects += [server for server, gap in gaps.items() if gap > evidence.usual_gap.limit]
    if diagnosis is not None:
        suspects.append(diagnosis.server)
    return next((one for one in suspects if one >= 0 and one not in excluded), -1)


def exclude(parts: Parts) -> None:
    """Have the servers that were excluded sample no more."""
    for server in sorted(parts.state.responder.repairs.excluded):
        parts.state.engine.exclude(server)
        parts.state.evidence.draws.forget(server)


def reload(parts: Parts, plan: Plan) -> None:
    """Hand the weights over to the sampler again, where that was decided."""
    if any(change.knob == RELOAD for response in plan.responses for change in response.changes):
        parts.rollouts.load_weights(parts.state.learner.weights())


def configure(parts: Parts) -> None:
    """Give the learner the present settings; they differ from the configured ones where a response changed a knob.

    What is sampled takes them from the state (`Rollouts`).
    """
    settings = parts.state.responder.settings
    parts.state.learner.configure(settings.learner, settings.objective)
    exclude(parts)


def checkpoint(parts: Parts) -> None:
    """Save the run, with what has been sampled for the steps ahead."""
    parts.rollouts.settle()
    parts.state.checkpoint()


@contextmanager
def stoppable(parts: Parts) -> Iterator[None]:
    """Around what a step samples, which takes the longest: where the run stops on request.

    The request comes before the step, or in the middle of its rollout, which is then thrown away. The checkpoint is
    that of the step's beginning: only the schedule has moved since. So a stop takes as long as one update and one
    checkpoint at the most. Where rollouts are sampled in the background (`rollout.asynchrony`) the run stops before a
    step only, waits for those that are under way, and the checkpoint holds them. Where they are lost, because the
    servers were stopped as well, the run has the checkpoint before (`stopped_with_peers`).

    Raises:
        Stopped: on request, and the checkpoint is whole.
    """
    state, background = parts.state, bool(parts.rollouts.ahead)
    before = None if background else state.schedule.state_dict()
    try:
        with parts.stopping.stop_point(throughout=not background):
            yield
    except StopRequested:
        if before is not None:
            parts.rollouts.discard()
            state.schedule.load_state_dict(before)
        parts.rollouts.settle()
        state.checkpoint(for_resume_only=True)
        state.writer.wait()
        what = f"stopped on request; the checkpoint of step {state.step} is whole"
        raise Stopped(what, how="the same command goes on from there") from None


@contextmanager
def stopped_with_peers(parts: Parts) -> Iterator[None]:
    """Around all steps: servers that are lost while the run is stopping were stopped as well, and are no error.

    Raises:
        Stopped: so it was; the run goes on from the checkpoint before.
    """
    try:
        yield
    except RankLost:
        raise
    except PeerLost as lost:
        if not parts.stopping.requested:
            raise
        latest = parts.state.resume.latest()
        whole = f"; the checkpoint of step {latest[0]} is whole" if latest else ""
        what = f"stopped on request, and the step that was under way is lost{whole}: {lost.what}"
        raise Stopped(what, how="the same command goes on from there") from lost


def respond(
    verdicts: Sequence[Verdict],
    parts: Parts,
    rollout: Rollout,
    record: StepRecord,
    held_out: Counts,
    unsound: Sequence[Broken] = (),
) -> StepRecord:
    """Act upon the verdicts of a step, log the step and the ledger's entries; returns the record as logged.

    Outcomes that are due come before new responses: they are judged by what was known when they fell due.

    Raises:
        NonfiniteWeights: the policy is broken and is not taken back: every further step would be wasted.
    """
    state = parts.state
    if "dev_pass_at_1" in record.signals:
        state.measured(
            record.step, record.signals["dev_pass_at_1"], record.signals.get("dev_pass_at_1_se", 0.0), held_out
        )
    outcomes = state.responder.pending.outcomes(record.step, state.monitor, held_out, blind=bool(state.blind))
    poison = poisonous(rollout.trained, record)
    diagnosis = looked(state, lambda: diagnosed(parts, verdicts, record), None)
    undone = state.responder.undo(outcomes, record.step)
    plan = state.responder.respond(
        verdicts,
        state.monitor,
        state.candidates,
        poison,
        len(state.schedule.prompts),
        situation(parts, rollout, record, unsound, diagnosis),
        diagnosis,
    )
    plan = replace(plan, responses=(*undone, *plan.responses))
    state.evidence.noted(record.step, unsound, plan)
    remeasured = _remeasured(plan, state)
    counted = {"held_out": {name: list(count) for name, count in held_out.items()}} if held_out else {}
    notes = {**record.notes, **counted, **_notes(verdicts, plan, diagnosis, remeasured=remeasured), **as_note(state)}
    record = replace(record, notes=notes)
    state.append(record)
    state.enter([*outcomes, *plan.responses])
    watched = {one.rule for one in state.responder.under_watch.verdicts.values()}
    state.suspected = plan.back_to is None and any(one.rule not in watched for one in verdicts)
    carry_out(plan, parts, remeasure=remeasured)
    if record.signals.get("nonfinite_weights") and not (plan.back_to or plan.stopped_by):
        raise NonfiniteWeights(
            "the policy holds numbers that are NaN or infinite, and nothing took it back",
            where=f"training step {record.step}",
            how="let the monitor act (health.enabled, health.responses.enabled), or lower learner.lr and train again",
        )
    return record


def carry_out(plan: Plan, parts: Parts, *, remeasure: bool) -> None:
    """Do what was decided, once it is written down."""
    state = parts.state
    state.stopped_by = plan.stopped_by
    if plan.back_to is not None:
        parts.rollouts.go_back(plan.back_to)
    if remeasure:
        state.remeasure()
    reload(parts, plan)
    if plan.responses:
        configure(parts)
    if plan.back_to is not None:
        checkpoint(parts)  # a run that is killed now must not come back to what it has left


def _remeasured(plan: Plan, state: RunState) -> bool:
    """Whether the dev split will be judged by both verifiers while the history knows figures of the first alone."""
    changed = any(change.knob in REVIEWS for response in plan.responses for change in response.changes)
    return changed or (state.responder.settings.audit.reviewed and plan.back_to is not None)


def _notes(verdicts: Sequence[Verdict], plan: Plan, diagnosis: Diagnosis | None, *, remeasured: bool) -> dict[str, Any]:
    """What a replay of the log has to know, and what a diagnosis has found."""
    return {
        "verdicts": [verdict.to_dict() for verdict in verdicts],
        **({} if plan.back_to is None else {"rolled_back_to": plan.back_to.step}),
        **({"measured_anew": list(DEV_SIGNALS)} if remeasured else {}),
        **({} if diagnosis is None else {"diagnosis": asdict(diagnosis)}),
    }


def poisonous(groups: Sequence[Group], record: StepRecord) -> list[str]:
    """Ids of the prompts whose sampler log-probabilities are no numbers; where there are none and an update was skipped
    all the same, those of its batch."""
    broken = [g.prompt.id for g in groups if not all(math.isfinite(p) for c in g.completions for p in c.logprobs)]
    return broken or [group.prompt.id for group in groups if record.signals.get("updates_skipped")]


def standing(state: RunState) -> dict[str, float]:
    """Where the run stands, as signals."""
    quarantined = len(state.responder.quarantined) / len(state.schedule.prompts)
    agreement = float(state.responder.settings.audit.reviewed)
    return {"progress": float(state.progress), "quarantined": quarantined, "agreement": agreement}
