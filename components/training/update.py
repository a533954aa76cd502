"""One update of the policy on the groups of a step, what is known of it besides its signals, and its weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch

from components.config import Settings
from components.config.objective import KlReward
from components.config.ppo import GaeAdvantage
from components.learner.base import IN_FORCE, Learner, settings_checksum
from components.learner.batch import Batch, build_batch
from components.objectives.advantages import ADVANTAGES, rewards_of
from components.policy.weights import Weights
from components.rollout import Rollout
from components.training.assembly import Parts
from components.training.credit import Credit
from components.training.first_order import Effect, effect, rows_of
from components.training.staleness import named, staleness
from components.training.watching import looked
from components.types import Group


@dataclass(frozen=True)
class Updated:
    """The signals of an update.

    ``agreement`` is by family the covariance of its rewards and advantages, where those are centred; ``raised`` says by
    family whether it did what it was made for (`components.training.first_order`); ``in_force`` are the checksums of
    the settings that it was to have, and had.
    """

    signals: dict[str, float] = field(default_factory=dict)
    agreement: Mapping[str, float] = field(default_factory=dict)
    raised: Mapping[str, bool] = field(default_factory=dict)
    in_force: tuple[float, float] | None = None


def update(parts: Parts, rollout: Rollout, settings: Settings, seed: int, *, with_kl: bool) -> Updated:
    """One learner step on the groups that carry a gradient; nothing when none does.

    While the critic is pre-trained, only it learns.
    """
    if not any(group.completions for group in rollout.trained):
        return Updated()
    state, reference = parts.state, parts.reference
    batch = build_batch(rollout.trained, reference.pad_id, settings.objective.overlong_filter)
    if reference.read and (with_kl or settings.objective.kl):
        batch = replace(batch, ref_logp=reference.logprobs(batch))
    credit = Credit(state.learner, state.critic, reference.policy, settings.objective)
    batch, signals = credit.assign(batch, rollout.trained, state.progress)
    agrees = agreement(batch, rollout.trained, settings)
    if state.critic is not None and state.progress < settings.learner.critic.pretrain_steps:
        return Updated(signals)
    found, done = _learned(parts, batch, rollout, settings, seed)
    state.guard.observe(found)
    reported = found.pop(IN_FORCE, None)
    in_force = None if reported is None else (settings_checksum(settings.learner, settings.objective), reported)
    age = staleness(batch, state.version, settings.learner.updates_per_step)
    signals = signals | named(found, batch, state.version) | age
    if done is None:
        return Updated(signals, agrees, in_force=in_force)
    return Updated(signals | {"update_move": done.moved}, agrees, done.raised, in_force)


def _learned(
    parts: Parts, batch: Batch, rollout: Rollout, settings: Settings, seed: int
) -> tuple[dict[str, float], Effect | None]:
    """The learner's step, and what it did to a few rows: where advantages are rewards, and the present policy sampled
    them."""
    state, looks = parts.state, not parts.rollouts.ahead and are_centred(settings)
    learner, exact = state.learner, state.evidence.usual_gap.exact
    rows = (
        looked(state, lambda: rows_of(learner, batch, rollout.trained, state.step, exact=exact), None)
        if looks
        else None
    )
    if state.guard.enabled:
        batch = batch.sealed(binding=not state.responder.under_watch.torn(state.step))
    found = learner.step(batch, seed, state.guard.limit)
    if rows is None or found.get("updates_skipped"):
        return found, None
    return found, looked(state, lambda: effect(learner, rows), None)


def agreement(batch: Batch, groups: Sequence[Group], settings: Settings) -> dict[str, float]:
    """By family, the sum over completions of (reward - mean of the group) times advantage.

    Empty where advantages are not simply centred rewards. Not negative in a sound step.
    """
    if batch.advantages is None or not batch.responses or not are_centred(settings):
        return {}
    rewards = rewards_of(groups)
    counts = rewards.scorable.sum(1, keepdim=True).clamp(min=1)
    centred = torch.where(rewards.scorable, rewards.total - rewards.total.sum(1, keepdim=True) / counts, 0.0)
    of_row = batch.advantages.sum(1) / batch.response_mask.sum(1).clamp(min=1)  # each token of a row has the same
    found: dict[str, float] = {}
    for number, product in zip(
        batch.group.tolist(), (centred[batch.group, batch.member] * of_row).tolist(), strict=True
    ):
        family = groups[number].prompt.family
        found[family] = found.get(family, 0.0) + product
    return found


def are_centred(settings: Settings) -> bool:
    """Whether advantages are simply centred rewards."""
    how = settings.objective
    if isinstance(how.advantage, GaeAdvantage) or how.redistribution is not None or isinstance(how.kl, KlReward):
        return False
    return ADVANTAGES.choose(how.advantage).entry.centred


def hand_over(learner: Learner, load: Callable[[Weights], object]) -> dict[str, float]:
    """Have the sampler ``load`` the learner's weights, and state how many tensors of them hold a NaN or an infinity.

    Such weights are not handed over: nothing can be sampled from them, and the step must live on until its monitor has
    fired. What happens where they are not taken back is `conduct.respond`'s business.
    """
    broken = learner.broken()
    if not broken:
        load(learner.weights())
    return {"nonfinite_weights": float(broken)}
