"""One update, and the loop around it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.config.base import AdamWSettings, Section
from components.config.ppo import CriticSettings

LOGITS_AT_ONCE = 2**25
"""128 MiB in fp32: 220 tokens of a vocabulary of 151,936."""


class LearnerSettings(AdamWSettings):
    """One update of the policy."""

    kind: Literal["torch"] = "torch"
    lr: float = Field(1e-4, gt=0, le=1)
    updates_per_step: int = Field(1, ge=1, description="Optimizer updates per rollout batch (mini-batches of groups).")
    micro_batch_tokens: int = Field(4096, ge=64, description="Padded tokens of one forward and backward pass.")
    logits_at_once: int = Field(
        LOGITS_AT_ONCE,
        ge=1,
        description="Logits (tokens x vocabulary) that are held at a time; above it they are made in pieces, and made "
        "again in the backward pass.",
    )
    critic: CriticSettings = Field(CriticSettings(), description="Used by objective.advantage.kind gae only.")
    routing_replay: bool = Field(
        False,
        description="R3 (2510.11370): the learner sends tokens to the experts that the sampler chose. A dense policy "
        "has none, and nothing changes.",
    )


class TrainSettings(Section):
    """Stage `train`: the loop."""

    steps: int = Field(100, ge=1)
    prompts_per_step: int = Field(32, ge=1)
    eval_every: int = Field(20, ge=1, description="Steps between samples of the dev split.")
    eval_prompts: int = Field(64, ge=1)
    eval_samples: int = Field(8, ge=1)
    checkpoint_every: int = Field(10, ge=1)
    keep_pairs: int = Field(8, ge=0, description="Preference pairs stored per step, for stage `dpo`.")
