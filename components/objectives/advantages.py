"""Advantage estimators: rewards of each group -> one advantage per completion.

Each takes ``rewards [N, G]`` and ``scorable [N, G]`` (bool) and returns ``[N, G]`` fp32. Unscorable completions take no
part in the group's mean and standard deviation and get advantage 0.
"""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.objective import GrpoAdvantage


def grpo(rewards: Tensor, scorable: Tensor, settings: GrpoAdvantage) -> Tensor:
    """(r - mean) / (std + eps) within the group (2402.03300); ``std: none`` leaves the centred reward (2503.20783).

    A group with equal rewards, or with fewer than two scorable completions, gets exactly 0.
    """
    values = torch.where(scorable, rewards.float(), 0.0)
    count = scorable.sum(1, keepdim=True)
    mean = values.sum(1, keepdim=True) / count.clamp(min=1)
    centred = torch.where(scorable, values - mean, 0.0)
    spread = torch.where(scorable, values, -torch.inf).amax(1, keepdim=True) - torch.where(
        scorable, values, torch.inf
    ).amin(1, keepdim=True)
    centred = torch.where((count > 1) & (spread > 0), centred, 0.0)
    if settings.std == "none":
        return centred
    denominator = count if settings.std == "population" else count - 1
    std = (centred.square().sum(1, keepdim=True) / denominator.clamp(min=1)).sqrt()
    return centred / (std + settings.eps)


ADVANTAGES = {"grpo": grpo}
