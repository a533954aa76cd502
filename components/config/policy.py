"""The model, its supervised stage, and the check of its checkpoint before RL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from components.config.base import AdamWSettings, Beta, ComputeDtype, Section


class TinyModel(Section):
    """A Qwen3 or Qwen3-MoE model with random weights and a tokenizer trained on the SFT split."""

    kind: Literal["tiny"] = "tiny"
    hidden_size: int = Field(128, ge=32, multiple_of=32, description="Width of the hidden states, a multiple of 32.")
    layers: int = Field(4, ge=1, description="Transformer layers.")
    heads: int = Field(4, ge=1, description="Attention heads per layer.")
    kv_heads: int = Field(2, ge=1, description="Key and value heads per layer; heads must be a multiple of it.")
    head_dim: int = Field(32, ge=8, description="vLLM on CPU accepts 32, 48, 64, 80, 96 and 128.")
    intermediate_size: int = Field(384, ge=32, description="Of the one MLP of a layer, or of each of its experts.")
    experts: int = Field(0, ge=0, description="Experts in every layer; 0 is a dense model.")
    experts_per_token: int = Field(2, ge=1, description="Experts of a layer that each token is sent to.")
    vocab_size: int = Field(320, ge=272, description="Byte-level BPE vocabulary, special tokens included.")
    max_positions: int = Field(256, ge=16, description="Tokens that a prompt and its completion may have together.")

    def conflicts(self) -> Iterator[str]:
        if self.heads % self.kv_heads:
            yield f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})"
        if 0 < self.experts <= self.experts_per_token:
            yield f"experts ({self.experts}) must be more than experts_per_token ({self.experts_per_token})"


class CheckpointModel(Section):
    """A Hugging Face checkpoint folder: safetensors, config and tokenizer. Nothing else is loaded."""

    kind: Literal["checkpoint"]
    path: Path = Field(description="The folder, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the folder; filled in when the configuration is resolved.")


Model = Annotated[TinyModel | CheckpointModel, Field(discriminator="kind")]


class LoraSettings(Section):
    """Low-rank adapters (2106.09685) in the place of all weights, for the stages `sft`, `train` and `dpo`."""

    rank: int = Field(16, ge=1, le=1024, description="r, the inner dimension of the two matrices of an adapter.")
    alpha: int = Field(32, ge=1, description="The adapter is scaled by alpha / rank.")
    targets: Literal["all-linear"] | Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        "all-linear",
        description="Names of the modules that get one, such as q_proj; all-linear: all but the output layer.",
    )
    dropout: float = Field(
        0.0, ge=0, lt=1, description="In stage `sft`. Where two policies are compared (`train`, `dpo`) there is none."
    )


class PolicySettings(Section):
    """Where the policy comes from and how a question becomes its input."""

    model: Model = Field(TinyModel(), description="The model that training starts from.")
    lora: LoraSettings | None = Field(None, description="Null: all weights are trained.")
    chat: bool = Field(True, description="Render prompts with the tokenizer's chat template.")
    instruction: str = Field("", description="Text put before every question.")
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="Precision of the weights; see learner.compute_dtype for that of the products."
    )


class SftSettings(AdamWSettings):
    """Stage `sft`. ``steps`` 0 takes the model as it is."""

    compute_dtype: ComputeDtype = Field("auto", description="As learner.compute_dtype.")
    steps: int = Field(400, ge=0, description="Updates; 0 takes the model as it is.")
    batch_size: int = Field(96, ge=1, description="Demonstrations per update.")
    lr: float = Field(2e-3, gt=0, le=1, description="Largest learning rate, at the end of the warm-up.")
    warmup: int = Field(50, ge=0, description="Steps of linear warm-up; a cosine decay to 0 follows.")
    micro_batch_tokens: int = Field(4096, ge=64, description="Padded tokens of one forward and backward pass.")
    weight_decay: float = Field(0.01, ge=0, description="Decoupled weight decay, as in learner.weight_decay.")
    betas: tuple[Beta, Beta] = Field((0.9, 0.98), description="beta_1 and beta_2 of AdamW, as in learner.betas.")
    checkpoint_every: int = Field(
        50, ge=1, description="Steps between checkpoints, from which a stopped stage goes on."
    )


class TriageSettings(Section):
    """Stage `triage`: can this checkpoint learn by RL at all? (2606.18487, 2510.01624)"""

    prompts: Annotated[int, Field(ge=2)] | Literal["auto"] = Field(
        "auto",
        description="Training prompts that are sampled. auto: as many as take a twentieth of the completions that "
        "training samples, 32 to 128.",
    )
    samples: Annotated[int, Field(ge=2)] | Literal["auto"] = Field(
        "auto", description="Completions per prompt, the k of pass@k. auto: rollout.group_size, at least 8."
    )
    min_teaching: float = Field(
        1.0, ge=0, description="Minimum number of groups of a step with a gradient, as expected from the samples."
    )
    min_entropy: float = Field(
        0.18, ge=0, description="Minimum entropy, nats per token; refused only where min_passk_gap is not met either."
    )
    min_passk_gap: float = Field(0.1, ge=0, le=1, description="Minimum pass@k - pass@1; see min_entropy.")
    min_headroom: float = Field(0.05, ge=0, le=1, description="1 - pass@1 that must be left to gain.")
    override: str = Field("", description="Reason for training in spite of a refusal; it is recorded.")
