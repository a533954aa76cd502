"""What one process holds: of the learner its share of weights, gradients and moments, and what a pass takes; and what
the process that runs the loop, rank 0, holds besides."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from components.config import Settings
from components.config.ppo import GaeAdvantage
from components.config.rollout import TorchEngine
from components.config.servers import VllmEngine
from components.planning import passes
from components.planning.passes import BF16, DTYPES, FP32, MOMENTS, PASS, START, Load, Part, compute_bytes
from components.planning.shapes import Shape
from components.policy.stored import BUCKET as HANDED_OVER
from components.rollout.context import SHARED_FROM
from components.training.reference import reads_reference

BUCKET = 5 * 10**8
"""Gradients that DeepSpeed collects before it sums them over the ranks: its default (`reduce_bucket_size`)."""
PREFETCHED = 5 * 10**7
"""Weights that DeepSpeed's stage 3 gathers ahead: its default."""


def _placed(parts: Iterable[Part], on_gpu: bool) -> list[Part]:
    return [replace(part, on_gpu=on_gpu) for part in parts]


def learner_parts(settings: Settings, shape: Shape, load: Load, on_gpu: bool = False) -> list[Part]:
    """The parts of one rank, or of the one process of a learner without ranks; a copy that is written next to the loop
    is in the machine's memory."""
    state = LEARNERS[settings.learner.kind](settings, shape, load, on_gpu)
    held = [*state, *_of_ranks(settings, shape), *_of_a_pass(settings, shape, load)]
    return [*_placed(held, on_gpu), *_checkpoint(settings, shape)]


def _of_ranks(settings: Settings, shape: Shape) -> list[Part]:
    """What a rank holds whatever its sharding: its share of the reference, and a tensor that is handed over."""
    ranks = settings.learner.ranks.processes
    if settings.learner.kind == "torch":
        return []
    why = "float32; the largest tensor is the embedding"
    found = [Part("gathered tensor", FP32 * shape.table, why, ("hand-over",))]
    if not shape.lora and reads_reference(settings):
        found.append(Part("reference", FP32 * shape.parameters / ranks, f"float32, 1/{ranks} of all"))
        gathered = FP32 * (shape.outside + 2 * shape.layer)
        why = "one layer and the next, and what is in no layer"
        found.append(Part("gathered reference", gathered, why, ("forward",)))
    return found


