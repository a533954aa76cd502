"""What the process that runs the loop holds besides its part of the learner: rank 0."""

from __future__ import annotations

from components.config import Settings
from components.config.ppo import GaeAdvantage
from components.config.rollout import TorchEngine
from components.config.servers import VllmEngine
from components.planning.parts import STEP, Moment, Part
from components.planning.passes import BF16, DTYPES, FP32, Load, cache
from components.planning.shapes import Shape
from components.policy.stored import BUCKET
from components.training.reference import reads_reference

PRECISIONS = {"bfloat16": 2.0, "int8": 1.0}
"""Bytes of a weight of the embedded engine where it is not the policy's; int4 weights lie unpacked."""


def loop_parts(settings: Settings, shape: Shape, load: Load, on_gpu: bool = False) -> list[Part]:
    """Its parts: on the GPU of its part of the learner, where that has one, but for buckets that go into files."""
    return [
        *_copies(settings, shape, on_gpu),
        *_sampling(settings, shape, load, on_gpu),
        *_hand_over(settings, shape, on_gpu),
    ]


def _copies(settings: Settings, shape: Shape, on_gpu: bool) -> list[Part]:
    held, dtype = DTYPES[settings.policy.dtype] * shape.parameters, settings.policy.dtype
    found = []
    if settings.learner.kind == "torch" and not shape.lora and reads_reference(settings):
        found.append(Part("reference", held, f"{dtype}; with LoRA it is the base", STEP, on_gpu))
    if isinstance(settings.objective.advantage, GaeAdvantage):
        found.append(_critic(settings, shape, on_gpu))
    return found


def _critic(settings: Settings, shape: Shape, on_gpu: bool) -> Part:
    """What it trains, with gradients and moments. With LoRA that is an adapter; the base is there already."""
    if shape.lora:
        why = "PPO's value model: an adapter on the same base"
        return Part("critic", 4 * FP32 * shape.trainable, why, STEP, on_gpu)
    size = 4 * DTYPES[settings.policy.dtype] * (shape.parameters - shape.table)
    return Part("critic", size, "PPO's value model, with gradients and moments", STEP, on_gpu)


def _sampling(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    engine, dtype = settings.rollout.engine, settings.policy.dtype
    if not isinstance(engine, TorchEngine):
        return []
    half = on_gpu and engine.precision == "auto"
    number = BF16 if half else PRECISIONS.get(engine.precision, DTYPES[dtype])
    # Packed for a processor, the output layer is held besides the embedding that it is tied to.
    twice = shape.tied and not on_gpu
    size = number * (shape.parameters + (shape.table if twice else 0))
    logits = 3 * FP32 * load.rows * shape.vocabulary
    during: tuple[Moment, ...] = ("sample",)
    rows = f"{load.rows:,}"
    return [
        Part("engine's copy", size, f"of the embedded engine, precision {engine.precision}", STEP, on_gpu),
        Part("cache", cache(shape, load, min(number, FP32)), f"keys and values of {rows} completions", during, on_gpu),
        Part("sampled logits", logits, f"of the next token of {rows} completions", during, on_gpu),
    ]


def _hand_over(settings: Settings, shape: Shape, on_gpu: bool) -> list[Part]:
    held = DTYPES[settings.policy.dtype]
    during: tuple[Moment, ...] = ("hand-over",)
    found = []
    if settings.learner.kind == "torch" and shape.lora:
        why = "base and adapter as one, for the sampler"
        found.append(Part("merged weights", held * shape.adapted, why, during, on_gpu))
    engine = settings.rollout.engine
    if not isinstance(engine, TorchEngine):
        broadcast = isinstance(engine, VllmEngine) and engine.transfer == "broadcast"
        # The one that servers take in, the one that is made meanwhile, and the tensor that does not fit into it.
        size = 2 * min(BUCKET, held * shape.parameters) + held * shape.table
        found.append(Part("buckets", size, "of weights on their way to servers", during, on_gpu and broadcast))
    return found
