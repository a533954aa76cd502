"""What the loop knows of a step that must hold whatever its data: facts for `components.health.invariants`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from components.config import Settings
from components.config.objective import KlReward
from components.health.invariants import Broken, Facts, broken, broken_signals
from components.learner import Batch
from components.objectives.advantages import rewards_of
from components.rollout import Rollout
from components.training.assembly import Parts
from components.training.golden import Rejudged
from components.types import Group

CENTRED = ("grpo", "batch_std", "leave_one_out")
"""Advantages that are a positive factor times reward minus the mean of the group."""


@dataclass(frozen=True)
class Updated:
    """The signals of an update, and by family the covariance of its rewards and advantages, where those are centred."""

    signals: dict[str, float] = field(default_factory=dict)
    agreement: Mapping[str, float] = field(default_factory=dict)


def agreement(batch: Batch, groups: Sequence[Group], settings: Settings) -> dict[str, float]:
    """By family, the sum over completions of (reward - mean of the group) times advantage.

    Empty where advantages are not simply centred rewards. Not negative in a sound step.
    """
    how = settings.objective
    simple = how.advantage.kind in CENTRED and how.redistribution is None and not isinstance(how.kl, KlReward)
    if batch.advantages is None or not batch.responses or not simple:
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


def inspect(
    parts: Parts, rollout: Rollout, updated: Updated, golden: Sequence[Rejudged]
) -> tuple[dict[str, float], list[Broken]]:
    """Signals of a step's invariants, and those that do not hold. ``golden`` is what the verifier has judged again.

    The run's state must still be that before the step: the prompts of the step before are part of it.
    """
    state, sampled = parts.state, rollout.sampled
    facts = Facts(
        settings=state.responder.settings,
        signals=updated.signals,
        sampled=sampled,
        ends={parts.reference.policy.eos_id},
        trained=rollout.trained,
        prompts=state.prompts,
        agreement=updated.agreement,
        rejudged=[(one.item.prompt.id, one.item.accuracy, one.accuracy) for one in golden],
    )
    drawn = {group.prompt.id for group in sampled}
    signals = {"schedule_repeated": len(drawn & state.drawn) / max(1, len(drawn))}
    if golden:
        signals["golden_differ"] = sum(one.differs for one in golden) / len(golden)
    found = broken(facts)
    return signals | broken_signals(found), found
