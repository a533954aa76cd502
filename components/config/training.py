"""One update, the loop around it, and a checkpoint that another trainer made in their place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from components.config.base import AdamWSettings, ComputeDtype, Section
from components.config.identity import LOGISTICS, RUN, TRAINED
from components.config.ppo import CriticSettings

LOGITS_AT_ONCE = 2**25
"""128 MiB in fp32: 220 tokens of a vocabulary of 151,936."""

RANKED = ("sft", "train", "dpo")
"""Stages whose learner may have several ranks."""


class RankSettings(Section):
    """The processes of a learner that has several. Where and how many they are changes no update but for rounding."""

    processes: int = Field(2, ge=1, description="Ranks; each computes its share of the rows of an update.")
    start_timeout: float = Field(300.0, gt=0, description="Seconds until all ranks have met.")
    reply_timeout: float = Field(
        1800.0, gt=0, description="Seconds that one pass, update or save may take; ranks that take longer are ended."
    )


class ZeroSettings(Section):
    """DeepSpeed ZeRO (1910.02054)."""

    stage: Literal[1, 2, 3] = Field(
        2, description="What is spread over the ranks: 1 the optimizer's state, 2 gradients too, 3 weights too."
    )


class LearnerSettings(AdamWSettings):
    """One update of the policy."""

    kind: Literal["torch", "deepspeed", "fsdp2"] = Field(
        "torch",
        description="torch: one process. deepspeed (ZeRO) and fsdp2: several ranks; rank 0 runs the loop. Stages "
        "sft and dpo have as many.",
    )
    ranks: Annotated[RankSettings, LOGISTICS] = Field(RankSettings(), description="Used by kinds deepspeed and fsdp2.")
    zero: Annotated[ZeroSettings, LOGISTICS] = Field(ZeroSettings(), description="Used by kind deepspeed.")
    compute_dtype: ComputeDtype = Field(
        "auto",
        description="Precision of the products of forward and backward passes, and of the reference's; auto is "
        "bfloat16 on a GPU and float32 on a CPU. Weights, sums of gradients and moments are float32 in kinds deepspeed "
        "and fsdp2, and policy.dtype in kind torch. On CPUs bfloat16 is for those with AVX-512 BF16 or AMX.",
    )
    activation_checkpointing: bool = Field(
        False,
        description="Keep only the input of each layer and compute the rest again in the backward pass. Stages sft and "
        "dpo do so too.",
    )
    lr: float = Field(1e-4, gt=0, le=1, description="Learning rate of the policy after the warm-up.")
    updates_per_step: int = Field(
        1, ge=1, description="Optimizer updates per rollout batch, each of as many of its completions."
    )
    micro_batch_tokens: int = Field(
        4096,
        ge=64,
        description="Tokens of one forward and backward pass: padded ones, or computed ones where padding is not "
        "computed (kind torch on a CPU, dense decoders), at most four times that many places in attention.",
    )
    logits_at_once: int = Field(
        LOGITS_AT_ONCE,
        ge=1,
        description="Logits (tokens x vocabulary) that are held at a time; above it they are made in pieces, and made "
        "again in the backward pass, in stages sft and dpo too. On CPU it is faster to lower micro_batch_tokens until "
        "they fit.",
    )
    critic: CriticSettings = Field(CriticSettings(), description="Used by objective.advantage.kind gae only.")
    routing_replay: bool = Field(
        False,
        description="R3 (2510.11370): the learner sends tokens to the experts that the sampler chose. A dense policy "
        "has none, and nothing changes.",
    )

    @property
    def has_ranks(self) -> bool:
        """Whether it is spread over several processes."""
        return self.kind != "torch" and self.ranks.processes > 1

    def conflicts(self) -> Iterator[str]:
        if self.kind == "torch" and self.ranks != RankSettings():
            yield "learner.ranks is for kinds deepspeed and fsdp2; kind torch has one process, this one"
        if self.kind != "deepspeed" and self.zero != ZeroSettings():
            yield f"learner.zero is for kind deepspeed, not for {self.kind}"
        if self.activation_checkpointing and self.routing_replay:
            yield (
                "learner.routing_replay does not go with learner.activation_checkpointing: the second pass through a "
                "layer would route freely"
            )


class CheckpointSettings(Section):
    """How checkpoints of a run are written, and which of them stay besides those that a roll-back may need.

    No byte of a run's outputs depends on it: a run that stopped can go on with other values.
    """

    asynchronous: bool = Field(
        True,
        description="A thread writes while the run goes on. Takes memory for a second copy of weights and optimizer: "
        "12 bytes a parameter with AdamW in fp32, of several ranks each its share.",
    )
    keep_last: int = Field(2, ge=1, description="Newest ones that are kept: two, so that there is one to fall back to.")
    keep_healthy: int | None = Field(
        None,
        ge=0,
        description="Newest healthy ones that are kept; null: every one. Each takes 12 bytes a parameter: 7 MB for the "
        "demo's policy, 84 GB for one of 7 billion parameters, which needs a bound.",
    )
    keep_best: int = Field(1, ge=0, description="Those with the best dev pass@1 that are kept; of equals the older.")


class AdoptedCheckpoint(Section):
    """A Hugging Face folder with safetensors, or a folder with an adapter of `peft` for ``policy.model``."""

    path: Path = Field(description="The folder, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the folder; filled in when the configuration is resolved.")


class AdoptedLog(Section):
    """The trainer's own log."""

    path: Path = Field(description="The file, relative to the folder where the command runs.")
    sha256: str | None = Field(None, description="Digest of the file; filled in when the configuration is resolved.")
    format: str = Field("auto", description="As `evenkeel audit --format`; auto: it is detected.")


class Adopted(Section):
    """What stage `train` takes over in place of training; ``policy.model`` is the base of the checkpoint."""

    checkpoint: AdoptedCheckpoint
    log: AdoptedLog
    names: dict[str, Any] | None = Field(
        None,
        description="What a file for `evenkeel audit --names` holds, with all that it extends; null: as shipped.",
    )


class TrainSettings(Section):
    """Stage `train`: the loop."""

    steps: Annotated[int, TRAINED] = Field(100, ge=1, description="Steps; each samples groups and learns from them.")
    prompts_per_step: Annotated[int, TRAINED] = Field(
        32, ge=1, description="Prompts that a step draws; a refill draws as many at the most."
    )
    eval_every: Annotated[int, TRAINED] = Field(20, ge=1, description="Steps between samples of the dev split.")
    eval_prompts: Annotated[int, TRAINED] = Field(
        64, ge=1, description="Prompts of the dev split at the most, drawn by seed and the same each time."
    )
    eval_samples: Annotated[int, TRAINED] = Field(
        8, ge=1, description="Completions per dev prompt, at rollout.temperature."
    )
    checkpoint_every: Annotated[int, TRAINED] = Field(
        10, ge=1, description="Steps between checkpoints, from which a stopped run goes on."
    )
    checkpoints: Annotated[CheckpointSettings, RUN] = CheckpointSettings()
    keep_pairs: Annotated[int, TRAINED] = Field(
        8, ge=0, description="Preference pairs stored per step, for stage `dpo`."
    )
    adopted: Annotated[Adopted | None, TRAINED] = Field(
        None, description="Nothing is trained: the checkpoint and the log that another trainer left are taken over."
    )
