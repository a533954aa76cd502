"""GDPO: rewards of several parts, none of which drowns another."""

from __future__ import annotations

import torch
from torch import Tensor

from components.config.advantages import GdpoAdvantage
from components.errors import InputError
from components.objectives.advantages.groups import batch_deviation, standardised
from components.objectives.advantages.rewards import Rewards


def gdpo(rewards: Rewards, settings: GdpoAdvantage) -> Tensor:
    """The sum of the parts' advantages, over its standard deviation in the batch (2601.05242).

    Its mean over the batch, which the paper takes off, is 0 already: it is 0 in every group.
    """
    summed = decoupled(rewards, settings)
    return (summed / (batch_deviation(summed, rewards.scorable, settings.std) + settings.eps)).float()


def decoupled(rewards: Rewards, settings: GdpoAdvantage) -> Tensor:
    """Sum over parts of weight x (part - mean) / (std + eps), each within the group, ``[N, G]``.

    A part's own scale cancels, so that the weights here are the only ones. A completion without a part has 0 of it.

    Raises:
        InputError: a weight names a part that the rewards do not have.
    """
    summed = torch.zeros(rewards.total.shape, dtype=torch.float64)
    if not rewards.scorable.any():
        return summed
    if unknown := sorted(settings.weights.keys() - rewards.parts.keys()):
        raise InputError(
            f"no part of the reward is named {', '.join(unknown)}",
            where="objective.advantage.weights",
            how=f"the parts are {', '.join(sorted(rewards.parts))}",
        )
    for name, values in rewards.parts.items():
        advantages = standardised(values, rewards.scorable, settings.std, settings.eps)
        summed = summed + settings.weights.get(name, 1.0) * advantages
    return summed
