"""What the memory of one process is made of: parts, and the moments of a step at which each of them is there; and what
a forward and backward pass takes besides weights and gradients: activations and logits.

Counted are the tensors that autograd keeps, operation by operation, of decoders as transformers writes them (Llama and
its relatives), and of the lean pass that a learner in one process takes on a CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal, NamedTuple, get_args

from components.config import Settings
from components.config.rollout import TorchEngine
from components.config.training import LearnerSettings
from components.planning.shapes import Shape

FP32, BF16 = 4, 2
DTYPES = {"float32": FP32, "bfloat16": BF16}
PROMPT_TOKENS = 256
"""Of a prompt, where nothing better is known."""
LEAN = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM")
"""Architectures that have a lean pass (`components.policy.lean.known`)."""
ATTENTION_KEPT = 2**24
"""Numbers up to which the lean pass keeps what is inside of attention (`components.policy.lean.model.KEPT`)."""
GIB = 2**30
Moment = Literal["start", "sample", "critic", "forward", "backward", "hand-over", "checkpoint"]
"""``start``: until the learner is built. Then, in every step: completions are sampled, a critic learns, the learner
makes its passes, weights go to the sampler, and the learner's state is copied to be written."""
MOMENTS: tuple[Moment, ...] = get_args(Moment)
START: tuple[Moment, ...] = ("start",)
STEP: tuple[Moment, ...] = MOMENTS[1:]
PASS: tuple[Moment, ...] = ("forward", "backward")


@dataclass(frozen=True)
class Load:
    """How much is computed at a time."""

    tokens: int
    """Of one pass of the learner."""
    wanted: int
    """Of these, those whose log-probability is computed: the tokens of responses."""
    rows: int
    """Completions that the embedded engine writes together."""
    group: int
    """Completions of a prompt."""
    prompt: int
    new: int

    @classmethod
    def of(cls, settings: Settings, prompt: int = PROMPT_TOKENS) -> Load:
        """The most that settings allow, with prompts of so many tokens and responses of full length."""
        rollout, train, learner = settings.rollout, settings.train, settings.learner
        new, ranks = rollout.max_new_tokens, learner.ranks.processes if learner.kind != "torch" else 1
        own = ceil(train.prompts_per_step * rollout.group_size / learner.updates_per_step / ranks)
        tokens = _of_a_pass(learner, own, prompt + new)
        rows = max(train.prompts_per_step * rollout.group_size, train.eval_prompts * train.eval_samples)
        most = rollout.engine.batch_rows if isinstance(rollout.engine, TorchEngine) else rows
        return cls(tokens, ceil(tokens * new / (prompt + new)), min(rows, most), rollout.group_size, prompt, new)


