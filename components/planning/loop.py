"""What the process that runs the loop holds besides its part of the learner: rank 0."""

from __future__ import annotations

from components.config import Settings
from components.config.ppo import GaeAdvantage
from components.config.rollout import TorchEngine
from components.planning.parts import STEP, Moment, Part
from components.planning.passes import DTYPES, FP32, Load, cache
from components.planning.shapes import Shape
from components.policy.stored import BUCKET
from components.training.reference import reads_reference

PRECISIONS = {"bfloat16": 2.0, "int8": 1.0}
"""Bytes of a weight of the embedded engine where it is not the policy's; int4 weights lie unpacked."""


def loop_parts(settings: Settings, shape: Shape, load: Load) -> list[Part]:
    """Its parts, all of them in the machine's memory: the loop computes nothing on a GPU."""
    return [
        *_copies(settings, shape),
        *_sampling(settings, shape, load),
        *_hand_over(settings, shape),
    ]


def _copies(settings: Settings, shape: Shape) -> list[Part]:
    held, dtype = DTYPES[settings.policy.dtype] * shape.parameters, settings.policy.dtype
    found = []
    if settings.learner.kind == "torch" and not shape.lora and reads_reference(settings):
        found.append(Part("reference", held, f"{dtype}; with LoRA it is the base", STEP))
    if isinstance(settings.objective.advantage, GaeAdvantage):
        found.append(_critic(settings, shape))
    return found


def _critic(settings: Settings, shape: Shape) -> Part:
    """What it trains, with gradients and moments. With LoRA that is an adapter; the base is there already."""
    if shape.lora:
        return Part("critic", 4 * FP32 * shape.trainable, "PPO's value model: an adapter on the same base", STEP)
    size = 4 * DTYPES[settings.policy.dtype] * (shape.parameters - shape.table)
    return Part("critic", size, "PPO's value model, with gradients and moments", STEP)


def _sampling(settings: Settings, shape: Shape, load: Load) -> list[Part]:
    engine, dtype = settings.rollout.engine, settings.policy.dtype
    if not isinstance(engine, TorchEngine):
        return []
    number = PRECISIONS.get(engine.precision, DTYPES[dtype])
    # Packed for the processor, the output layer is held besides the embedding that it is tied to.
    size = number * (shape.parameters + (shape.table if shape.tied else 0))
    logits = 3 * FP32 * load.rows * shape.vocabulary
    during: tuple[Moment, ...] = ("sample",)
    return [
        Part("engine's copy", size, f"of the embedded engine, precision {engine.precision}", STEP),
        Part("cache", cache(shape, load, min(number, FP32)), f"keys and values of {load.rows:,} completions", during),
        Part("sampled logits", logits, f"of the next token of {load.rows:,} completions", during),
    ]


def _hand_over(settings: Settings, shape: Shape) -> list[Part]:
    held = DTYPES[settings.policy.dtype]
    during: tuple[Moment, ...] = ("hand-over",)
    found = []
    if settings.learner.kind == "torch" and shape.lora:
        found.append(Part("merged weights", held * shape.adapted, "base and adapter as one, for the sampler", during))
    if not isinstance(settings.rollout.engine, TorchEngine):
        # The one that servers take in, the one that is made meanwhile, and the tensor that does not fit into it.
        size = 2 * min(BUCKET, held * shape.parameters) + held * shape.table
        found.append(Part("buckets", size, "of weights on their way to servers", during))
    return found
