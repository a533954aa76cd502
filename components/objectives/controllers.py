"""Coefficients that follow a measurement. Their state belongs to the learner and is saved with it.

A measurement that is not a number changes nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from components.config.exploration import EntropyBonus, EntropyTarget
from components.config.objective import KlLoss, KlReward, KlTarget, ObjectiveSettings

MAX_ERROR = 0.2
"""Largest relative error that one update of the KL controller answers to."""


class Coefficients(NamedTuple):
    """What multiplies the KL term and the entropy bonus in one update. ``controller`` is the state of the latter."""

    kl: float
    entropy: float

    @staticmethod
    def initial(settings: ObjectiveSettings) -> Coefficients:
        """Where a run starts."""
        return Coefficients(
            settings.kl.beta if settings.kl else 0.0, settings.entropy.coef if settings.entropy else 0.0
        )


def next_beta(beta: float, kl: float, target: KlTarget, completions: int) -> float:
    """beta (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon), with n completions since the last call (1909.08593).

    A batch counts as one horizon at the most, so that beta can neither jump nor become negative.
    """
    if math.isnan(kl):
        return beta
    error = min(MAX_ERROR, max(-MAX_ERROR, kl / target.value - 1))
    return beta * (1 + error * min(1.0, completions / target.horizon))


def next_entropy_coefficient(coefficient: float, entropy: float, settings: EntropyBonus) -> float:
    """One step up while entropy is at or below the target, one step down above it, within [0, max] (2505.22312)."""
    target = settings.target
    if target is None or math.isnan(entropy):
        return coefficient
    step = target.step if entropy <= target.value else -target.step
    return min(target.max, max(0.0, coefficient + step))


def applied_entropy_coefficient(coefficient: float, entropy: float, settings: EntropyBonus) -> float:
    """The adaptive bonus rests while entropy is above the target; a static one always applies."""
    return 0.0 if settings.target is not None and entropy > settings.target.value else coefficient


def adaptive_kl(settings: ObjectiveSettings) -> KlTarget | None:
    """The KL controller's target, where there is one."""
    return settings.kl.target if isinstance(settings.kl, KlLoss | KlReward) else None


def adaptive_entropy(settings: ObjectiveSettings) -> EntropyTarget | None:
    """The target of the entropy bonus, where there is one."""
    return settings.entropy.target if settings.entropy else None


def followed(settings: ObjectiveSettings, coefficients: Coefficients) -> dict[str, float]:
    """Values in force of the settings that are only where a coefficient starts, since it follows a measurement."""
    found = {"objective.kl.beta": coefficients.kl} if adaptive_kl(settings) else {}
    return {**found, "objective.entropy.coef": coefficients.entropy} if adaptive_entropy(settings) else found
