"""The loop of a GRPO run, on one screen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from components.config import Settings
from components.dpo.pairs import pairs_of
from components.health import dev_signals, like_gap, step_signals, worst
from components.learner import build_batch
from components.rollout import Rollout
from components.seeds import derive
from components.training.assembly import Parts
from components.training.credit import Credit
from components.training.reference import Reference
from components.training.run import RunState
from components.types import StepRecord

OnStep = Callable[[StepRecord], None]


def train(parts: Parts, settings: Settings, on_step: OnStep) -> None:
    """Train until the last step, or until a health rule says stop. Every signal of a step describes its first policy.

    The state is checkpointed every ``train.checkpoint_every`` steps and at the end, so that a killed run repeats at
    most that many steps, to the same bytes.
    """
    state = parts.state
    for step in range(state.step, settings.train.steps):
        if state.stopped_by:
            break
        seed = derive(settings.seed, "train", step)
        dev = parts.held_out.sample(seed) if step % settings.train.eval_every == 0 else []
        rollout = parts.collector.step(state.schedule, settings.train.prompts_per_step, seed)
        update = _update(state, rollout, parts.reference, settings, seed, with_kl=bool(dev))
        state.engine.load_weights(state.learner.weights())

        schedule = {f"schedule_{name}": value for name, value in state.schedule.metrics().items()}
        opinion, disagreements = parts.second.compare(rollout.sampled, step)
        measured = update | schedule | opinion | state.jumps.observe(rollout.sampled)
        measured |= dev_signals(dev, parts.held_out.samples) | like_gap(rollout.sampled, dev)
        signals = step_signals(rollout.sampled, rollout.trained, measured, rollout.attempts)
        record = StepRecord(step, signals)
        verdicts = state.monitor.observe(record)
        if worst(verdicts) == "stop":
            state.stopped_by = next(verdict.rule for verdict in verdicts if verdict.level == "stop")
        pairs = pairs_of(rollout.sampled, step, seed, settings.train.keep_pairs)
        notes = {
            "verdicts": [v.to_dict() for v in verdicts],
            "pairs": [pair.to_row() for pair in pairs],
            "disagreements": disagreements,
        }
        state.append(replace(record, notes=notes))
        if state.step % settings.train.checkpoint_every == 0 or state.stopped_by:
            state.checkpoint()
        on_step(record)
    if state.step % settings.train.checkpoint_every and not state.stopped_by:
        state.checkpoint()


def _update(
    state: RunState, rollout: Rollout, reference: Reference, settings: Settings, seed: int, with_kl: bool
) -> dict[str, float]:
    """One learner step on the groups that carry a gradient; nothing when none does.

    While the critic is pre-trained, only it learns.
    """
    if not any(group.completions for group in rollout.trained):
        return {}
    batch = build_batch(rollout.trained, reference.pad_id, settings.objective.overlong_filter)
    if with_kl or settings.objective.kl:
        batch = replace(batch, ref_logp=reference.logprobs(batch))
    credit = Credit(state.learner, state.critic, reference.policy, settings.objective)
    batch, signals = credit.assign(batch, rollout.trained, state.step)
    if state.critic is not None and state.step < settings.learner.critic.pretrain_steps:
        return signals
    return signals | state.learner.step(batch, seed)