def _of_a_pass(learner: LearnerSettings, rows: int, width: int) -> int:
    """Tokens of a pass: one row at least, and no more than the ``rows`` that there are."""
    return max(1, min(learner.micro_batch_tokens // width, rows)) * width


def compute_bytes(learner: LearnerSettings, dtype: str) -> int:
    """Of a number in a product: ranks compute with fp32 weights whatever the policy's precision."""
    return BF16 if "bfloat16" in (learner.compute_dtype, dtype if learner.kind == "torch" else "") else FP32


def is_lean(shape: Shape, learner: LearnerSettings, dtype: str) -> bool:
    """Whether the learner takes the lean pass."""
    plain = learner.kind == "torch" and dtype == "float32" and not learner.activation_checkpointing
    return plain and shape.architecture in LEAN


def activations(shape: Shape, load: Load, learner: LearnerSettings, dtype: str) -> float:
    """Bytes that one pass keeps for its backward pass, without logits."""
    each, number = layer_activations(shape, load, learner, dtype), compute_bytes(learner, dtype)
    ends = 4 * load.tokens * shape.hidden * number  # embeddings, and the last norm
    if learner.activation_checkpointing:
        return shape.layers * load.tokens * shape.hidden * number + ends
    if is_lean(shape, learner, dtype):
        inside = load.tokens * shape.heads * (load.prompt + load.new + 2 * shape.head_dim)
        kept = shape.layers if shape.layers * inside <= ATTENTION_KEPT else 1
        return shape.layers * each + kept * inside * FP32 + ends
    return shape.layers * each + ends


def layer_activations(shape: Shape, load: Load, learner: LearnerSettings, dtype: str) -> float:
    """Bytes that one layer keeps."""
    number, heads = compute_bytes(learner, dtype), shape.heads * shape.head_dim
    kv = shape.kv_heads * shape.head_dim
    if is_lean(shape, learner, dtype):
        # The inputs of both norms; queries, keys and values; what attention makes of them; both halves of the MLP.
        return load.tokens * (2 * FP32 * shape.hidden + number * (2 * heads + 2 * kv + 2 * shape.intermediate))
    # A norm keeps its input, and what it returns; the input divided by its root mean square where its weight is
    # trained; in bf16 its input in fp32, too.
    norm = 2 * number + (0 if shape.lora else number) + (FP32 if number == BF16 else 0)
    # Queries, and keys and values repeated for all heads, as masked attention takes them; what it returns.
    attention = 4 * heads * number + FP32 * shape.heads
    if shape.head_norms:
        attention += (heads + kv) * norm
    # Gate, its activation, the other half, their product.
    return load.tokens * (2 * norm * shape.hidden + attention + 4 * shape.intermediate * number)


def logits(shape: Shape, load: Load, learner: LearnerSettings, dtype: str) -> float:
    """Bytes of logits and what is made of them, at the end of a forward pass."""
    each = FP32 if is_lean(shape, learner, dtype) else 3 * FP32  # those below the largest, and their exponentials
    low = BF16 if not is_lean(shape, learner, dtype) and compute_bytes(learner, dtype) == BF16 else 0
    return _at_once(shape, load, learner) * (each + low)


def going_back(shape: Shape, load: Load, learner: LearnerSettings, dtype: str) -> float:
    """Bytes of the gradients of activations: of the logits first, then of one layer after the other."""
    lean, at_once = is_lean(shape, learner, dtype), _at_once(shape, load, learner)
    whole = load.wanted * shape.vocabulary <= learner.logits_at_once
    of_logits = at_once * FP32 * (1 if lean else 2 if whole else 3)  # in pieces they are made once more
    return max(of_logits, _going_back_a_layer(shape, load, learner, dtype))


def _going_back_a_layer(shape: Shape, load: Load, learner: LearnerSettings, dtype: str) -> float:
    gradients = (5 if is_lean(shape, learner, dtype) else 3) * load.tokens * shape.intermediate
    again = layer_activations(shape, load, learner, dtype) if learner.activation_checkpointing else 0
    return gradients * compute_bytes(learner, dtype) + again


def critic_pass(settings: Settings, shape: Shape, load: Load) -> float:
    """Bytes of the critic's pass through the backbone, of any rows of the batch: never lean, and in one process."""
    learner, rows = settings.learner, settings.train.prompts_per_step * settings.rollout.group_size
    tokens = _of_a_pass(learner, rows, load.prompt + load.new)
    own = replace(shape, architecture=""), replace(load, tokens=tokens)
    how = learner.model_copy(update={"kind": "torch"}), settings.policy.dtype
    return activations(*own, *how) + _going_back_a_layer(*own, *how)


def _at_once(shape: Shape, load: Load, learner: LearnerSettings) -> int:
    """Logits that exist at a time; those of one token at least."""
    return max(shape.vocabulary, min(load.wanted * shape.vocabulary, learner.logits_at_once))


def cache(shape: Shape, load: Load, number: float, *, shared: bool) -> float:
    """Bytes of the embedded engine's keys and values; where they are ``shared``, a group has those of its prompt
    once."""
    columns = load.prompt / (load.group if shared else 1) + load.new
    return 2 * number * load.rows * columns * shape.layers * shape.kv_heads * shape.head_dim


@dataclass(frozen=True)
class Part:
    """One thing that takes memory."""

    name: str
    size: float
    """Bytes."""
    why: str
    moments: tuple[Moment, ...] = STEP
    on_gpu: bool = False


class Peak(NamedTuple):
    """Where a process takes most, and how many bytes."""

    moment: Moment
    size: float


@dataclass(frozen=True)
class Process:
    """One kind of process of a run. Processes of one kind take the same."""

    name: str
    count: int
    parts: Sequence[Part]
    gpus: int = 0
    """GPUs of each; parts that are ``on_gpu`` are of one of them."""

    def at(self, moment: Moment, on_gpu: bool = False) -> float:
        """Bytes at a moment, of the machine's memory or of a GPU's."""
        return sum(part.size for part in self.parts if moment in part.moments and part.on_gpu == on_gpu)

    def peak(self, on_gpu: bool = False) -> Peak:
        """The first of the moments at which it takes most."""
        return max((Peak(moment, self.at(moment, on_gpu)) for moment in MOMENTS), key=lambda peak: peak.size)

    def of(self, name: str) -> float:
        """Bytes of the parts of this name; 0 where there is none."""
        return sum(part.size for part in self.parts if part.name == name)
