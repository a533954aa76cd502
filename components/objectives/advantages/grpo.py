"""GRPO's advantage, and Dr. GRPO's."""

from __future__ import annotations

from torch import Tensor

from components.config.advantages import GrpoAdvantage
from components.objectives.advantages.groups import standardised
from components.objectives.advantages.rewards import Rewards


def grpo(rewards: Rewards, settings: GrpoAdvantage) -> Tensor:
    """(r - mean) / (std + eps) within the group (2402.03300); ``std: none`` leaves the centred reward (2503.20783)."""
    return standardised(rewards.total, rewards.scorable, settings.std, settings.eps).float()
