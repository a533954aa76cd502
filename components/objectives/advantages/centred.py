"""The reward minus the mean of its group, times a factor above 0: GRPO, Dr. GRPO, one deviation for the batch, RLOO."""

from __future__ import annotations

from torch import Tensor

from components.config.advantages import BatchStdAdvantage, GrpoAdvantage, LeaveOneOutAdvantage
from components.objectives.advantages.groups import batch_deviation, centred, standardised
from components.objectives.advantages.rewards import Rewards


def grpo(rewards: Rewards, settings: GrpoAdvantage) -> Tensor:
    """(r - mean) / (std + eps) within the group (2402.03300); ``std: none`` leaves the centred reward (2503.20783)."""
    return standardised(rewards.total, rewards.scorable, settings.std, settings.eps).float()


def batch_std(rewards: Rewards, settings: BatchStdAdvantage) -> Tensor:
    """(r - group mean) / (batch std + eps): a group that hardly varies is not blown up to full size.

    The deviation is that of the rewards (Lite PPO, 2508.08221) or of the centred rewards (ScaleRL, 2510.13786). Groups
    with equal rewards count in both.
    """
    difference = centred(rewards.total, rewards.scorable)
    values = rewards.total if settings.of == "rewards" else difference
    return (difference / (batch_deviation(values, rewards.scorable, settings.std) + settings.eps)).float()


def leave_one_out(rewards: Rewards, settings: LeaveOneOutAdvantage) -> Tensor:
    """r - mean of the group's other rewards (2402.14740), which is n / (n - 1) times the centred reward.

    An optional std is that of the whole group. The std of the others alone is 0 whenever those are equal, and a lone
    loser would then get its reward over eps.
    """
    count = rewards.scorable.sum(1, keepdim=True)
    scale = count / (count - 1).clamp(min=1)
    return (scale * standardised(rewards.total, rewards.scorable, settings.std, settings.eps)).float()