def _torch(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    dtype, held = settings.policy.dtype, DTYPES[settings.policy.dtype]
    trained, precision = (FP32, "float32") if shape.lora else (held, dtype)
    why = f"{dtype}; the loop's policy is the one that is trained"
    found = [Part("weights", held * shape.parameters, why, MOMENTS)]
    if shape.lora:
        found.append(Part("adapter", FP32 * shape.trainable, precision, MOMENTS))
    return [
        *found,
        Part("gradients", trained * shape.trainable, precision),
        Part("moments", 2 * trained * shape.trainable, f"two of AdamW, {precision}"),
    ]


def _fsdp2(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    ranks, number = settings.learner.ranks.processes, compute_bytes(settings.learner, settings.policy.dtype)
    base, share = (shape.parameters if shape.lora else 0), f"float32, 1/{ranks} of all"
    gathered = (shape.outside + 2 * shape.layer) * number
    found = [
        _arriving(shape),
        Part("weights", FP32 * (base + shape.trainable) / ranks, share, MOMENTS),
        Part("gradients", FP32 * shape.trainable / ranks, share),
        Part("moments", 2 * FP32 * shape.trainable / ranks, f"two of AdamW, {share}"),
        Part("gathered weights", gathered, "one layer and the next, and what is in no layer", PASS),
    ]
    if not shape.lora:
        whole = (shape.outside + 2 * shape.layer) * FP32
        why = "of the embedding and of two layers, until they are shared out"
        found.append(Part("whole gradients", whole, why, ("backward",)))
    return found


def _zero(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    stage, ranks, trained = settings.learner.zero.stage, settings.learner.ranks.processes, shape.trainable
    number = BF16 if settings.learner.compute_dtype == "bfloat16" else FP32
    whole, share = "whole on every rank", f"1/{ranks} of all"
    held = number * (trained + (shape.parameters if shape.lora else 0))
    why = "gradients that DeepSpeed collects, and a copy that it sums; they come while activations go"
    found = [
        _arriving(shape),
        Part("weights", held / (ranks if stage == 3 else 1), share if stage == 3 else whole, MOMENTS),
        Part("AdamW's weights", FP32 * trained / ranks, f"float32, {share}"),
        Part("gradients", FP32 * trained / (1 if stage == 1 else ranks), f"float32, {whole if stage == 1 else share}"),
        Part("moments", 2 * FP32 * trained / ranks, f"two of AdamW, float32, {share}"),
        Part("gradient bucket", _bucket(settings, shape, load, on_gpu), why, ("backward",)),
    ]
    if stage == 3:
        size = (min(PREFETCHED, shape.parameters) + shape.outside + shape.layer) * number
        found.append(Part("gathered weights", size, "one layer, and what is read ahead", PASS))
    else:
        found.append(Part("flat copy", number * trained, "DeepSpeed joins the weights to one piece", START))
    return found


def _bucket(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> float:
    """Bytes of the bucket of gradients beyond what activations took before: it fills while they go, and when it is full
    stages 1 and 2 copy all of it. On a GPU it is there as a whole; of the machine's memory what is written to counts,
    and that is the output layer's gradients at least."""
    how = settings.learner, settings.policy.dtype
    gone = passes.activations(shape, load, *how) + passes.going_back(shape, load, *how)
    full = FP32 * min(BUCKET, shape.trainable)
    copy = full if settings.learner.zero.stage < 3 else 0
    if on_gpu:
        return FP32 * BUCKET + max(0.0, copy - gone)
    return max(FP32 * min(shape.table, shape.trainable), full + copy - gone)


def _arriving(shape: Shape) -> Part:
    why = "each tensor is whole until its shares are taken; the largest is the embedding"
    return Part("arriving tensor", FP32 * shape.table, f"float32; {why}", START)


def _of_a_pass(settings: Settings, shape: Shape, load: Load) -> list[Part]:
    on = shape, load, settings.learner, settings.policy.dtype
    found = [
        Part("activations", passes.activations(*on), f"of {load.tokens:,} tokens a pass", PASS),
        Part("logits", passes.logits(*on), f"of {load.wanted:,} tokens, or of as many", ("forward",)),
        Part("passing gradients", passes.going_back(*on), "of logits, or of a layer", ("backward",)),
    ]
    if not shape.lora:
        why = "of the output layer, until it is added to the others"
        found.append(Part("newest gradient", shape.table * FP32, why, ("backward",)))
    return found


def _checkpoint(settings: Settings, shape: Shape) -> list[Part]:
    """The copy that is written next to the loop; without one, the state is written as it lies."""
    if not settings.train.checkpoints.asynchronous:
        return []
    ranks, number = 1, FP32 if shape.lora else DTYPES[settings.policy.dtype]
    if settings.learner.kind != "torch":
        ranks, number = settings.learner.ranks.processes, FP32
    why = "a copy of weights and moments, which stays" + (f", 1/{ranks} of all" if ranks > 1 else "")
    return [Part("checkpoint", 3 * number * shape.trainable / ranks, why)]


LEARNERS: dict[str, Callable[[Settings, Shape, Load, bool], list[Part]]] = {
    "torch": _torch,
    "fsdp2": _fsdp2,
    "deepspeed": _zero,
}


def loop_parts(settings: Settings, shape: Shape, load: Load, on_gpu: bool = False) -> list[Part]:
    """What the loop holds besides: on the GPU of its part of the learner, where that has one, but for what goes into
    files."""
    held, dtype = DTYPES[settings.policy.dtype] * shape.parameters, settings.policy.dtype
    found = []
    if settings.learner.kind == "torch" and not shape.lora and reads_reference(settings):
        found.append(Part("reference", held, f"{dtype}; with LoRA it is the base", on_gpu=on_gpu))
    if isinstance(settings.objective.advantage, GaeAdvantage):
        found += _critic(settings, shape, load, on_gpu)
    return [*found, *_placed(_sampling(settings, shape, load, on_gpu), on_gpu), *_hand_over(settings, shape, on_gpu)]


def _critic(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    """What it trains, with gradients and moments, and its pass. With LoRA that is an adapter; its base is the
    learner's, or where that is shared out over ranks one that rank 0 loads."""
    number = DTYPES[settings.policy.dtype]
    trained = FP32 * shape.trainable if shape.lora else number * shape.backbone
    passing = passes.critic_pass(settings, shape, load)
    found = [
        Part("critic", 4 * trained, "PPO's value model, with gradients and moments"),
        Part("critic's pass", passing, "activations and their gradients", ("critic",)),
    ]
    if shape.lora and settings.learner.kind != "torch":
        found.append(Part("critic's base", number * shape.backbone, "rank 0 loads it for the critic"))
    found = _placed(found, on_gpu)
    if settings.train.checkpoints.asynchronous:
        found.append(Part("critic's checkpoint", 3 * trained, "a copy of weights and moments, which stays"))
    return found


def _sampling(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    engine, dtype = settings.rollout.engine, settings.policy.dtype
    if not isinstance(engine, TorchEngine):
        return []
    half = engine.precision == "bfloat16" or (on_gpu and engine.precision == "auto")
    number = BF16 if half else DTYPES[dtype]
    int8 = engine.precision == "int8"
    packed = shape.architecture in passes.LEAN and not int8 and not on_gpu
    # Packed for a processor, the output layer is held besides the embedding that it is tied to.
    size = number * (shape.parameters + (shape.table if packed and shape.tied else 0))
    size -= (number - 1) * shape.linear if int8 else 0
    kept = passes.cache(shape, load, number, shared=packed and load.prompt >= SHARED_FROM)
    logits = 3 * FP32 * load.rows * shape.vocabulary
    rows = f"{load.rows:,}"
    return [
        Part("engine's copy", size, f"of the embedded engine, precision {engine.precision}"),
        Part("cache", kept, f"keys and values of {rows} completions", ("sample",)),
        Part("sampled logits", logits, f"of the next token of {rows} completions", ("sample",)),
    ]


def _hand_over(settings: Settings, shape: Shape, on_gpu: bool) -> list[Part]:
    held = DTYPES[settings.policy.dtype]
    found = []
    if settings.learner.kind == "torch" and shape.lora:
        why = "base and adapter as one, for the sampler"
        found.append(Part("merged weights", held * shape.adapted, why, ("hand-over",), on_gpu))
    engine = settings.rollout.engine
    if not isinstance(engine, TorchEngine):
        broadcast = isinstance(engine, VllmEngine) and engine.transfer == "broadcast"
        # The one that servers take in, the one that is made meanwhile, and the tensor that does not fit into it.
        size = 2 * min(HANDED_OVER, held * shape.parameters) + held * shape.table
        why = "of weights on their way to servers"
        found.append(Part("buckets", size, why, ("hand-over",), on_gpu and broadcast))
    return found
