"""The rewards of a batch as a rectangle of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from components.types import Group


class Rewards(NamedTuple):
    """N groups of up to G completions, all ``[N, G]`` fp32; ``scorable`` is bool.

    ``parts`` holds every named contribution (``accuracy`` among them) and adds up to ``total``. Where ``scorable`` is
    false (the verifier could not judge, a reward is not finite, or the group has fewer members) the numbers are 0 and
    mean nothing. ``step`` counts the updates so far, for schedules.
    """

    total: Tensor
    accuracy: Tensor
    parts: Mapping[str, Tensor]
    scorable: Tensor
    step: int = 0


def rewards_of(groups: Sequence[Group], step: int = 0) -> Rewards:
    """Rewards of scored groups; they may differ in size, and one may be empty."""
    shape = (len(groups), max((len(group.scores) for group in groups), default=0))
    total, accuracy = torch.zeros(2, *shape, dtype=torch.float64)
    scorable, parts = torch.zeros(shape, dtype=torch.bool), dict[str, Tensor]()
    for n, group in enumerate(groups):
        for g, score in enumerate(group.scores):
            if score.accuracy is None:
                continue
            total[n, g], accuracy[n, g], scorable[n, g] = score.reward, score.accuracy, True
            for name, value in score.rewards.items():
                parts.setdefault(name, torch.zeros_like(total))[n, g] = value
    for values in (total, accuracy, *parts.values()):
        scorable &= values.float().isfinite()

    def clean(values: Tensor) -> Tensor:
        return torch.where(scorable, values.float(), 0.0)

    named = {name: clean(parts[name]) for name in sorted(parts)}
    return Rewards(clean(total), clean(accuracy), named, scorable, step)
