"""One GRPO run: which prompts, which completions, which objective, which update."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from components.config.base import Beta, Section


class ClustersSettings(Section):
    """Stage `clusters`: group the training prompts and rank them by difficulty, under the SFT checkpoint."""

    k: int = Field(8, ge=1, description="Clusters of k-means; those smaller than the schedule's window are merged.")
    components: int = Field(32, ge=2, description="Dimensions kept by PCA.")


class UniformSchedule(Section):
    """Every prompt once an epoch, in a seeded order."""

    kind: Literal["uniform"] = "uniform"


class AdsSchedule(Section):
    """Adaptive Data Scheduling (2606.22305): clusters drawn by success, a window at the policy's boundary."""

    kind: Literal["ads"] = "ads"
    window: int = Field(8, ge=1, description="B, prompts of a cluster that are in play at a time.")
    active: int = Field(4, ge=1, description="Clusters drawn per step; active x window prompts make a step.")
    band: float = Field(0.17, gt=0, lt=0.5, description="A prompt is at the boundary while |success - 1/2| <= band.")
    alpha: float = Field(0.3, ge=0, le=1, description="How fast cluster probabilities follow success.")
    min_prob: float = Field(0.0, ge=0, lt=1, description="Floor of a cluster's probability, in units of 1/K.")
    move: Literal["adjacent", "outside"] = Field(
        "adjacent", description="One slot a visit (the authors' code), or over the whole window (the paper's wording)."
    )
    reset_draws: int = Field(
        0, ge=0, description="Draws (refills count) between resets to the easiest window; 0 never resets."
    )


Schedule = Annotated[UniformSchedule | AdsSchedule, Field(discriminator="kind")]


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


class ExactVerifier(Section):
    """The text after the marker equals the reference answer."""

    kind: Literal["exact"] = "exact"
    marker: str = Field("#", description="The answer is what follows the last marker.")


class NumericVerifier(Section):
    """The number after the marker (or the last number) equals the reference number."""

    kind: Literal["numeric"]
    marker: str | None = Field(
        "####", description="The answer is the number after the last marker; null: the last one."
    )
    tolerance: float = Field(1e-6, ge=0, description="Relative tolerance.")


Verifier = Annotated[ExactVerifier | NumericVerifier, Field(discriminator="kind")]


class SandboxSettings(Section):
    """Fence around a verifier: it runs in a process of its own."""

    timeout: float = Field(5.0, gt=0, description="Seconds for one completion; longer is unscorable.")
    memory_mb: int = Field(512, ge=64, description="Address space of the worker.")


class SoftOverlong(Section):
    """DAPO's length penalty (2503.14476): 0 up to limit - cache tokens, falling to -1 at limit."""

    limit: int = Field(ge=1)
    cache: int = Field(ge=1)

    @model_validator(mode="after")
    def _cache_fits(self) -> SoftOverlong:
        if self.cache > self.limit:
            raise ValueError(f"cache ({self.cache}) cannot exceed limit ({self.limit})")
        return self


class RewardSettings(Section):
    """How a completion is judged, and what is added to the raw accuracy."""

    verifier: Verifier = ExactVerifier()
    sandbox: SandboxSettings = SandboxSettings()
    soft_overlong: SoftOverlong | None = None


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


class LearnerSettings(Section):
    """One update of the policy."""

    kind: Literal["torch"] = "torch"
    lr: float = Field(1e-4, gt=0, le=1)
    warmup: int = Field(10, ge=0, description="Updates of linear warm-up.")
    betas: tuple[Beta, Beta] = (0.9, 0.95)
    weight_decay: float = Field(0.0, ge=0)
    grad_clip: float = Field(1.0, gt=0)
    updates_per_step: int = Field(1, ge=1, description="Optimizer updates per rollout batch (mini-batches of groups).")
    micro_batch_tokens: int = Field(4096, ge=64, description="Padded tokens of one forward and backward pass.")


class TrainSettings(Section):
    """Stage `train`: the loop."""

    steps: int = Field(100, ge=1)
    prompts_per_step: int = Field(32, ge=1)
    eval_every: int = Field(20, ge=1, description="Steps between samples of the dev split.")
    eval_prompts: int = Field(64, ge=1)
    eval_samples: int = Field(8, ge=1)
    checkpoint_every: int = Field(10, ge=1)
