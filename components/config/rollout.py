"""How completions are made."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from components.config.base import Section


class TorchEngine(Section):
    """The embedded engine: one prefill per group, batched decode with a KV cache, in this process."""

    kind: Literal["torch"] = "torch"
    batch_rows: int = Field(1024, ge=1, description="Completions decoded together.")


class DynamicSampling(Section):
    """DAPO's refill: groups whose raw accuracy is constant are dropped, others are drawn through the schedule."""

    max_attempts: int = Field(3, ge=1, description="Batches of prompts drawn per step at the most.")


class RolloutSettings(Section):
    """How completions are made."""

    engine: TorchEngine = TorchEngine()
    group_size: int = Field(8, ge=1, description="G, completions per prompt.")
    max_new_tokens: int = Field(40, ge=1)
    temperature: float = Field(1.0, gt=0, le=10)
    dynamic_sampling: DynamicSampling | None = None
