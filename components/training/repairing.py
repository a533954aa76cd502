"""What a repair may need to know of a step, and how repairs of the sampler are carried out."""

from __future__ import annotations

from collections.abc import Sequence

from components.health.diagnosis import MISJUDGED, REVERSED, Diagnosis
from components.health.invariants import Broken, advantages
from components.health.responses import Plan
from components.health.responses.repairs import RELOAD, Situation
from components.health.responses.under_watch import TORN
from components.health.sequential import PROVEN
from components.objectives.controllers import followed
from components.rollout import Rollout
from components.training.assembly import Parts
from components.training.experiments import BY_SERVER, misjudged_family
from components.training.run import NOT_COUNTED
from components.training.soundness import second_agrees
from components.types import StepRecord


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
