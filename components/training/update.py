"""One update of the policy on the groups of a step, what is known of it besides its signals, and its weights.

Whether it did what it was made for, to raise the probability of what had a positive advantage, is a first-order check
on a few rows of the batch: of two families, which change from step to step, the row with the largest advantage and the
one with the smallest are scored again after the update. It needs no knowledge of the loss, so it finds a sign that is
wrong anywhere in it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from components.config import Settings
from components.config.objective import KlReward
from components.config.ppo import GaeAdvantage
from components.learner.base import IN_FORCE, Learner, settings_checksum
from components.learner.batch import Batch, build_batch
from components.learner.signals import mismatch_signals
from components.objectives.advantages import ADVANTAGES, rewards_of
from components.objectives.tokens import usable
from components.policy.weights import Weights
from components.rollout import Rollout
from components.training.assembly import Parts
from components.training.credit import Credit
from components.training.watching import looked
from components.types import Group

FAMILIES = 2
"""Families that are looked at in a step, in turn; two rows of each, in the demo 4 of 256."""
AT_MOST = 5.0
"""Nats that one token counts at most in `Effect.moved`: a mean over few tokens would be that of its rarest one."""
Signals = dict[str, float]
MISMATCH = "mismatch_"


class Effect(NamedTuple):
    """By family, whether the row with a positive advantage has gained more than the one with a negative; and how far
    the update has moved the policy on these rows: mean ``|change of log-probability|``, nats per token."""

    raised: dict[str, bool]
    moved: float


@dataclass(frozen=True)
class Rows:
    """Some rows of a batch, and their log-probabilities ``[B, R]`` before the update.

    ``numbers`` are their places in the whole batch; ``chosen`` are, by family, the places of the row with the largest
    advantage and of the one with the smallest.
    """

    part: Batch
    numbers: Sequence[int]
    chosen: Mapping[str, tuple[int, int]]
    before: Tensor


def rows_of(learner: Learner, batch: Batch, groups: Sequence[Group], turn: int, *, exact: bool) -> Rows | None:
    """The rows that are looked at, before the update; None where no family has rows of both signs.

    Args:
        batch: what is learned from.
        groups: what the batch was made of.
        turn: number of the step; states which families' turn it is.
        exact: the sampler's log-probabilities are the learner's, so these need not be computed.
    """
    chosen = _chosen(batch, groups, turn)
    if not chosen:
        return None
    numbers = sorted({row for pair in chosen.values() for row in pair})
    part = batch.rows(torch.tensor(numbers))
    return Rows(part, numbers, chosen, part.rollout_logp if exact else learner.logprobs(part))


def effect(learner: Learner, rows: Rows) -> Effect | None:
    """What an update did to these rows; None where a row has no token whose log-probabilities are numbers."""
    after = learner.logprobs(rows.part)
    mask = rows.part.response_mask & usable(rows.before, after)
    counts = mask.sum(1)
    if not bool(counts.all()):
        return None
    change = torch.where(mask, after - rows.before, 0.0)
    gained = dict(zip(rows.numbers, (change.sum(1) / counts).tolist(), strict=True))
    raised = {family: gained[up] > gained[down] for family, (up, down) in rows.chosen.items()}
    return Effect(raised, change[mask].abs().clamp(max=AT_MOST).mean().item())


def _chosen(batch: Batch, groups: Sequence[Group], turn: int) -> dict[str, tuple[int, int]]:
    """The rows with the largest and the smallest advantage, of the families whose turn it is; of those that have rows
    of both signs."""
    if batch.advantages is None:
        return {}
    counts = batch.response_mask.sum(1)
    advantage = (batch.advantages.sum(1) / counts.clamp(min=1)).tolist()
    families: dict[str, list[int]] = {}
    for row, (number, count) in enumerate(zip(batch.group.tolist(), counts.tolist(), strict=True)):
        if count:
            families.setdefault(groups[number].prompt.family, []).append(row)
    both = {}
    for family, rows in sorted(families.items()):
        up, down = max(rows, key=advantage.__getitem__), min(rows, key=advantage.__getitem__)
        if advantage[down] < 0 < advantage[up]:
            both[family] = (up, down)
    first = turn * FAMILIES % max(len(both), 1)
    names = [*both, *both][first : first + min(FAMILIES, len(both))]
    return {family: both[family] for family in names}


@dataclass(frozen=True)
class Updated:
    """The signals of an update.

    ``agreement`` is by family the covariance of its rewards and advantages, where those are centred; ``raised`` says by
    family whether it did what it was made for; ``in_force`` are the checksums of the settings that it was to have, and
    had.
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
    state = parts.state
    batch = build_batch(rollout.trained, parts.policy.pad_id, settings.objective.overlong_filter)
    if parts.reference is not None and (with_kl or settings.objective.kl):
        batch = replace(batch, ref_logp=parts.reference(batch))
    credit = Credit(state.learner, state.critic, parts.policy, settings.objective)
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


def staleness(batch: Batch, version: int, updates: int) -> Signals:
    """Updates of the policy between the weights that sampled a token and those that an update of it starts from.

    ``staleness`` is their mean over the tokens that count and over the step's updates, ``staleness_max`` the largest.
    Empty where the batch does not know its versions.

    Args:
        version: number of the hand-over that the step starts from. Each is ``updates`` updates after the one before,
            those that were skipped included.
    """
    if batch.versions is None or not batch.response_mask.any():
        return {}
    age = (version - batch.versions[batch.response_mask]).double() * updates
    return {"staleness": age.mean().item() + (updates - 1) / 2, "staleness_max": age.max().item() + updates - 1}


def named(update: Signals, batch: Batch, version: int) -> Signals:
    """The update's signals under the names that they deserve.

    A gap between sampler and learner that is more than a matter of rounding is a fault where both have the same
    weights (``mismatch_*``), and what was to be expected where the policy has moved since (``drift_*``).
    """
    fresh = batch.versions is None or not bool((batch.versions[batch.response_mask] < version).any())
    if fresh:
        return update
    return {name.replace(MISMATCH, "drift_"): value for name, value in update.items()}


def mismatch(learner: Learner, groups: Sequence[Group], pad_id: int) -> Signals:
    """``mismatch_*`` of completions that were sampled with the learner's present weights."""
    if not any(group.completions for group in groups):
        return {}
    batch = build_batch(groups, pad_id)
    found = mismatch_signals(replace(batch, old_logp=learner.logprobs(batch)), None)
    return {name: value for name, value in found.items() if name.startswith(MISMATCH)}
