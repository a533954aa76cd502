"""The loss: one choice of each kind. Formulas and sources are in `components.objectives`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from components.config.advantages import Advantage, GrpoAdvantage, RredcotRedistribution
from components.config.base import Section
from components.config.corrections import Correction, OffPolicyMask, TokenTis
from components.config.exploration import EntropyBonus, TokenSelection
from components.config.ratios import ClipRatio, Ratio


class MeanAggregation(Section):
    """Mean over the tokens of the batch, over sequences of their token means, or over prompts of theirs."""

    kind: Literal["token_mean", "sequence_mean", "prompt_mean"] = Field(
        "token_mean",
        description="What counts alike: tokens (DAPO, 2503.14476), completions (GRPO, 2402.03300) or prompts (ScaleRL, "
        "2510.13786).",
    )


class FixedAggregation(Section):
    """Sum over tokens, divided by sequences x a constant (Dr. GRPO, 2503.20783)."""

    kind: Literal["fixed"]
    tokens: int = Field(ge=1, description="The constant: the generation budget, rollout.max_new_tokens.")
    allow_std: bool = Field(
        False, description="Allow it with advantages divided by the group's std, which is not Dr. GRPO."
    )


Aggregation = Annotated[MeanAggregation | FixedAggregation, Field(discriminator="kind")]


class KlTarget(Section):
    """Adaptive controller: beta follows the measured KL, by at most a fifth of n / horizon per update (1909.08593)."""

    value: float = Field(gt=0, description="KL in nats per token that beta is steered to.")
    horizon: int = Field(10_000, ge=1, description="Completions over which beta may change by a factor of e^0.2.")


class KlLoss(Section):
    """beta times a KL estimate against the SFT checkpoint, as a loss term of its own, never in the reward."""

    kind: Literal["k2", "k3", "k3_straight_through", "k3_ratio"] = Field(
        "k2",
        description="Estimate by l = log pi - log ref. k2: l^2 / 2. k3: e^-l - 1 + l. k3_straight_through: the value "
        "of k3 and the gradient of k2. k3_ratio: k3 times pi / pi_old (2512.02556).",
    )
    beta: float = Field(0.001, gt=0, description="Coefficient of the term; with target, where it starts.")
    target: KlTarget | None = None


class KlReward(Section):
    """beta times k1, summed over the completion, taken from its reward. Mixes KL into the group's normalisation."""

    kind: Literal["k1_reward"]
    beta: float = Field(0.001, gt=0, description="Coefficient of the term; with target, where it starts.")
    target: KlTarget | None = None


Kl = Annotated[KlLoss | KlReward, Field(discriminator="kind")]


class ObjectiveSettings(Section):
    """One of each: advantage x ratio x aggregation x KL x sampler correction, and what is added to them."""

    advantage: Advantage = Field(GrpoAdvantage(), description="How rewards become advantages.")
    advantage_cap: float | None = Field(None, gt=0, description="Largest |advantage|; a lone winner of 128 has 11.")
    redistribution: RredcotRedistribution | None = Field(
        None, description="Shifts a completion's advantage between its segments."
    )
    ratio: Ratio = Field(ClipRatio(), description="How far one batch may move the policy.")
    aggregation: Aggregation = Field(MeanAggregation(), description="How much each token counts in the loss.")
    kl: Kl | None = Field(None, description="Price of the distance from the SFT checkpoint; null: none.")
    correction: Correction | None = Field(
        TokenTis(), description="Weight against the gap between sampler and learner; null: none."
    )
    off_policy_mask: OffPolicyMask | None = None
    overlong_filter: bool = Field(
        False, description="Truncated completions take no part in the loss; their rewards stay in the group's baseline."
    )
    entropy: EntropyBonus | None = None
    selection: TokenSelection | None = Field(
        None, description="Tokens that alone have a gradient, or alone are penalised; null: all are treated alike."
    )
