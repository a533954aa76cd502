"""The loss: one choice of each kind. Formulas and sources are in `components.objectives`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.config.base import Section


class GrpoAdvantage(Section):
    """(r - mean) / std within the group (2402.03300); without the std it is Dr. GRPO's (2503.20783)."""

    kind: Literal["grpo"] = "grpo"
    std: Literal["population", "unbiased", "none"] = "population"
    eps: float = Field(1e-6, gt=0)


class ClipRatio(Section):
    """PPO's clip; ``high`` above ``low`` is clip-higher (2503.14476)."""

    kind: Literal["clip"] = "clip"
    low: float = Field(0.2, ge=0, lt=1)
    high: float = Field(0.28, ge=0)


class KlLoss(Section):
    """beta times a KL estimate against the SFT checkpoint, as a loss term of its own, never in the reward."""

    kind: Literal["k2", "k3_straight_through"] = "k2"
    beta: float = Field(0.001, gt=0)


class TokenTis(Section):
    """Truncated importance sampling per token: weight min(pi_old / pi_rollout, cap), no gradient through it."""

    kind: Literal["tis_token"] = "tis_token"
    cap: float = Field(2.0, ge=1)


class ObjectiveSettings(Section):
    """One of each: advantage x ratio x aggregation x KL x sampler correction."""

    advantage: GrpoAdvantage = GrpoAdvantage()
    ratio: ClipRatio = ClipRatio()
    aggregation: Literal["token_mean", "sequence_mean"] = "token_mean"
    kl: KlLoss | None = None
    correction: TokenTis | None = TokenTis()
