"""What the registry of advantage estimators holds of each, and the contract that all of them meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from components.catalog import Declaration
from components.objectives.advantages.rewards import Rewards

ROWS = ([1.0, 0.0, 0.0, 0.5], [1.0, 1.0, 1.0, 1.0], [0.25, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 0.0])
SCORABLE = ([1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0], [1, 0, 0, 0])
"""Of `ROWS`: an ordinary group, equal rewards, an unscorable completion, a single scorable one."""


@dataclass(frozen=True)
class AdvantageEntry(Declaration):
    """``call(rewards, settings)`` returns ``[N, G]`` fp32, one advantage for each completion.

    Attributes:
        centred: the advantage is the reward minus its group's mean, times a factor above 0.
    """

    centred: bool = False

    def problems(self, settings: Any) -> list[str]:
        """Shape and precision; 0 where nothing can be compared; a better completion never has less."""
        return list(_problems(self.call(_rewards(), settings)))


def _rewards() -> Rewards:
    scorable = torch.tensor(SCORABLE, dtype=torch.bool)
    total = torch.where(scorable, torch.tensor(ROWS), 0.0)
    half = total / 2
    return Rewards(total, half, {"accuracy": half, "consistency": half}, scorable)


def _problems(found: Tensor) -> Iterator[str]:
    rewards = _rewards()
    if found.shape != rewards.total.shape or found.dtype != torch.float32:
        yield f"it must return fp32 of the shape of the rewards, not {found.dtype} of {list(found.shape)}"
        return
    if not found.isfinite().all():
        yield "an advantage is not finite"
    if found[~rewards.scorable].any():
        yield "a completion without a score must have the advantage 0"
    if found[1].any() or found[3].any():
        yield "a group with equal rewards, or with a single score, must have the advantages 0"
    ordered = found[0][torch.argsort(rewards.total[0], stable=True)]
    if not (ordered.diff() >= 0).all() or not ordered[-1] > ordered[0]:
        yield f"advantages {[round(value, 3) for value in found[0].tolist()]} do not follow the rewards {ROWS[0]}"
