"""What the process that runs the loop holds besides its part of the learner: rank 0."""

from __future__ import annotations

from components.config import Settings
from components.config.ppo import GaeAdvantage
from components.config.rollout import TorchEngine
from components.config.servers import VllmEngine
from components.planning.parts import STEP, Moment, Part
from components.planning.passes import BF16, DTYPES, FP32, LEAN, Load, cache, critic_pass
from components.planning.shapes import Shape
from components.policy.stored import BUCKET
from components.rollout.dense_context import SHARED_FROM
from components.training.reference import reads_reference


def loop_parts(settings: Settings, shape: Shape, load: Load, on_gpu: bool = False) -> list[Part]:
    """Its parts: on the GPU of its part of the learner, where that has one, but for buckets that go into files."""
    return [
        *_copies(settings, shape, load, on_gpu),
        *_sampling(settings, shape, load, on_gpu),
        *_hand_over(settings, shape, on_gpu),
    ]


def _copies(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    held, dtype = DTYPES[settings.policy.dtype] * shape.parameters, settings.policy.dtype
    found = []
    if settings.learner.kind == "torch" and not shape.lora and reads_reference(settings):
        found.append(Part("reference", held, f"{dtype}; with LoRA it is the base", STEP, on_gpu))
    if isinstance(settings.objective.advantage, GaeAdvantage):
        found += _critic(settings, shape, load, on_gpu)
    return found


def _critic(settings: Settings, shape: Shape, load: Load, on_gpu: bool) -> list[Part]:
    """What it trains, with gradients and moments, and its pass. With LoRA that is an adapter; its base is the
    learner's, or where that is shared out over ranks one that rank 0 loads."""
    number = DTYPES[settings.policy.dtype]
    trained = FP32 * shape.trainable if shape.lora else number * shape.backbone
    passing = critic_pass(settings, shape, load)
    found = [
        Part("critic", 4 * trained, "PPO's value model, with gradients and moments", STEP, on_gpu),
        Part("critic's pass", passing, "activations and their gradients", ("critic",), on_gpu),
    ]
    if shape.lora and settings.learner.kind != "torch":
        found.append(Part("critic's base", number * shape.backbone, "rank 0 loads it for the critic", STEP, on_gpu))
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
    packed = shape.architecture in LEAN and not int8 and not on_gpu
    # Packed for a processor, the output layer is held besides the embedding that it is tied to.
    size = number * (shape.parameters + (shape.table if packed and shape.tied else 0))
    size -= (number - 1) * shape.linear if int8 else 0
    kept = cache(shape, load, number, shared=packed and load.prompt >= SHARED_FROM)
    logits = 3 * FP32 * load.rows * shape.vocabulary
    during: tuple[Moment, ...] = ("sample",)
    rows = f"{load.rows:,}"
    return [
        Part("engine's copy", size, f"of the embedded engine, precision {engine.precision}", STEP, on_gpu),
        Part("cache", kept, f"keys and values of {rows} completions", during, on_gpu),
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
