"""The loop of a GRPO run, on one screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from components.dpo.pairs import pairs_of
from components.health.invariants import with_broken
from components.health.signals import dev_signals, like_gap, step_signals
from components.training.assembly import Parts
from components.training.background import finished
from components.training.conduct import checkpoint, configure, respond, standing, stoppable, stopped_with_peers
from components.training.heldout import followed
from components.training.run import NOT_COUNTED
from components.training.soundness import inspected, learnable, nothing_learned, usable_groups
from components.training.update import hand_over, mismatch, update
from components.training.watching import watch
from components.types import StepRecord

OnStep = Callable[[StepRecord], None]


def train(parts: Parts, on_step: OnStep) -> None:
    """Train until the last step, or until a health rule says stop. Every signal of a step describes its first policy,
    but for those of rollouts that were sampled ahead: they describe the policy that sampled them.

    The state is checkpointed every ``train.checkpoint_every`` steps and at the end, so that a killed run repeats at
    most that many steps, to the same bytes, and on a stop request, so that it repeats none.
    """
    with stopped_with_peers(parts):
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
            evaluations = (parts.rollouts.dev() if due else finished([])), parts.rollouts.canaries()
            golden = parts.rollouts.golden(state.step)
            rollout = parts.rollouts.take()
            parts.rollouts.rest()
        likely = parts.canaries.likelihood(state.learner, state.progress, state.evidence.jumps.latest)
        gap = mismatch(state.learner, evaluations[0].result(), parts.policy.pad_id) if parts.rollouts.ahead else {}
        usable = learnable(parts, rollout)
        updated = update(parts, usable, settings, seed, with_kl=due)
        dev, probed = usable_groups(parts, evaluations[0].result()), [*evaluations[1].result(), *likely]
        handed = hand_over(state.learner, parts.rollouts.load_weights)
        measured = state.canaries.observe(probed) | updated.signals | gap | handed
        measured |= {f"schedule_{name}": value for name, value in rollout.schedule.items()}
        measured |= state.evidence.usual_gap.observe(measured)
        opinion, disagreements = parts.second.compare(rollout.sampled, state.step)
        measured |= opinion | state.evidence.jumps.observe(rollout.sampled) | standing(state)
        fallen, held_out = followed(state, dev)
        measured |= dev_signals(dev, how.eval_samples) | like_gap(rollout.sampled, dev) | fallen
        sound, unsound = inspected(parts, rollout, updated, golden)
        measured |= sound
        state.record_draws(rollout.sampled)
        record = StepRecord(state.step, step_signals(rollout.sampled, rollout.trained, measured, rollout.attempts))

        pairs = pairs_of(rollout.sampled, state.step, seed, how.keep_pairs)
        record = replace(record, notes={"pairs": [pair.to_row() for pair in pairs], "disagreements": disagreements})
        record = with_broken(record, unsound)
        if nothing_learned(updated, rollout, usable) and state.repeated < how.steps:
            record = replace(record, notes={**record.notes, NOT_COUNTED: True})
        verdicts = watch(state, record)
        record = respond(verdicts, parts, rollout, record, held_out, unsound)
        if state.progress % how.checkpoint_every == 0 or state.stopped_by:
            checkpoint(parts)
        on_step(record)
    state.enter(state.responder.pending.outcomes(state.step - 1, state.monitor, {}, over=True, blind=bool(state.blind)))
    checkpoint(parts)
    state.writer.wait()
