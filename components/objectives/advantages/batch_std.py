"""Group mean, batch deviation."""

from __future__ import annotations

from torch import Tensor

from components.config.advantages import BatchStdAdvantage
from components.objectives.advantages.groups import batch_deviation, centred
from components.objectives.advantages.rewards import Rewards


def batch_std(rewards: Rewards, settings: BatchStdAdvantage) -> Tensor:
    """(r - group mean) / (batch std + eps): a group that hardly varies is not blown up to full size.

    The deviation is that of the rewards (Lite PPO, 2508.08221) or of the centred rewards (ScaleRL, 2510.13786). Groups
    with equal rewards count in both.
    """
    difference = centred(rewards.total, rewards.scorable)
    values = rewards.total if settings.of == "rewards" else difference
    return (difference / (batch_deviation(values, rewards.scorable, settings.std) + settings.eps)).float()
