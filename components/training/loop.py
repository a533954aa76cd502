"""The loop of a GRPO run, on one screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from components.config import Settings
from components.dpo.pairs import pairs_of
from components.health import dev_signals, like_gap, step_signals
from components.health.invariants import with_broken
from components.learner import IN_FORCE, Batch, build_batch, settings_checksum
from components.rollout import Rollout
from components.training.assembly import Parts
from components.training.background import finished
from components.training.conduct import checkpoint, configure, peers_asked_as_well, respond, standing, stoppable, watch
from components.training.credit import Credit
from components.training.first_order import Rows, effect, rows_of
from components.training.heldout import followed
from components.training.run import NOT_COUNTED
from components.training.soundness import (
    Updated,
    agreement,
    are_centred,
    inspect,
    learnable,
    nothing_learned,
    usable_groups,
)
from components.training.staleness import mismatch, named, staleness
from components.training.weights import hand_over
from components.types import StepRecord

OnStep = Callable[[StepRecord], None]


def train(parts: Parts, on_step: OnStep) -> None:
    """Train until the last step, or until a health rule says stop. Every signal of a step describes its first policy,
    but for those of rollouts that were sampled ahead: they describe the policy that sampled them.

    The state is checkpointed every ``train.checkpoint_every`` steps and at the end, so that a killed run repeats at
    most that many steps, to the same bytes, and when it is asked to stop, so that it repeats none.
    """
    with peers_asked_as_well(parts):
        _train(parts, on_step)


def _train(parts: Parts, on_step: OnStep) -> None:
    state, how = parts.state, parts.state.responder.started.train
    configure(parts)
    if not state.step:
        checkpoint(parts)  # where a run begins can always be gone back to
    while state.progress < how.steps and not state.stopped_by:
        settings, seed = state.responder.settings, state.seed()
        due = state.dev_is_due
        with stoppable(parts):
            asked = (parts.rollouts.dev() if due else finished([])), parts.rollouts.canaries()
            golden = parts.rollouts.golden(state.step)
            rollout = parts.rollouts.take()
        likely = parts.canaries.likelihood(state.learner, state.progress, state.evidence.jumps.latest)
        gap = mismatch(state.learner, asked[0].result(), parts.reference.pad_id) if parts.rollouts.ahead else {}
        usable = learnable(parts, rollout)
        updated = _update(parts, usable, settings, seed, with_kl=due)
        update = updated.signals | gap
        dev, probed = usable_groups(parts, asked[0].result()), [*asked[1].result(), *likely]
        measured = state.canaries.observe(probed) | update | hand_over(state.learner, parts.rollouts)

        measured |= {f"schedule_{name}": value for name, value in rollout.schedule.items()}
        measured |= state.evidence.usual_gap.observe(measured)
        opinion, disagreements = parts.second.compare(rollout.sampled, state.step)
        measured |= opinion | state.evidence.jumps.observe(rollout.sampled) | standing(state)
        fallen, held_out = followed(state, dev)
        measured |= dev_signals(dev, how.eval_samples) | like_gap(rollout.sampled, dev) | fallen
        sound, unsound = inspect(parts, rollout, updated, golden.result())
        measured |= sound
        state.drew(rollout.sampled)
        record = StepRecord(state.step, step_signals(rollout.sampled, rollout.trained, measured, rollout.attempts))

        pairs = pairs_of(rollout.sampled, state.step, seed, how.keep_pairs)
        record = replace(record, notes={"pairs": [pair.to_row() for pair in pairs], "disagreements": disagreements})
        record = with_broken(record, unsound)
        if nothing_learned(updated, rollout, usable) and state.repeated < how.steps:
            record = replace(record, notes={**record.notes, NOT_COUNTED: True})
        verdicts, record = watch(state, record)
        record = respond(verdicts, parts, rollout, record, held_out, unsound)
        if state.progress % how.checkpoint_every == 0 or state.stopped_by:
            checkpoint(parts)
        on_step(record)
    state.enter(
        state.responder.awaiting.outcomes(state.step - 1, state.monitor, {}, over=True, blind=bool(state.blind))
    )
    checkpoint(parts)
    state.writer.wait()


def _update(parts: Parts, rollout: Rollout, settings: Settings, seed: int, with_kl: bool) -> Updated:
    """One learner step on the groups that carry a gradient; nothing when none does.

    While the critic is pre-trained, only it learns.
    """
    if not any(group.completions for group in rollout.trained):
        return Updated()
    state, reference = parts.state, parts.reference
    batch = build_batch(rollout.trained, reference.pad_id, settings.objective.overlong_filter)
    if with_kl or settings.objective.kl:
        batch = replace(batch, ref_logp=reference.logprobs(batch))
    credit = Credit(state.learner, state.critic, reference.policy, settings.objective)
    batch, signals = credit.assign(batch, rollout.trained, state.progress)
    agrees = agreement(batch, rollout.trained, settings)
    if state.critic is not None and state.progress < settings.learner.critic.pretrain_steps:
        return Updated(signals)
    rows = _looked_at(parts, batch, rollout, settings)
    update = state.learner.step(batch.sealed() if state.guard.enabled else batch, seed, state.guard.limit)
    state.guard.observe(update)
    in_force = settings_checksum(settings.learner, settings.objective), update.pop(IN_FORCE, None)
    done = None if rows is None or update.get("updates_skipped") else effect(state.learner, rows)
    age = staleness(batch, state.version, settings.learner.updates_per_step)
    found = signals | named(update, batch, state.version) | age | ({} if done is None else {"update_kl": done.moved})
    return Updated(
        found, agrees, {} if done is None else done.raised, None if in_force[1] is None else (in_force[0], in_force[1])
    )


def _looked_at(parts: Parts, batch: Batch, rollout: Rollout, settings: Settings) -> Rows | None:
    """The rows that are scored again after the update: where advantages are rewards, and the present policy sampled."""
    if parts.rollouts.ahead or not are_centred(settings):
        return None
    return rows_of(parts.state.learner, batch, rollout.trained, exact=parts.state.evidence.usual_gap.exact)
