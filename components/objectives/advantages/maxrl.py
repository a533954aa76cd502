"""MaxRL: towards maximum likelihood of the right answers."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.advantages import MaxRlAdvantage
from components.errors import InputError
from components.objectives.advantages.groups import centred
from components.objectives.advantages.rewards import Rewards


def maxrl(rewards: Rewards, settings: MaxRlAdvantage) -> Tensor:
    """(r - mean) / mean within the group (2602.02710), 0 where the mean is 0. A prompt weighs about 1 / p.

    Raises:
        InputError: a reward is negative, so that the mean is no scale.
    """
    if (rewards.total < 0).any():
        found = sorted(name for name, values in rewards.parts.items() if (values < 0).any())
        raise InputError(
            f"maxrl divides by a group's mean reward and needs rewards of 0 or more, found {rewards.total.min():g}",
            where="objective.advantage",
            how=f"take out what is negative ({', '.join(found)}), or use another advantage",
        )
    count = rewards.scorable.sum(1, keepdim=True).clamp(min=1)
    mean = torch.where(rewards.scorable, rewards.total.double(), 0.0).sum(1, keepdim=True) / count
    return (centred(rewards.total, rewards.scorable) / torch.where(mean > 0, mean, 1.0)).float()
