"""PPO: advantages from a critic, and the critic itself. Formulas and sources are in `components.objectives.gae`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from components.config.base import AdamWSettings, Section

Decay = Annotated[float, Field(ge=0, le=1)]


class GaeAdvantage(Section):
    """Generalised advantage estimation (1506.02438) from the values of a critic; legal with groups of one."""

    kind: Literal["gae"] = "gae"
    gamma: Decay = Field(1.0, description="Discount per sampled token; below 1 long answers are worth less.")
    critic_lambda: Decay = Field(1.0, description="Lambda of the critic's targets; 1 is the Monte-Carlo return.")
    policy_lambda: Decay | Literal["adaptive"] = Field(
        1.0, description="Lambda of the advantages; adaptive is 1 - 1 / (alpha x sampled tokens), per completion."
    )
    adaptive_alpha: float = Field(0.05, gt=0, description="Alpha of the adaptive lambda (VAPO, 2504.05118).")
    whiten: bool = Field(True, description="Advantages of the batch to mean 0 and standard deviation 1.")
    fallback: Literal["batch", "group"] | None = Field(
        "batch",
        description="Mean reward that is the baseline instead while the critic's explained variance is not above 0 "
        "(EVPO, 2604.19485); null trusts the critic always.",
    )


class CriticSettings(AdamWSettings):
    """The value model: the SFT checkpoint's backbone and a scalar head, with an optimizer of its own. All of it is
    trained; with `policy.lora` an adapter of those settings, on the base that the policy's is on, and the head."""

    lr: float = Field(3e-4, gt=0, le=1, description="Learning rate of the critic after the warm-up.")
    updates_per_step: int = Field(2, ge=1, description="Updates per rollout batch, each over all of it.")
    clip: float | None = Field(
        None, gt=0, description="How far one step may move a value from where it was; null does not limit it."
    )
    pretrain_steps: int = Field(
        10, ge=0, description="First steps of the loop, in which the critic learns and the policy stands still."
    )
