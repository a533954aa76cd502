"""What one process of the learner holds: its share of weights, gradients and moments, and what a pass takes."""

from __future__ import annotations

from collections.abc import Callable

from components.config import Settings
from components.planning.parts import MOMENTS, PASS, START, STEP, Part
from components.planning.passes import BF16, DTYPES, FP32, Load, activations, compute_bytes, going_back, logits
from components.planning.shapes import Shape
from components.training.reference import reads_reference

BUCKET = 5 * 10**8
"""Gradients that DeepSpeed collects before it sums them over the ranks: its default (`reduce_bucket_size`)."""
PREFETCHED = 5 * 10**7
"""Weights that DeepSpeed's stage 3 gathers ahead: its default."""


def learner_parts(settings: Settings, shape: Shape, load: Load, on_gpu: bool = False) -> list[Part]:
    """The parts of one rank, or of the one process of a learner without ranks."""
    state = LEARNERS[settings.learner.kind](settings, shape, load, on_gpu)
    return [
        *state,
        *_of_ranks(settings, shape, on_gpu),
        *_of_a_pass(settings, shape, load, on_gpu),
        *_checkpoint(settings, shape),
    ]


def _of_ranks(settings: Settings, shape: Shape, on_gpu: bool) -> list[Part]:
    """What a rank holds whatever its sharding: its share of the reference, and a tensor that is handed over."""
    ranks = settings.learner.ranks.processes
    if settings.learner.kind == "torch":
        return []
    why = "float32; the largest tensor is the embedding"
    found = [Part("gathered tensor", FP32 * shape.table, why, ("hand-over",), on_gpu)]
    if not shape.lora and reads_reference(settings):
        found.append(Part("reference", FP32 * shape.parameters / ranks, f"float32, 1/{ranks} of all", STEP, on_gpu))
        gathered = FP32 * (shape.outside + 2 * shape.layer)
        why = "one layer and the next, and what is in no layer"
        found.append(Part("gathered reference", gathered, why, ("forward",), on_gpu))
    return found


def _torch(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    dtype, held = settings.policy.dtype, DTYPES[settings.policy.dtype]
    trained, precision = (FP32, "float32") if shape.lora else (held, dtype)
    why = f"{dtype}; the loop's policy is the one that is trained"
    found = [Part("weights", held * shape.parameters, why, MOMENTS, on_gpu)]
    if shape.lora:
        found.append(Part("adapter", FP32 * shape.trainable, precision, MOMENTS, on_gpu))
    return [
        *found,
        Part("gradients", trained * shape.trainable, precision, on_gpu=on_gpu),
        Part("moments", 2 * trained * shape.trainable, f"two of AdamW, {precision}", on_gpu=on_gpu),
    ]


def _fsdp2(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    ranks, number = settings.learner.ranks.processes, compute_bytes(settings.learner, settings.policy.dtype)
    base, share = (shape.parameters if shape.lora else 0), f"float32, 1/{ranks} of all"
    gathered = (shape.outside + 2 * shape.layer) * number
    found = [
        _arriving(shape, on_gpu),
        Part("weights", FP32 * (base + shape.trainable) / ranks, share, MOMENTS, on_gpu),
        Part("gradients", FP32 * shape.trainable / ranks, share, on_gpu=on_gpu),
        Part("moments", 2 * FP32 * shape.trainable / ranks, f"two of AdamW, {share}", on_gpu=on_gpu),
        Part("gathered weights", gathered, "one layer and the next, and what is in no layer", PASS, on_gpu),
    ]
    if not shape.lora:
        whole = (shape.outside + 2 * shape.layer) * FP32
        why = "of the embedding and of two layers, until they are shared out"
        found.append(Part("whole gradients", whole, why, ("backward",), on_gpu))
    return found


def _zero(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    stage, ranks, trained = settings.learner.zero.stage, settings.learner.ranks.processes, shape.trainable
    number = BF16 if settings.learner.compute_dtype == "bfloat16" else FP32
    whole, share = "whole on every rank", f"1/{ranks} of all"
    held = number * (trained + (shape.parameters if shape.lora else 0))
    found = [
        _arriving(shape, on_gpu),
        Part("weights", held / (ranks if stage == 3 else 1), share if stage == 3 else whole, MOMENTS, on_gpu),
        Part("AdamW's weights", FP32 * trained / ranks, f"float32, {share}", on_gpu=on_gpu),
        Part(
            "gradients",
            FP32 * trained / (1 if stage == 1 else ranks),
            f"float32, {whole if stage == 1 else share}",
            on_gpu=on_gpu,
        ),
        Part("moments", 2 * FP32 * trained / ranks, f"two of AdamW, float32, {share}", on_gpu=on_gpu),
        Part(
            "gradient bucket",
            _bucket(settings, shape, load, on_gpu),
            "gradients that DeepSpeed collects, and a copy that it sums; they come while activations go",
            ("backward",),
            on_gpu,
        ),
    ]
    if stage == 3:
        size = (min(PREFETCHED, shape.parameters) + shape.outside + shape.layer) * number
        found.append(Part("gathered weights", size, "one layer, and what is read ahead", PASS, on_gpu))
    else:
        found.append(Part("flat copy", number * trained, "DeepSpeed joins the weights to one piece", START, on_gpu))
    return found


def _bucket(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> float:
    """Bytes of the bucket of gradients beyond what activations took before: it fills while they go, and when it is full
    stages 1 and 2 copy all of it. On a GPU it is there as a whole; of the machine's memory what is written to counts,
    and that is the output layer's gradients at least."""
    how = settings.learner, settings.policy.dtype
    gone = activations(shape, load, *how) + going_back(shape, load, *how)
    full = FP32 * min(BUCKET, shape.trainable)
    copy = full if settings.learner.zero.stage < 3 else 0
    if on_gpu:
        return FP32 * BUCKET + max(0.0, copy - gone)
    return max(FP32 * min(shape.table, shape.trainable), full + copy - gone)


def _arriving(shape: Shape, on_gpu: bool) -> Part:
    why = "each tensor is whole until its shares are taken; the largest is the embedding"
    return Part("arriving tensor", FP32 * shape.table, f"float32; {why}", START, on_gpu)


def _of_a_pass(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    how = settings.learner, settings.policy.dtype
    tokens = f"of {load.tokens:,} tokens a pass"
    found = [
        Part("activations", activations(shape, load, *how), tokens, PASS, on_gpu),
        Part("logits", logits(shape, load, *how), f"of {load.wanted:,} tokens, or of as many", ("forward",), on_gpu),
        Part("passing gradients", going_back(shape, load, *how), "of logits, or of a layer", ("backward",), on_gpu),
    ]
    if not shape.lora:
        why = "of the output layer, until it is added to the others"
        found.append(Part("newest gradient", shape.table * FP32, why, ("backward",), on_gpu))
    return found


def _checkpoint(settings: Settings, shape: Shape) -> list[Part]:
    """The copy that is written next to the loop, in the machine's memory; at once, the state is written as it lies."""
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
