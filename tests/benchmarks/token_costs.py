"""What a token costs here, for `flows.budget.costs.RATES`, and how estimates compare with what stages took.

    python -m tests.benchmarks.token_costs measure models/my-sft    # one minute; the tiny model and that one
    python -m tests.benchmarks.token_costs compare                  # of every stage in .state/history.jsonl

Two models give two equations for each of the three rates: by parameters, and by layers.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from components.config import Settings
from components.config.policy import CheckpointModel, PolicySettings
from components.config.rollout import TorchEngine
from flows.budget.costs import PASSES, PROBES, Shape, shape_of
from flows.budget.estimate import FIXED
from flows.budget.history import history
from flows.budget.work import Work

if TYPE_CHECKING:
    from components.policy import Policy

PROMPTS, SAMPLES, PROMPT, TOKENS = 8, 8, 32, 16
WORDS = 5000
"""Texts that the tokenizer of the tiny model is trained on."""
TINY = {"kind": "tiny", "hidden_size": 128, "layers": 3, "vocab_size": 384}


def measure(checkpoint: Path) -> None:
    """Print the seconds of a token, of both models, and the rates that follow."""
    shapes, costs = [], []
    for model in (TINY, {"kind": "checkpoint", "path": str(checkpoint)}):
        settings = Settings.model_validate({"policy": {"model": model}})
        shapes.append(shape_of(settings))
        costs.append(of_a_token(settings))
        print(shapes[-1], {kind: f"{1 / cost:.0f} tokens/s" for kind, cost in costs[-1].items()}, flush=True)
    for kind, passes in PASSES.items():
        products, rest = solved(shapes, [cost[kind] for cost in costs], passes)
        print(f'"{kind}": Rate({products:.2g}, {rest:.2g}),')
    print(f"PROBED = {tuple(round(min(probe() for _ in range(20)), 4) for probe in PROBES)}")


def solved(shapes: list[Shape], costs: list[float], passes: int) -> tuple[float, float]:
    """Products a second and seconds a layer, that explain the costs of a token of two models."""
    (a, b), (c, d) = ((2 * passes * shape.matrices, shape.layers) for shape in shapes)
    determinant = a * d - b * c
    product, rest = (costs[0] * d - costs[1] * b) / determinant, (a * costs[1] - c * costs[0]) / determinant
    return 1 / product, rest


def of_a_token(settings: Settings) -> dict[str, float]:
    """Processor seconds of sampling, scoring and learning from one token."""
    import torch

    from components.policy import response_logprobs
    from components.rollout import Sampling
    from components.rollout.torch_engine import TorchEngine as Engine

    torch.set_num_threads(1)
    policy = policy_of(settings.policy)
    network = policy.model
    ids = torch.randint(0, network.config.vocab_size, (PROMPTS * SAMPLES, PROMPT + TOKENS))
    ids[:] = ids[:1]
    attention, mask = torch.ones_like(ids), torch.ones(len(ids), TOKENS, dtype=torch.bool)
    group = torch.arange(len(ids)) // SAMPLES
    computed = PROMPTS * PROMPT + mask.numel()

    def score() -> torch.Tensor:
        return response_logprobs(network, ids, attention, TOKENS, 1.0, mask=mask, group=group).logp.sum()

    def sample() -> int:
        engine = Engine(policy, TorchEngine())
        groups = engine.generate(ids[:PROMPTS, :PROMPT].tolist(), Sampling(SAMPLES, TOKENS, 1.0, 0))
        return sum(len(one.token_ids) for group in groups for one in group)

    with torch.no_grad():
        scoring = timed(score) / computed
    network.requires_grad_(True)
    found = {"scoring": scoring, "learning": timed(lambda: score().backward()) / computed}
    written = sample()
    return {"sampling": max(0.0, timed(sample) - PROMPTS * PROMPT * scoring) / written, **found}


def policy_of(settings: PolicySettings) -> Policy:
    """The checkpoint, or a tiny model with random weights and a vocabulary of the whole size."""
    from components.policy import Policy, load_policy
    from components.policy.tiny import build_model, build_tokenizer

    model = settings.model
    if isinstance(model, CheckpointModel):
        return load_policy(model.path, settings)
    words = (f"{place:x}" for place in range(WORDS))
    tokenizer = build_tokenizer(words, model.vocab_size, model.max_positions)
    return Policy(build_model(model, tokenizer, 0), tokenizer)


def timed(work: Callable[[], object]) -> float:
    """Processor seconds of the second time."""
    work()
    began = time.process_time()
    work()
    return time.process_time() - began


def compare(project: Path) -> None:
    """Print what the cost of a token on a CPU says of executed stages, next to what they took, newest last."""
    print(f"{'run':40} {'stage':10} {'model':>8} {'took':>8} {'ratio':>6}")
    for row in history(project):
        if row.executed:
            modelled = FIXED + row.start + Work(row.amount, row.unit).seconds
            print(f"{row.run:40} {row.stage:10} {modelled:8.0f} {row.seconds:8.0f} {row.seconds / modelled:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("measure")
    command.add_argument("checkpoint", type=Path)
    command.set_defaults(run=lambda options: measure(options.checkpoint))
    command = commands.add_parser("compare")
    command.add_argument("project", type=Path, nargs="?", default=Path())
    command.set_defaults(run=lambda options: compare(options.project))
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
