"""How completions are made, when, and what the policy may call while it writes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from components.config.base import Section
from components.config.identity import LOGISTICS
from components.config.servers import SglangEngine, VllmEngine


class TorchEngine(Section):
    """The embedded engine: one prefill per group, batched decode with a KV cache, in this process."""

    kind: Literal["torch"] = "torch"
    batch_rows: int = Field(1024, ge=1, description="Completions decoded together.")
    precision: Literal["auto", "policy", "bfloat16", "int8", "int4"] = Field(
        "auto",
        description="Of the engine's own copy of the policy; auto is bfloat16 on a GPU, and policy.dtype on a CPU. "
        "int8, for CPUs, quantises the weights of linear layers per channel and their inputs per token; int4 the "
        "weights alone, in groups of 64 inputs.",
    )
    record_routes: bool = Field(False, description="Keep the experts of every token, where the policy has experts.")

    def as_policy(self) -> TorchEngine:
        """The same without what a precision was chosen for, which is training."""
        return self if self.precision == "policy" else self.model_copy(update={"precision": "auto"})


class Mixing(Section):
    """N-GRPO (2606.10768): some inputs are mixtures of the likeliest token's embedding and its neighbours'.

    In training only; neither dev nor test completions are ever mixed.
    """

    prob: float = Field(0.1, ge=0, le=1, description="rho, the share of tokens that are followed by a mixture.")
    neighbours: int = Field(
        3, ge=1, description="k, tokens in a mixture: the likeliest and its k - 1 nearest by cosine."
    )
    until: str | None = Field(
        None, min_length=1, description="Text that ends the mixing, such as </think>; without it all tokens may mix."
    )


class DynamicSampling(Section):
    """DAPO's refill: groups whose raw accuracy is constant are dropped, others are drawn through the schedule."""

    max_attempts: int = Field(3, ge=1, description="Batches of prompts drawn per step at the most.")
    sized: bool = Field(
        False,
        description="Draw only as many prompts again as fill the batch, by the share that carried a gradient so far; "
        "false: a whole batch each time.",
    )


class TwoStage(Section):
    """Sample a few completions first, and complete only groups that are undecided (2506.09016)."""

    first: int = Field(4, ge=1, description="Completions of a prompt that are sampled first.")


class Asynchrony(Section):
    """Rollouts are sampled while the learner updates, so they come from a policy of some steps before (2410.18252).

    The sampler's log-probabilities are those of that policy, and ``objective.correction`` weighs the difference.
    """

    max_staleness: int = Field(
        1,
        ge=1,
        description="Training steps by which a rollout may be older than the policy that learns from it: 1 is one step "
        "off. So many rollouts are sampled ahead, and no more.",
    )
    in_flight: bool = Field(
        False,
        description="New weights are handed over while completions are being written, whose later tokens are then "
        "fresher. Needs servers of kind vllm. Two runs are then no more the same.",
    )


class CalculatorTool(Section):
    """A calculator that answers ``<<12*3=`` with ``36>>`` (2110.14168). Its answers are no part of the loss."""

    kind: Literal["calculator"]
    max_turns: int = Field(8, ge=1, description="Calls in one completion; it ends at one more.")


def _kind(engine: Any) -> str | None:
    """The engine that settings are for; the embedded one where they do not say. None: these are no settings."""
    return str(engine.get("kind", "torch")) if isinstance(engine, dict) else getattr(engine, "kind", None)


AnyEngine = Annotated[
    Annotated[TorchEngine, Tag("torch")]
    | Annotated[VllmEngine, Tag("vllm"), LOGISTICS]
    | Annotated[SglangEngine, Tag("sglang"), LOGISTICS],
    Discriminator(_kind),
]


class RolloutSettings(Section):
    """How completions are made."""

    engine: AnyEngine = Field(TorchEngine(), description="What samples the completions.")
    group_size: int = Field(8, ge=1, description="G, completions per prompt.")
    max_new_tokens: int = Field(40, ge=1, description="Tokens after which a completion is truncated.")
    temperature: float = Field(
        1.0,
        gt=0,
        le=10,
        description="Logits are divided by it, in sampling and in the log-probabilities of the learner.",
    )
    dynamic_sampling: DynamicSampling | None = None
    two_stage: TwoStage | None = Field(None, description="The schedule says which groups are worth completing.")
    max_repeats: int | None = Field(
        None, ge=1, description="Groups of one question, by its text, that a step trains on; the rest are left out."
    )
    mixing: Mixing | None = None
    tool: CalculatorTool | None = Field(None, description="What the policy may call while it writes.")
    asynchrony: Asynchrony | None = Field(None, description="Sample while the learner updates; null: in turns.")

    def conflicts(self) -> Iterator[str]:
        if self.two_stage is not None and self.two_stage.first >= self.group_size:
            yield f"two_stage.first ({self.two_stage.first}) must be below group_size ({self.group_size})"
        if self.mixing is not None and self.engine.kind != "torch":
            yield (
                f"mixing feeds embeddings into the model, which engine {self.engine.kind} cannot do; use engine torch"
            )
        if self.mixing is not None and self.tool is not None:
            yield "mixing feeds mixtures, but every turn with a tool starts from plain tokens; use one"
        room = self.engine.max_model_len if isinstance(self.engine, VllmEngine) else None
        if room is not None and self.max_new_tokens >= room:
            yield (
                f"max_new_tokens ({self.max_new_tokens}) and a prompt do not fit into rollout.engine.max_model_len "
                f"({room}); lower the one or raise the other"
            )

    def as_policy(self) -> RolloutSettings:
        """The same, sampled from the policy as it is: for judging a checkpoint rather than training on it."""
        return self.model_copy(update={"engine": self.engine.as_policy()})
