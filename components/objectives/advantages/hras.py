"""HRAS, Hybrid Reward Advantage Splitting of CORA: task and consistency are normalised apart."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.advantages import HrasAdvantage
from components.errors import InputError
from components.objectives.advantages.groups import deviation, standardised
from components.objectives.advantages.rewards import Rewards

CONSISTENCY = "consistency"
"""The part of the reward that says whether the answer follows from the thinking; all others are the task."""


def hras(rewards: Rewards, settings: HrasAdvantage) -> Tensor:
    """alpha norm(task) + beta norm(consistency), each within the group (2606.14691); schedule and gates are ours.

    The consistency's scale cancels in its normalisation, so only beta weighs it. A group where it hardly varies
    (``std_floor``), or with ``correct_only`` one without a right answer, has the task's advantage alone.

    Raises:
        InputError: the rewards have no part `CONSISTENCY`.
    """
    if not rewards.scorable.any():
        return torch.zeros(rewards.total.shape)
    if CONSISTENCY not in rewards.parts:
        raise InputError(
            f"hras needs a part of the reward named {CONSISTENCY}, found {', '.join(sorted(rewards.parts))}",
            where="objective.advantage",
            how="set reward.consistency, or use another advantage",
        )
    scorable, consistency = rewards.scorable, rewards.parts[CONSISTENCY]
    others = [values.double() for name, values in rewards.parts.items() if name != CONSISTENCY]
    task = standardised(torch.stack(others).sum(0), scorable, settings.std, settings.eps)
    follows = standardised(consistency, scorable, settings.std, settings.eps)
    heard = deviation(consistency, scorable, settings.std) >= settings.std_floor
    if settings.cons_gate == "correct_only":
        heard = heard & ((rewards.accuracy == 1) & scorable).any(1, keepdim=True)
    return (settings.alpha * task + beta(rewards.step, settings) * torch.where(heard, follows, 0.0)).float()


def beta(step: int, settings: HrasAdvantage) -> float:
    """Weight of the consistency after ``step`` updates: up from 0 to beta, then on to beta_end, both linearly."""
    if step < settings.warmup:
        return settings.beta * step / settings.warmup
    gone = 1.0 if settings.decay == 0 else min(1.0, (step - settings.warmup) / settings.decay)
    return settings.beta + gone * (settings.beta_end - settings.beta)
