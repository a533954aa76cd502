"""The gap before any update: every sampler of the embedded engine, and what each correction makes of it. Minutes.

    python -m tests.benchmarks.gap.start --out docs/results/gap-start.jsonl

A training run has few tokens at its first step; here there are more of them, and all corrections judge the same ones.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from components.config import Settings
from components.data.prompts import read_prompts
from components.files import append_line
from components.layout import Layout
from components.policy import Policy, load_policy, response_logprobs
from components.policy.padding import pad
from components.rollout import Sampling, build_engine
from components.seeds import derive
from components.types import Completion
from tests.benchmarks.gap.arms import CORRECTIONS, REFERENCE, SAMPLERS, Arm
from tests.benchmarks.gap.distance import Distance, distance
from tests.benchmarks.gap.training import TASKS
from tests.benchmarks.lines import provenance
from tests.benchmarks.measured_code import Code
from tests.benchmarks.section import Scale

PROMPTS = 24
ROWS = 32
"""Completions that the learner scores at a time."""
Sampled = tuple[tuple[int, ...], Completion]


def sampled(policy: Policy, settings: Settings, prompts: Sequence[str]) -> list[Sampled]:
    """Prompts and completions, one pair each, of the sampler that the settings name."""
    encoded = [policy.encode_prompt(prompt) for prompt in prompts]
    rollout = settings.rollout
    sampling = Sampling(rollout.group_size, rollout.max_new_tokens, rollout.temperature, derive(settings.seed, "start"))
    groups = build_engine(policy, rollout).generate(encoded, sampling)
    return [(prompt, one) for prompt, group in zip(encoded, groups, strict=True) for one in group]


@torch.no_grad()
def scored(policy: Policy, pairs: Sequence[Sampled], temperature: float) -> Iterator[tuple[Tensor, Tensor]]:
    """Log-probabilities of the tokens of each completion, ``[R]``: the learner's and the sampler's."""
    for start in range(0, len(pairs), ROWS):
        part = pairs[start : start + ROWS]
        ids = pad([prompt for prompt, _ in part], [one.token_ids for _, one in part], policy.pad_id)
        length = ids.response_mask.shape[1]
        logp = response_logprobs(policy.model, ids.input_ids, ids.attention_mask, length, temperature).logp
        for row, (_, one) in zip(logp, part, strict=True):
            yield row[: len(one.token_ids)], torch.tensor(one.logprobs)


def distances(policy: Policy, sampler: str, prompts: Sequence[str], scale: Scale) -> dict[str, Distance]:
    """Of one sampler, by the name of the correction."""
    settings = {name: TASKS[scale].settings(Arm(sampler, name).changes, seed=1) for name in CORRECTIONS}
    own = settings[REFERENCE.correction]
    pairs = list(scored(policy, sampled(policy, own, prompts), own.rollout.temperature))
    old, rollout = (pad_sequence(list(rows), batch_first=True) for rows in zip(*pairs, strict=True))
    mask = pad_sequence([torch.ones(len(row), dtype=torch.bool) for row, _ in pairs], batch_first=True)
    return {name: distance(old, rollout, mask, one.objective.correction) for name, one in settings.items()}


def measure(out: Path, work: Path, scale: Scale) -> None:
    """Append the rows of every sampler of the embedded engine."""
    task, code = TASKS[scale], Code.now()
    layout: Layout = task.prepared(work / "prepared")
    policy = load_policy(layout.sft_checkpoint, task.settings((), seed=1).policy)
    prompts = [prompt.text for prompt in read_prompts(layout.split("train"))][:PROMPTS]
    for sampler in (name for name, engine in SAMPLERS.items() if "kind: torch" in engine):
        found = distances(policy, sampler, prompts, scale)
        of = provenance(code)
        for correction, one in found.items():
            append_line(out, {"sampler": sampler, "correction": correction, **one, **of})
        print(f"{sampler}: {found[REFERENCE.correction]['mean']:.4f} nats a token", flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "evenkeel-gap")
    parser.add_argument("--smoke", action="store_true", help="a tiny model with random weights: only that it runs")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    measure(options.out, options.work, "smoke" if options.smoke else "full")


if __name__ == "__main__":
    main()
