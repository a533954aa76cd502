"""RLOO: the baseline is the mean of the others."""

from __future__ import annotations

from torch import Tensor

from components.config.advantages import LeaveOneOutAdvantage
from components.objectives.advantages.groups import standardised
from components.objectives.advantages.rewards import Rewards


def leave_one_out(rewards: Rewards, settings: LeaveOneOutAdvantage) -> Tensor:
    """r - mean of the group's other rewards (2402.14740), which is n / (n - 1) times the centred reward.

    An optional std is that of the whole group. The std of the others alone is 0 whenever those are equal, and a lone
    loser would then get its reward over eps.
    """
    count = rewards.scorable.sum(1, keepdim=True)
    scale = count / (count - 1).clamp(min=1)
    return (scale * standardised(rewards.total, rewards.scorable, settings.std, settings.eps)).float()
