"""What the process that runs the loop holds besides its part of the learner: rank 0."""

from __future__ import annotations

from components.config import Settings
from components.config.ppo import GaeAdvantage
from components.config.rollout import TorchEngine
from components.planning.parts import MOMENTS, STEP, Moment, Part
from components.planning.passes import DTYPES, FP32, Load, cache
from components.planning.shapes import Shape

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
    if settings.learner.kind != "torch":
        why = "the learner's is another; this one stays as it is, and is the reference"
        found.append(Part("the loop's policy", held, f"{dtype}; {why}", MOMENTS))
    elif not shape.lora:
        found.append(Part("reference", held, f"{dtype}; with LoRA it is the base", STEP))
    if isinstance(settings.objective.advantage, GaeAdvantage):
        why = "PPO's value model, with gradients and moments"
        found.append(Part("critic", 4 * DTYPES[dtype] * (shape.parameters - shape.table), why, STEP))
    return found


def _sampling(settings: Settings, shape: Shape, load: Load) -> list[Part]:
    engine, dtype = settings.rollout.engine, settings.policy.dtype
    if not isinstance(engine, TorchEngine):
        held = DTYPES[dtype] * shape.parameters
        return [Part("engine's copy", held, f"{dtype}; servers are compared with it", STEP)]
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
    found, several = [], settings.learner.kind != "torch"
    if several:
        size = (FP32 + held) * shape.trainable
        found.append(Part("learned weights", size, "what the ranks have learned, whole, and rounded", during))
    if shape.lora:
        # The loop's own process passes merged matrices on; of ranks a copy of all of them.
        size = held * (shape.adapted + (shape.parameters if several else 0))
        found.append(Part("merged weights", size, "base and adapter as one, for the sampler", during))
    return found
